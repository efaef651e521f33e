//! Rust types from a CustomResourceDefinition.
//!
//! A version of a definition goes in, a module leaves: a struct for the spec with kube's derive and all that the definition
//! says about the kind, one for the status, and what they are made of. The CRD that the derive makes of it accepts and
//! rejects the same objects; what it cannot say is listed in [`Module::lost`].

#![expect(
    clippy::format_push_string,
    reason = "the pieces are short, and `write!` into a String has an error that never comes"
)]

mod field;
mod known;
mod patch;
mod plan;
mod print;
mod types;

use serde_json::Value;

use self::plan::{Location, Plan};
use crate::{
    Definition, Error, Scope, Version, names,
    schema::{Schema, child, flag, items, properties, strings, text},
};

/// How types are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The path of the SDK, through which kube, k8s-openapi and serde_json are reached.
    pub sdk: String,
    /// Whether Kubernetes' own types (`Condition`, `PodTemplateSpec`, ..) are recognised, and those of k8s-openapi used.
    /// The schema stays that of the definition.
    pub well_known: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { sdk: "windlass".to_owned(), well_known: true }
    }
}

/// A module of Rust.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// The text, as rustfmt has it at 110 columns.
    pub source: String,
    /// What the definition says and the CRD of these types will not.
    pub lost: Vec<Lost>,
}

/// Something that kube's derive cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Where, as `kubectl explain` names it; empty for the definition itself.
    pub path: String,
    /// What, in one sentence.
    pub what: String,
}

/// Annotations that tools write for themselves.
const TOOLS: [&str; 3] =
    ["controller-gen.kubebuilder.io/", "kubectl.kubernetes.io/last-applied", "cert-manager.io/inject-ca"];

impl Definition {
    /// The types of one version, as a module of Rust that needs `windlass`, `schemars` and `serde`.
    pub fn rust(&self, version: &str, options: &Options) -> Result<Module, Error> {
        let version = self.version(version)?;
        let no_schema = || Error::NoSchema { name: self.name.clone(), version: version.name.clone() };
        let mut root = version.schema().ok_or_else(no_schema)?.clone();
        let kind = &self.names.kind;
        if !names::is_type(kind) {
            return Err(Error::Kind { name: self.name.clone(), kind: kind.clone() });
        }
        let mut lost = Vec::new();
        hoisted(&mut root, "", &mut lost);
        let reserved = ["", "Spec", "Status", "Fields"].map(|end| format!("{kind}{end}"));
        let mut plan = Plan::new(options, reserved);
        plan.lost = lost;
        self.root(version, &root, &mut plan);
        Ok(Module { source: self.assemble(version, &plan), lost: plan.lost })
    }

    /// Writes the struct that the derive stands on, and the status.
    fn root(&self, version: &Version, root: &Schema, plan: &mut Plan<'_>) {
        let kind = &self.names.kind;
        let fields: Vec<&str> = properties(root).into_iter().map(|(name, _)| name).collect();
        let own = |name: &&&str| !["apiVersion", "kind", "metadata", "status"].contains(*name);
        let whole = fields.iter().filter(own).any(|name| *name != "spec") || !fields.contains(&"spec");
        let status = child(root, "properties").and_then(|all| all.get("status")).and_then(Value::as_object);
        let spec = child(root, "properties").and_then(|all| all.get("spec")).and_then(Value::as_object);

        let mut lose =
            |path: &str, what: &str| plan.lost.push(Lost { path: path.to_owned(), what: what.to_owned() });
        if let Some(metadata) = child(root, "properties").and_then(|all| all.get("metadata")?.as_object())
            && metadata.len() > 1
        {
            lose("metadata", "the derive says nothing about the metadata");
        }
        match (version.has_status(), status) {
            (true, None) => lose("status", "the derive gives the status a schema"),
            (false, Some(_)) => lose("status", "the derive makes the status a subresource"),
            _ => {}
        }
        if version.scale().is_some() && !version.has_status() && status.is_none() {
            lose("", "the derive has the scale subresource only beside that of the status");
        }
        if !whole && !strings(root, "required").contains(&"spec") {
            lose("spec", "the derive makes it required");
        }
        if status.is_some_and(|status| !flag(status, "nullable")) {
            lose("status", "the derive lets it be null");
        }
        for (name, node) in [("spec", spec.filter(|_| !whole)), ("status", status)] {
            if node.is_some_and(|node| crate::schema::default(node).is_some()) {
                lose(name, "the derive gives it no default");
            }
        }
        let keywords = ["type", "properties", "required", "description", "x-kubernetes-validations", "title"];
        for keyword in root.keys().filter(|keyword| !keywords.contains(&keyword.as_str())) {
            lose("", &format!("the derive has no place for {keyword} at the root"));
        }
        let has_status = version.has_status() || status.is_some();
        let mut head = self.head(version, root, has_status, whole, plan);
        let (name, node, place) = if whole {
            let mut node = root.clone();
            node.remove("description");
            node.remove("x-kubernetes-validations");
            if let Some(Value::Object(all)) = node.get_mut("properties") {
                all.retain(|name, _| !["apiVersion", "kind", "metadata", "status"].contains(&name.as_str()));
            }
            (format!("{kind}Fields"), node, Location::new("", kind))
        } else {
            (format!("{kind}Spec"), spec.cloned().unwrap_or_default(), Location::new("spec", kind))
        };
        head.push(crates(&plan.options.sdk, items(root, "x-kubernetes-validations").is_empty()));
        let index = plan.items.len();
        let default = plan.write(&node, &place, &name, &head, "CustomResource, ");
        if default {
            let with = "#[kube(derive = \"PartialEq\", derive = \"Default\")]\n";
            plan.items[index] = plan.items[index].replacen("#[kube(derive = \"PartialEq\")]\n", with, 1);
        }
        if has_status {
            let empty = Schema::new();
            let node = status.unwrap_or(&empty);
            plan.write(node, &Location::new("status", kind), &format!("{kind}Status"), &[], "");
        }
    }

    /// `#[kube(..)]`.
    fn head(
        &self,
        version: &Version,
        root: &Schema,
        status: bool,
        whole: bool,
        plan: &mut Plan<'_>,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = |items: &[String]| lines.push(print::attribute(0, "kube", items));
        let pair = |name: &str, value: &str| format!("{name} = {}", print::string(value));
        let kind = &self.names.kind;
        line(&[pair("group", &self.group), pair("version", &version.name), pair("kind", kind)]);
        let mut items = vec![pair("plural", &self.names.plural), pair("singular", &self.names.singular)];
        items.extend(self.names.short_names.iter().map(|name| pair("shortname", name)));
        items.extend(self.names.categories.iter().map(|name| pair("category", name)));
        if self.scope == Scope::Namespaced {
            items.push("namespaced".to_owned());
        }
        line(&items);
        if status {
            line(&[pair("status", &format!("{kind}Status"))]);
        }
        line(&["derive = \"PartialEq\"".to_owned()]);
        if whole {
            line(&["no_spec".to_owned()]);
        }
        if !version.storage {
            line(&["storage = false".to_owned()]);
        }
        if !version.served {
            line(&["served = false".to_owned()]);
        }
        if version.deprecated {
            let warning = version.deprecation_warning.as_deref();
            line(&[warning.map_or("deprecated".to_owned(), |warning| pair("deprecated", warning))]);
        }
        if !text(root, "description").is_empty() {
            line(&[pair("doc", text(root, "description").trim())]);
        }
        if let Some(scale) = version.scale() {
            let mut items = vec![
                pair("spec_replicas_path", &scale.spec_replicas_path),
                pair("status_replicas_path", &scale.status_replicas_path),
            ];
            items.extend(scale.label_selector_path.as_ref().map(|path| pair("label_selector_path", path)));
            line(&[format!("scale({})", items.join(", "))]);
        }
        for column in &version.printer_columns {
            let mut items = vec![
                pair("name", &column.name),
                pair("type_", &column.type_),
                pair("json_path", &column.json_path),
            ];
            items.extend(column.format.as_ref().map(|format| pair("format", format)));
            items.extend(column.description.as_ref().map(|text| pair("description", text)));
            items.extend(column.priority.map(|priority| format!("priority = {priority}")));
            line(&[format!("printcolumn({})", items.join(", "))]);
        }
        for path in version.selectable_fields() {
            line(&[pair("selectable", path)]);
        }
        for (name, entries) in [("label", &self.labels), ("annotation", &self.annotations)] {
            for (key, value) in
                entries.iter().filter(|(key, _)| !TOOLS.iter().any(|tool| key.starts_with(tool)))
            {
                line(&[format!("{name}({}, {})", print::string(key), print::string(value))]);
            }
        }
        let (rules, complete) = patch::root_rules(root);
        if !complete {
            let what = "the derive cannot say a rule that has a message and a messageExpression";
            plan.lost.push(Lost { path: String::new(), what: what.to_owned() });
        }
        if !rules.is_empty() {
            let attribute = format!("x_kube(crates(kube_core = \"{}::kube::core\"))", plan.options.sdk);
            lines.push(print::attribute(0, "kube", &[pair("attr", &attribute)]));
        }
        lines.extend(rules.into_iter().map(|rule| print::verbatim(0, "kube", &[rule])));
        lines
    }

    fn assemble(&self, version: &Version, plan: &Plan<'_>) -> String {
        let sdk = &plan.options.sdk;
        let mut source = String::new();
        let (group, version, kind) = (&self.group, &version.name, &self.names.kind);
        source.push_str(&format!("//! The types of `{group}/{version}`, kind `{kind}`.\n"));
        for lost in &plan.lost {
            let path = if lost.path.is_empty() { "The definition" } else { &lost.path };
            source.push_str(&print::docs(0, &format!("- `{path}`: {}.", lost.what)).replace("///", "//!"));
        }
        source = source.replacen(
            ".\n//! - ",
            ".\n//!\n//! What the definition says and these types do not:\n//!\n//! - ",
            1,
        );
        source.push('\n');
        let mut allow = |lints: &[&str], reason: &str| {
            let reason = format!("reason = {reason:?}");
            let items: Vec<String> = lints.iter().map(|lint| (*lint).to_owned()).chain([reason]).collect();
            source.push_str(&print::attribute(0, "!allow", &items).replace("#[!allow", "#![allow"));
        };
        if plan.kube_schema {
            allow(&["unreachable_pub"], "KubeSchema makes a public copy of each struct inside a function");
        }
        let foreign =
            |line: &str| line.trim_start().starts_with("/// ") && line.contains(['[', '<', '*', '-', ':']);
        let described = plan.items.iter().flat_map(|item| item.lines()).any(foreign);
        if described {
            let lints =
                ["clippy::doc_lazy_continuation", "rustdoc::bare_urls", "rustdoc::broken_intra_doc_links"];
            allow(&lints, "the descriptions are the definition's");
        }
        let columns = self.version(version).is_ok_and(|version| version.printer_columns.len() > 1);
        if columns {
            allow(&["clippy::duplicated_attributes"], "two columns may be of the same type");
        }
        if described || columns || plan.kube_schema {
            source.push('\n');
        }
        source.push_str(&imports(plan));
        for item in &plan.items {
            source.push('\n');
            source.push_str(item);
        }
        for (name, (ty, expression)) in &plan.defaults {
            source.push_str(&format!("\nfn {name}() -> {ty} {{\n    {expression}\n}}\n"));
        }
        for (name, (path, _)) in &plan.schemas {
            let constant = name.to_uppercase();
            source.push_str(&format!("\n/// The schema of `{path}`, as the definition has it.\n"));
            source.push_str(&format!("fn {name}(_: &mut SchemaGenerator) -> Schema {{\n"));
            let call = format!("{sdk}::serde_json::from_str({constant})");
            source.push_str(&format!("    {}\n}}\n", print::expect(&call, "the schema must be JSON")));
        }
        for (name, (_, document)) in &plan.schemas {
            let (constant, text) = (name.to_uppercase(), print::raw(&format!("\n{document}\n")));
            source.push_str(&format!("\nconst {constant}: &str = {text};\n"));
        }
        source
    }
}

/// Where the derive finds kube and its friends.
fn crates(sdk: &str, plain: bool) -> String {
    let mut items = vec![
        format!("kube_core = \"{sdk}::kube::core\""),
        format!("k8s_openapi = \"{sdk}::k8s_openapi\""),
        format!("serde_json = \"{sdk}::serde_json\""),
    ];
    if !plain {
        items.insert(0, format!("kube = \"{sdk}::kube\""));
    }
    print::attribute(0, "kube", &[format!("crates({})", items.join(", "))])
}

fn imports(plan: &Plan<'_>) -> String {
    let sdk = &plan.options.sdk;
    let mut text = String::new();
    if plan.imports.contains("std::collections::BTreeMap") {
        text.push_str("use std::collections::BTreeMap;\n\n");
    }
    let mut schemars = Vec::new();
    if plan.json_schema {
        schemars.push("JsonSchema");
    }
    if !plan.schemas.is_empty() {
        schemars.extend(["Schema", "SchemaGenerator"]);
    }
    let braces = |names: &[&str]| match names {
        [only] => (*only).to_owned(),
        names => format!("{{{}}}", names.join(", ")),
    };
    let mut lines = vec!["use serde::{Deserialize, Serialize};".to_owned()];
    if !schemars.is_empty() {
        lines.push(format!("use schemars::{};", braces(&schemars)));
    }
    let kube: &[&str] =
        if plan.kube_schema { &["CustomResource", "KubeSchema"] } else { &["CustomResource"] };
    lines.push(format!("use {sdk}::kube::{};", braces(kube)));
    let others = plan.imports.iter().filter(|path| !path.starts_with("std::"));
    lines.extend(others.map(|path| format!("use {sdk}::{path};")));
    lines.sort();
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Takes out of a schema what kube's derive would take apart: it lifts the properties of alternatives to the level above,
/// and panics where they differ from those that are there.
fn hoisted(schema: &mut Schema, path: &str, lost: &mut Vec<Lost>) {
    for keyword in ["oneOf", "anyOf", "allOf"] {
        let Some(Value::Array(alternatives)) = schema.get(keyword) else { continue };
        let lifts = |value: &Value| {
            let text = value.to_string();
            text.contains("\"properties\":") || (text.contains("\"enum\":") && keyword != "anyOf")
        };
        if alternatives.iter().any(lifts) {
            schema.remove(keyword);
            let what =
                format!("kube's derive takes the alternatives of {keyword} apart, so they are left out");
            lost.push(Lost { path: path.to_owned(), what });
        }
    }
    let dot = if path.is_empty() { "" } else { "." };
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            if let Value::Object(property) = property {
                hoisted(property, &format!("{path}{dot}{name}"), lost);
            }
        }
    }
    for (keyword, mark) in [("items", "[]"), ("additionalProperties", "{}")] {
        if let Some(Value::Object(below)) = schema.get_mut(keyword) {
            hoisted(below, &format!("{path}{mark}"), lost);
        }
    }
}
