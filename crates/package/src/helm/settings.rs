//! What whoever installs a chart can choose: one list, from which values.yaml, its schema and the README's table are made.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::{Error, yaml};

/// One value of a chart.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Where it stands, with dots.
    pub(super) path: String,
    pub(super) default: Value,
    /// What it is for, in one sentence without a full stop.
    pub(super) about: String,
    schema: Value,
}

/// The values of a chart, in the order in which they are told.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings(pub(super) Vec<Setting>);

impl Settings {
    /// A value whose type is that of its default.
    pub(super) fn add(&mut self, path: &str, default: Value, about: &str) {
        let kind = match &default {
            Value::Bool(_) => "boolean",
            Value::Number(_) => "integer",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
            Value::Null | Value::String(_) => "string",
        };
        self.add_with(path, default, about, json!({ "type": kind }));
    }

    /// A value with more to say about what it may be.
    pub(super) fn add_with(&mut self, path: &str, default: Value, about: &str, schema: Value) {
        self.0.push(Setting { path: path.to_owned(), default, about: about.to_owned(), schema });
    }

    /// Adds a switch that is on, unless it is there.
    pub(super) fn switch(&mut self, path: &str, about: &str) {
        self.switch_to(path, true, about);
    }

    /// Adds a switch unless it is there.
    pub(super) fn switch_to(&mut self, path: &str, on: bool, about: &str) {
        if !self.0.iter().any(|setting| setting.path == path) {
            self.add(path, json!(on), about);
        }
    }

    /// `values.yaml`.
    pub(super) fn values(&self, heading: &str) -> Result<String, Error> {
        let mut text = heading.to_owned();
        write_level(&self.0.iter().collect::<Vec<_>>(), 0, &mut text)?;
        Ok(text)
    }

    /// `values.schema.json`.
    pub(super) fn schema(&self, title: &str) -> Result<String, Error> {
        let mut root = level(&self.0.iter().map(|s| (s.path.as_str(), s)).collect::<Vec<_>>());
        root["$schema"] = json!("http://json-schema.org/draft-07/schema#");
        root["title"] = json!(title);
        // What a parent chart shares with all of its charts.
        root["properties"]["global"] = json!({ "type": "object" });
        let text = serde_json::to_string_pretty(&root);
        let text = text
            .map_err(|error| Error::Content { path: "values.schema.json".into(), why: error.to_string() })?;
        Ok(text + "\n")
    }

    /// The table of the README.
    pub(super) fn table(&self) -> String {
        let mut text = String::from("| Value | Default | What it is for |\n|---|---|---|\n");
        for setting in &self.0 {
            let default = setting.default.to_string().replace('|', "\\|");
            let _ = writeln!(text, "| `{}` | `{default}` | {} |", setting.path, setting.about);
        }
        text
    }
}

/// Settings that begin with the same word stand below it.
fn write_level(settings: &[&Setting], depth: usize, text: &mut String) -> Result<(), Error> {
    let indent = "  ".repeat(depth);
    let part = |setting: &Setting| setting.path.split('.').nth(depth).unwrap_or_default().to_owned();
    let mut done: Vec<String> = Vec::new();
    for setting in settings {
        let key = part(setting);
        if done.contains(&key) {
            continue;
        }
        if depth == 0 {
            text.push('\n');
        }
        if setting.path.split('.').count() == depth + 1 {
            let _ = writeln!(text, "{indent}# {}.", setting.about);
            let entry = yaml::document("values.yaml", &json!({ key.as_str(): setting.default }))?;
            for line in entry.lines() {
                let _ = writeln!(text, "{indent}{line}");
            }
        } else {
            let _ = writeln!(text, "{indent}{key}:");
            let below: Vec<&Setting> = settings.iter().copied().filter(|other| part(other) == key).collect();
            write_level(&below, depth + 1, text)?;
        }
        done.push(key);
    }
    Ok(())
}

/// The schema of a mapping. A name that is not known is refused: it is a misspelt one.
fn level(settings: &[(&str, &Setting)]) -> Value {
    let mut properties = Map::new();
    for (path, setting) in settings {
        match path.split_once('.') {
            None => {
                let mut schema = setting.schema.clone();
                schema["description"] = json!(setting.about);
                properties.insert((*path).to_owned(), schema);
            }
            Some((first, _)) if properties.contains_key(first) => {}
            Some((first, _)) => {
                let below: Vec<(&str, &Setting)> = settings
                    .iter()
                    .filter_map(|(path, setting)| {
                        Some((path.strip_prefix(first)?.strip_prefix('.')?, *setting))
                    })
                    .collect();
                properties.insert(first.to_owned(), level(&below));
            }
        }
    }
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut settings = Settings::default();
        settings.add("image.repository", json!("shop"), "The image");
        settings.add("replicas", json!(2), "How many");
        settings.add("image.tag", json!("1.0"), "Its tag");
        settings.add("nodeSelector", json!({}), "Where");
        settings
    }

    #[test]
    fn values_are_grouped_and_told() {
        let expected = "\
# Head

image:
  # The image.
  repository: shop
  # Its tag.
  tag: '1.0'

# How many.
replicas: 2

# Where.
nodeSelector: {}
";
        assert_eq!(settings().values("# Head\n").unwrap().replace('"', "'"), expected);
    }

    #[test]
    fn a_misspelt_value_is_refused_by_the_schema() {
        let schema: Value = serde_json::from_str(&settings().schema("shop").unwrap()).unwrap();
        assert_eq!(schema["additionalProperties"], false);
        assert_eq!(schema["properties"]["image"]["additionalProperties"], false);
        assert_eq!(schema["properties"]["image"]["properties"]["tag"]["type"], "string");
        assert_eq!(schema["properties"]["replicas"]["type"], "integer");
        assert_eq!(schema["properties"]["global"]["type"], "object");
    }
}
