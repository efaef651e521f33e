//! A drawn script, as steps that can be taken away one by one, and as the text of a recorded case.

use std::fmt::Write as _;

use serde_json::Value;

use super::super::script::Script;

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) verb: &'static str,
    pub(super) path: String,
    pub(super) body: Option<Value>,
    /// Lines that begin with `@`.
    pub(super) directives: Vec<String>,
    /// Of the settling of what a later step needs: never taken away.
    pub(super) needed: bool,
}

/// Requests in one namespace.
#[derive(Clone, Debug, Default)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) managed: bool,
    pub(super) steps: Vec<Step>,
}

impl Step {
    pub(super) fn new(verb: &'static str, path: impl Into<String>, body: Option<Value>) -> Self {
        Self { verb, path: path.into(), body, directives: Vec::new(), needed: false }
    }

    pub(super) fn except(mut self, pointer: &str, why: &str) -> Self {
        self.directives.push(format!("@except {pointer} {why}"));
        self
    }
}

impl Case {
    /// The text of the case, under a line that says what it is.
    pub(super) fn text(&self, heading: &str) -> String {
        let mut text = format!("# {heading}\n");
        if self.managed {
            text.push_str("@managed\n");
        }
        for step in &self.steps {
            let _ = writeln!(text, "\n{} {}", step.verb, step.path);
            for directive in &step.directives {
                let _ = writeln!(text, "{directive}");
            }
            if step.verb != "WAIT" {
                text.push_str("@unordered\n");
            }
            if let Some(body) = &step.body {
                let json = body.to_string();
                // What reads differently as YAML is sent as it stands.
                if serde_saphyr::from_str::<Value>(&json).ok().as_ref() != Some(body) {
                    text.push_str("@raw\n");
                }
                let _ = writeln!(text, "{json}");
            }
        }
        text
    }

    pub(super) fn script(&self, heading: &str) -> Script {
        Script::parse(self.name.clone(), self.text(heading))
    }
}
