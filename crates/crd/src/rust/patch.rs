//! Attributes for what a type does not say: schemars knows what the type is, and whatever the schema says beyond that
//! becomes an attribute, of schemars' own or of kube's `KubeSchema` where they have one.

use serde_json::Value;

use super::{print, types::Type};
use crate::schema::{self, Schema, child, flag, is_int_or_string, items, normal, preserves, strings, text};

/// Below this many characters, several items share an attribute.
const SHORT: usize = 90;
/// Above this many characters, a schema is not part of an attribute.
const LONG: usize = 160;

/// What a struct says beyond its fields. `bare` is one that has none.
pub(super) fn container(node: &Schema, bare: bool) -> Patch {
    let mut patch = Patch::default();
    let named = child(node, "properties").is_some_and(|properties| !properties.is_empty());
    let mut schema = normal(node);
    for keyword in
        ["type", "properties", "required", "default", "nullable", "x-kubernetes-preserve-unknown-fields"]
    {
        schema.remove(keyword);
    }
    let additional = schema.remove("additionalProperties");
    if !named && !bare {
        if preserves(node) {
            patch.extend.push(("x-kubernetes-preserve-unknown-fields".to_owned(), Value::Bool(true)));
            patch.extend.push(("additionalProperties".to_owned(), Value::Null));
        } else if let Some(additional) = additional {
            patch.extend.push(("additionalProperties".to_owned(), guarded(&additional)));
        }
    }
    if let Some(rules) = schema.remove("x-kubernetes-validations") {
        patch.rules(&rules);
    }
    patch.extend.extend(sorted(schema));
    patch
}

/// What the attributes must add to what the type says.
#[derive(Default)]
pub(super) struct Patch {
    /// Items of `#[schemars(..)]`.
    pub(super) meta: Vec<String>,
    /// Keywords of the schema, as they are.
    pub(super) extend: Vec<(String, Value)>,
    /// Items of `#[x_kube(..)]`.
    pub(super) kube: Vec<String>,
    /// Nothing less than the whole schema will do.
    pub(super) whole: bool,
}

impl Patch {
    pub(super) fn new(node: &Schema, ty: &Type) -> Self {
        let mut patch = Self::default();
        let mut source = normal(node);
        source.remove("default");
        let own = ty.predicted(node).as_object().cloned().unwrap_or_default();
        let plain = !is_int_or_string(node) && *ty != Type::Value;
        if plain {
            patch.meta = validations(&mut source, &own);
        }
        if let Some(rules) =
            source.remove("x-kubernetes-validations").filter(|_| !matches!(ty, Type::Struct(..)))
        {
            patch.rules(&rules);
        }
        patch.merge(&mut source, &own);
        for (keyword, value) in sorted(source.clone()) {
            if own.get(&keyword) == Some(&value) {
                continue;
            }
            match keyword.as_str() {
                "items" if inner(&value, own.get("items")).is_some() => {
                    patch.meta.extend(inner(&value, own.get("items")));
                }
                "items" | "additionalProperties" => {
                    let raw = guarded(&node[&keyword]);
                    patch.whole |= print::tokens(&raw).len() > LONG;
                    patch.extend.push((keyword, raw));
                }
                "properties" | "required" => patch.whole = true,
                _ => patch.extend.push((keyword, value)),
            }
        }
        for keyword in own.keys().filter(|keyword| !source.contains_key(*keyword)) {
            match keyword.as_str() {
                "properties" | "required" => patch.whole = true,
                // Taken out above, since attributes say them.
                name if plain && VALIDATIONS.contains(&name) && node.contains_key(name) => {}
                "x-kubernetes-map-type" => {}
                "x-kubernetes-validations" if matches!(ty, Type::Struct(..)) => {}
                _ => patch.extend.push((keyword.clone(), Value::Null)),
            }
        }
        patch
    }

    /// CEL rules, in kube's words where it has them.
    fn rules(&mut self, rules: &Value) {
        let written: Option<Vec<String>> = rules
            .as_array()
            .into_iter()
            .flatten()
            .map(|rule| rule.as_object().and_then(self::rule))
            .collect();
        match written {
            Some(rules) => self.kube.extend(rules),
            None => self.extend.push(("x-kubernetes-validations".to_owned(), rules.clone())),
        }
    }

    /// How two writers of a list or a map meet.
    fn merge(&mut self, source: &mut Schema, own: &Schema) {
        for keyword in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
            let differs = source.get(keyword) != own.get(keyword);
            let strategy = match source.get(keyword).and_then(Value::as_str) {
                Some("set") => "ListMerge::Set".to_owned(),
                Some("atomic") => "MapMerge::Atomic".to_owned(),
                Some("map") => {
                    let keys = strings(source, "x-kubernetes-list-map-keys");
                    let keys: Vec<_> =
                        keys.iter().map(|key| format!("{}.into()", print::string(key))).collect();
                    source.remove("x-kubernetes-list-map-keys");
                    format!("ListMerge::Map(vec![{}])", keys.join(", "))
                }
                _ => continue,
            };
            source.remove(keyword);
            if differs {
                self.kube.push(format!("merge_strategy = {strategy}"));
            }
        }
    }

    pub(super) fn kube_schema(&self) -> bool {
        !self.kube.is_empty()
    }

    /// Tells the derive where kube is.
    pub(super) fn crates(&mut self, sdk: &str) {
        self.kube.insert(0, format!("crates(kube_core = \"{sdk}::kube::core\")"));
    }

    /// The attributes.
    pub(super) fn lines(&self, indent: usize) -> String {
        let mut lines = String::new();
        let together = print::attribute(indent, "schemars", &self.meta);
        if !self.meta.is_empty() && together.len() < SHORT {
            lines.push_str(&together);
        } else {
            for item in &self.meta {
                lines.push_str(&print::attribute(indent, "schemars", std::slice::from_ref(item)));
            }
        }
        if !self.extend.is_empty() {
            let extend: Vec<_> = self
                .extend
                .iter()
                .map(|(key, value)| format!("{key:?} = {}", print::tokens(value)))
                .collect();
            lines.push_str(&print::verbatim(indent, "schemars", &[format!("extend({})", extend.join(", "))]));
        }
        for item in &self.kube {
            lines.push_str(&print::verbatim(indent, "x_kube", std::slice::from_ref(item)));
        }
        lines
    }
}

const VALIDATIONS: [&str; 7] =
    ["minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "pattern"];

/// Takes what schemars has attributes for out of a schema.
fn validations(source: &mut Schema, own: &Schema) -> Vec<String> {
    let mut take = |keyword: &str| {
        let value = source.remove(keyword)?;
        (own.get(keyword) != Some(&value)).then_some(value)
    };
    let mut meta = Vec::new();
    for (name, minimum, maximum) in [
        ("length", "minLength", "maxLength"),
        ("length", "minItems", "maxItems"),
        ("range", "minimum", "maximum"),
    ] {
        let bounds: Vec<_> = [("min", take(minimum)), ("max", take(maximum))]
            .into_iter()
            .filter_map(|(name, value)| Some(format!("{name} = {}", value?)))
            .collect();
        if !bounds.is_empty() {
            meta.push(format!("{name}({})", bounds.join(", ")));
        }
    }
    if let Some(Value::String(pattern)) = take("pattern") {
        meta.push(format!("regex(pattern = {})", print::string(&pattern)));
    }
    meta
}

/// `inner(..)`, where that says all that the items of a list need.
fn inner(source: &Value, own: Option<&Value>) -> Option<String> {
    let (mut source, own) = (source.as_object()?.clone(), own?.as_object()?);
    if own.contains_key("x-kubernetes-int-or-string") {
        return None;
    }
    let mut meta = validations(&mut source, own);
    if let Some(items) = source.remove("items")
        && Some(&items) != own.get("items")
    {
        meta.push(inner(&items, own.get("items"))?);
    }
    let rest = |schema: &Schema| {
        let mut schema = schema.clone();
        schema.retain(|keyword, _| keyword != "items" && !VALIDATIONS.contains(&keyword.as_str()));
        schema
    };
    let added_only = VALIDATIONS.iter().all(|keyword| !own.contains_key(*keyword));
    let text = format!("inner({})", meta.join(", "));
    (added_only && rest(&source) == rest(own) && !meta.is_empty() && text.len() < SHORT).then_some(text)
}

/// A CEL rule in kube's words, if it has them for all of it.
fn rule(rule: &Schema) -> Option<String> {
    let (message, expression) = (text(rule, "message"), text(rule, "messageExpression"));
    if !message.is_empty() && !expression.is_empty() {
        return None;
    }
    let mut text = format!("validation = Rule::new({})", print::string(schema::text(rule, "rule")));
    if !message.is_empty() {
        text.push_str(&format!(".message({})", print::string(message)));
    }
    if !expression.is_empty() {
        text.push_str(&format!(".message(Message::Expression({}.into()))", print::string(expression)));
    }
    match schema::text(rule, "reason") {
        "" => {}
        reason @ ("FieldValueForbidden"
        | "FieldValueRequired"
        | "FieldValueDuplicate"
        | "FieldValueInvalid") => {
            text.push_str(&format!(".reason(Reason::{reason})"));
        }
        _ => return None,
    }
    if let Some(path) = rule.get("fieldPath").and_then(Value::as_str) {
        text.push_str(&format!(".field_path({})", print::string(path)));
    }
    if flag(rule, "optionalOldSelf") {
        text.push_str(".optional_old_self(true)");
    }
    Some(text)
}

/// The rules of the root, as `#[kube(..)]` takes them, and those that it cannot take.
pub(super) fn root_rules(root: &Schema) -> (Vec<String>, bool) {
    let rules = items(root, "x-kubernetes-validations");
    let written: Vec<String> =
        rules.iter().filter_map(|rule| rule.as_object().and_then(self::rule)).collect();
    let complete = written.len() == rules.len();
    (written, complete)
}

/// A schema that kube's derive leaves as it is: an int-or-string that may be missing says that it may not be null.
pub(super) fn guarded(value: &Value) -> Value {
    let Value::Object(schema) = value else { return value.clone() };
    let mut schema = schema.clone();
    if is_int_or_string(&schema) {
        // It takes the types out of these, and they say nothing more then.
        schema.retain(|keyword, value| {
            !(matches!(keyword.as_str(), "anyOf" | "allOf") && schema::says_int_or_string(Some(value)))
        });
    }
    let required: Vec<String> = strings(&schema, "required").into_iter().map(str::to_owned).collect();
    for keyword in ["items", "additionalProperties"] {
        if let Some(below) = schema.get_mut(keyword) {
            *below = guarded(below);
        }
    }
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for (name, property) in properties {
            *property = guarded(property);
            if let Value::Object(property) = property
                && flag(property, "x-kubernetes-int-or-string")
                && !property.contains_key("nullable")
                && !required.contains(name)
            {
                property.insert("nullable".to_owned(), Value::Bool(false));
            }
        }
    }
    Value::Object(schema)
}

fn sorted(schema: Schema) -> Vec<(String, Value)> {
    let mut entries: Vec<_> = schema.into_iter().collect();
    entries.sort_by(|(one, _), (other, _)| one.cmp(other));
    entries
}
