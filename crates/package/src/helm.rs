//! A Helm chart of an operator.
//!
//! Enters: the operator's objects and what is told about it. Leaves: the chart's files. What `helm template` renders with
//! the default values is what was given, but for the namespace, which Helm makes itself, and the annotation that keeps
//! CRDs. CRDs are templates, not files of `crds/`: Helm would never upgrade those.
//!
//! The names of objects are not made from the release's: an operator finds its lease, its certificates and its webhooks by
//! its own name, and a cluster has one of it.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    Error, Facts, Files, Objects, WATCHED_NAMESPACE,
    objects::{is_crd, kind, name, namespace, text},
};

mod certificates;
mod deployment;
mod pages;
mod settings;
mod switch;
mod template;

use certificates::Certificates;
use settings::Settings;
use switch::Switches;
use template::{Gaps, when};

/// The files of a chart.
///
/// # Errors
///
/// When an object cannot be written as YAML, or there is no Deployment.
pub fn chart(facts: &Facts, objects: &Objects) -> Result<Files, Error> {
    let mut chart = Chart {
        name: &facts.name,
        account: objects.account(),
        switches: Switches::new(objects),
        certificates: Certificates::default(),
        settings: Settings::default(),
        files: BTreeMap::new(),
    };
    chart.settle(objects);
    chart.certificates = Certificates::new(objects, &mut chart.settings);
    for pair in pairs(objects) {
        chart.add(objects, &pair, false)?;
    }
    let issued: Vec<Value> = chart.certificates.more().cloned().collect();
    for object in &issued {
        chart.add(objects, &Pair { everywhere: Some(object), restricted: Some(object) }, false)?;
    }
    for object in objects.when_wanted() {
        chart.add(objects, &Pair { everywhere: Some(object), restricted: Some(object) }, true)?;
    }
    let Chart { switches, settings, files: templates, .. } = chart;
    let mut files = Files::new(".windlass-generated");
    files.insert("Chart.yaml", pages::chart(facts)?);
    let heading =
        format!("# The values of {}; helm checks them against values.schema.json.\n", facts.title());
    files.insert("values.yaml", settings.values(&heading)?);
    files.insert("values.schema.json", settings.schema(&facts.title())?);
    files.insert("README.md", pages::readme(facts, objects, &settings));
    files.insert(".helmignore", pages::IGNORED);
    files.insert("templates/NOTES.txt", pages::notes(facts, objects));
    files.insert("templates/_helpers.tpl", pages::helpers(facts, objects.account(), &switches.kinds));
    files.insert("templates/tests/check.yaml", pages::test(facts, objects)?);
    for (path, text) in templates {
        files.insert(path, text);
    }
    Ok(files)
}

struct Chart<'a> {
    name: &'a str,
    account: &'a str,
    switches: Switches,
    certificates: Certificates,
    settings: Settings,
    files: BTreeMap<String, String>,
}

/// An object as it is when all namespaces are watched, and when chosen ones are.
struct Pair<'a> {
    everywhere: Option<&'a Value>,
    restricted: Option<&'a Value>,
}

/// The objects of both cases side by side, in the order of the first.
fn pairs(objects: &Objects) -> Vec<Pair<'_>> {
    let key = |object: &Value| {
        (kind(object).to_owned(), namespace(object).map(ToOwned::to_owned), name(object).to_owned())
    };
    let Some(restricted) = objects.when_restricted() else {
        return objects
            .all()
            .iter()
            .map(|object| Pair { everywhere: Some(object), restricted: Some(object) })
            .collect();
    };
    let mut others: BTreeMap<_, &Value> = restricted.iter().map(|object| (key(object), object)).collect();
    let mut pairs: Vec<Pair<'_>> = objects
        .all()
        .iter()
        .map(|object| Pair { everywhere: Some(object), restricted: others.remove(&key(object)) })
        .collect();
    pairs.extend(others.into_values().map(|object| Pair { everywhere: None, restricted: Some(object) }));
    pairs
}

impl Chart<'_> {
    /// The values that are there whatever the objects are, in the order in which a reader looks for them.
    fn settle(&mut self, objects: &Objects) {
        self.switches.add(objects, &mut self.settings);
        if objects.when_restricted().is_some() {
            self.settings.add_with(
                "watchNamespaces",
                json!([]),
                "The namespaces that the operator works in; in all of them if there are none",
                json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true }),
            );
        } else {
            self.settings.add_with(
                "watchNamespaces",
                json!([]),
                "This operator itself says which namespaces it works in",
                json!({ "type": "array", "maxItems": 0 }),
            );
        }
        self.settings.switch("serviceAccount.create", "Make the service account");
        self.settings.add(
            "serviceAccount.name",
            json!(""),
            "The name of the service account, if it is another",
        );
        self.settings.add("serviceAccount.annotations", json!({}), "Annotations of the service account");
    }

    fn add(&mut self, objects: &Objects, pair: &Pair<'_>, optional: bool) -> Result<(), Error> {
        let Some(object) = pair.everywhere.or(pair.restricted) else { return Ok(()) };
        let path = self.path(objects, object);
        let condition = self.switches.condition(object, optional, &mut self.settings);
        let body = match (pair.everywhere, pair.restricted) {
            (Some(everywhere), Some(restricted)) => {
                let body = self.body(&path, everywhere)?;
                let other = self.body(&path, &unrestricted(restricted))?;
                if body == other {
                    body
                } else {
                    format!(
                        "{{{{- if $.Values.watchNamespaces }}}}\n{other}{{{{- else }}}}\n{body}{{{{- end }}}}\n"
                    )
                }
            }
            (Some(everywhere), None) => {
                when(Some("not $.Values.watchNamespaces"), &self.body(&path, everywhere)?)
            }
            (None, Some(restricted)) => {
                let body = self.body(&path, restricted)?;
                if namespace(restricted) == Some(WATCHED_NAMESPACE) {
                    format!(
                        "{{{{- range $namespace := $.Values.watchNamespaces }}}}\n---\n{body}{{{{- end }}}}\n"
                    )
                } else {
                    when(Some("$.Values.watchNamespaces"), &body)
                }
            }
            (None, None) => return Ok(()),
        };
        let issued = self.certificates.condition(object);
        self.files.insert(path, when(issued.as_deref(), &when(condition.as_deref(), &body)));
        Ok(())
    }

    /// The object as a template. What is added to it must not depend on how often this is called.
    fn body(&mut self, path: &str, object: &Value) -> Result<String, Error> {
        let (original, mut object, mut gaps) = (object, object.clone(), Gaps::default());
        match kind(&object) {
            "Deployment" => {
                let mut settings = Settings::default();
                deployment::open(&mut object, self.name, &mut gaps, &mut settings);
                for setting in settings.0 {
                    if !self.settings.0.iter().any(|other| other.path == setting.path) {
                        self.settings.0.push(setting);
                    }
                }
            }
            "ServiceAccount" if name(&object) == self.account => {
                let lines = "{{- with $.Values.serviceAccount.annotations }}\nannotations: {{- toYaml . | nindent %INDENT% }}\n{{- end }}";
                gaps.entry(&mut object["metadata"], lines);
                object["metadata"]["name"] = json!(self.account_gap(&mut gaps));
            }
            "CustomResourceDefinition" => {
                object["metadata"]["annotations"]["helm.sh/resource-policy"] = json!("keep");
            }
            kind if kind.ends_with("RoleBinding") => {
                for subject in object["subjects"].as_array_mut().into_iter().flatten() {
                    if subject["kind"] == "ServiceAccount" && subject["name"] == self.account {
                        subject["name"] = json!(self.account_gap(&mut gaps));
                    }
                }
            }
            kind if kind.ends_with("Role") => self.rules(path, &mut object, &mut gaps)?,
            _ => {}
        }
        self.certificates.open(path, original, &mut object, &mut gaps)?;
        gaps.fill(path, &object)
    }

    fn account_gap(&self, gaps: &mut Gaps) -> String {
        gaps.inline(format!("{{{{ include \"{}.serviceAccountName\" $ }}}}", self.name))
    }

    /// Rules about a kind that is switched off are left out. A role for people is left out as a whole instead.
    fn rules(&self, path: &str, role: &mut Value, gaps: &mut Gaps) -> Result<(), Error> {
        let rules = role["rules"].as_array().cloned().unwrap_or_default();
        if !self.switches.is_bound(role) {
            return Ok(());
        }
        let mut written = Vec::new();
        for rule in rules {
            let Some(kind) = self.switches.kind_of_rule(&rule) else {
                written.push(rule);
                continue;
            };
            let item = crate::yaml::document(path, &json!([rule]))?;
            let lines = format!("{{{{- if $.Values.kinds.{} }}}}\n{item}{{{{- end }}}}", kind.key);
            written.push(json!(gaps.inline(lines)));
        }
        role["rules"] = json!(written);
        Ok(())
    }

    /// Where an object stands: its kind, and what its name has beyond the operator's.
    fn path(&self, objects: &Objects, object: &Value) -> String {
        if is_crd(object) {
            return format!(
                "templates/crds/{}.{}.yaml",
                text(object, "/spec/names/plural"),
                text(object, "/spec/group")
            );
        }
        let part = name(object).strip_prefix(objects.name()).unwrap_or(name(object)).trim_start_matches('-');
        let mut path = kind(object).to_lowercase();
        for part in [part, if namespace(object) == Some(WATCHED_NAMESPACE) { "watched" } else { "" }] {
            if !part.is_empty() && kind(object) != "Namespace" {
                path = format!("{path}-{part}");
            }
        }
        let mut unique = format!("templates/{path}.yaml");
        let mut number = 2;
        while self.files.contains_key(&unique) {
            unique = format!("templates/{path}-{number}.yaml");
            number += 1;
        }
        unique
    }
}

/// The Deployment without the argument that the template gives by itself.
fn unrestricted(object: &Value) -> Value {
    let mut object = object.clone();
    if kind(&object) == "Deployment" {
        let list = object.pointer_mut("/spec/template/spec/containers/0/args").and_then(Value::as_array_mut);
        let restricts =
            |argument: &Value| argument.as_str().is_some_and(|text| text.starts_with("--watch-namespaces="));
        if let Some(list) = list {
            list.retain(|argument| !restricts(argument));
        }
    }
    object
}

#[cfg(test)]
mod tests;
