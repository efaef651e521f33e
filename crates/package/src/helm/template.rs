//! An object as a template: YAML, in whose gaps stand expressions of Helm.
//!
//! A gap is a word that stands in the object while it is written as YAML. One in a value is replaced where it stands; one
//! that is a whole entry or item becomes lines of its own, indented like it.

use serde_json::{Value, json};

use crate::{Error, RELEASE_NAMESPACE, WATCHED_NAMESPACE, objects::items, yaml};

/// In an expression: how far what it gives is indented.
pub(super) const INDENT: &str = "%INDENT%";

/// The same for what belongs beside the gap, not below it.
pub(super) const AT: &str = "%AT%";

/// What fills the gaps of one template.
#[derive(Debug, Default)]
pub(super) struct Gaps(Vec<String>);

impl Gaps {
    /// A gap within a text.
    pub(super) fn inline(&mut self, expression: impl Into<String>) -> String {
        self.0.push(expression.into());
        // After every field's name, so that it never comes first in an item.
        format!("zzgap{}zz", self.0.len() - 1)
    }

    /// Adds lines to a mapping.
    pub(super) fn entry(&mut self, mapping: &mut Value, lines: impl Into<String>) {
        let gap = self.inline(lines);
        mapping[gap] = json!(true);
    }

    /// Adds lines to a list.
    pub(super) fn item(&mut self, list: &mut Value, lines: impl Into<String>) {
        let gap = Value::String(self.inline(lines));
        match list {
            Value::Array(items) => items.push(gap),
            other => *other = Value::Array(vec![gap]),
        }
    }

    /// The object as YAML with everything filled in.
    pub(super) fn fill(&self, path: &str, object: &Value) -> Result<String, Error> {
        let text = yaml::document(path, object)?.replace("{{", "{{ \"{{\" }}");
        let mut filled = String::new();
        for line in text.lines() {
            self.line(line, &mut filled);
        }
        Ok(named(&filled))
    }

    fn line(&self, line: &str, filled: &mut String) {
        let indent = line.len() - line.trim_start().len();
        let inner = line.trim_start();
        let whole = |gap: &str| inner == format!("{gap}: true") || inner == format!("- {gap}");
        let placed =
            |text: &str| text.replace(INDENT, &(indent + 2).to_string()).replace(AT, &indent.to_string());
        let mut line = line.to_owned();
        for (at, expression) in self.0.iter().enumerate() {
            let gap = format!("zzgap{at}zz");
            if whole(&gap) {
                for part in expression.lines() {
                    filled.push_str(&" ".repeat(indent));
                    filled.push_str(&placed(part));
                    filled.push('\n');
                }
                return;
            }
            line = line.replace(&gap, &placed(expression));
        }
        filled.push_str(&line);
        filled.push('\n');
    }
}

/// Puts the namespaces in that only whoever installs the chart knows. A whole value is quoted: a name of digits is a text.
fn named(text: &str) -> String {
    let mut named = String::new();
    for line in text.lines() {
        let mut line = line.to_owned();
        for (word, expression) in
            [(RELEASE_NAMESPACE, "$.Release.Namespace"), (WATCHED_NAMESPACE, "$namespace")]
        {
            let quoted = format!("{{{{ {expression} | quote }}}}");
            if let Some(start) =
                line.strip_suffix(word).filter(|start| start.ends_with(": ") || start.ends_with("- "))
            {
                line = format!("{start}{quoted}");
            }
            line = line.replace(word, &format!("{{{{ {expression} }}}}"));
        }
        named.push_str(&line);
        named.push('\n');
    }
    named
}

/// A template that is rendered on a condition.
pub(super) fn when(condition: Option<&str>, body: &str) -> String {
    match condition {
        None => body.to_owned(),
        Some(condition) => format!("{{{{- if {condition} }}}}\n{body}{{{{- end }}}}\n"),
    }
}

/// Whether a rule of a role is about this kind alone.
pub(super) fn is_about(rule: &Value, group: &str, plural: &str) -> bool {
    let groups: Vec<&Value> = items(&rule["apiGroups"]).collect();
    let mut resources = items(&rule["resources"]).filter_map(Value::as_str).peekable();
    let own = |resource: &str| {
        resource == plural || resource.strip_prefix(plural).is_some_and(|rest| rest.starts_with('/'))
    };
    groups == [group] && resources.peek().is_some() && resources.all(own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_where_they_stand() {
        let mut gaps = Gaps::default();
        let mut object = json!({
            "metadata": {"name": "shop", "namespace": RELEASE_NAMESPACE},
            "spec": {"containers": [{"name": "a", "args": ["run"], "image": gaps.inline("{{ .Image }}")}]},
            "host": format!("shop.{RELEASE_NAMESPACE}.svc"),
        });
        gaps.item(&mut object["spec"]["containers"][0]["args"], "{{- range .More }}\n- {{ . }}\n{{- end }}");
        gaps.entry(&mut object["spec"]["containers"][0], "resources: {{- toYaml .R | nindent %INDENT% }}");
        let expected = "\
host: shop.{{ $.Release.Namespace }}.svc
metadata:
  name: shop
  namespace: {{ $.Release.Namespace | quote }}
spec:
  containers:
  - args:
    - run
    {{- range .More }}
    - {{ . }}
    {{- end }}
    image: {{ .Image }}
    name: a
    resources: {{- toYaml .R | nindent 6 }}
";
        assert_eq!(gaps.fill("x", &object).unwrap(), expected);
    }

    #[test]
    fn what_looks_like_a_template_stays_a_text() {
        let text = Gaps::default().fill("x", &json!({"summary": "{{ $labels.kind }} fails"})).unwrap();
        assert_eq!(text, "summary: \"{{ \"{{\" }} $labels.kind }} fails\"\n");
    }

    #[test]
    fn a_rule_is_about_a_kind_and_its_subresources() {
        let rule = |resources: &[&str]| json!({"apiGroups": ["a.com"], "resources": resources});
        assert!(is_about(&rule(&["carts", "carts/status"]), "a.com", "carts"));
        assert!(!is_about(&rule(&["carts", "cartsites"]), "a.com", "carts"));
        assert!(!is_about(&rule(&[]), "a.com", "carts"));
        assert!(!is_about(&rule(&["carts"]), "b.com", "carts"));
    }
}
