//! Definitions with drawn schemas: types, bounds, defaults, list types and rules.

use serde_json::{Map, Value, json};

use super::{steps::Step, types::Kind};
use crate::dice::Dice;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const META: &str = "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// A definition, and the kind that it makes.
pub(super) struct Definition {
    pub(super) body: Value,
    pub(super) kind: Kind,
}

impl Definition {
    /// The steps after which the kind is served.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut create = Step::new("POST", DEFINITIONS, Some(self.body.clone()))
            .except("/status", "the real server fills it in a moment later")
            .except("/metadata/generation", "the real server counts its own later writes");
        create.needed = true;
        let mut wait = Step::new("WAIT", self.kind.collection(), None);
        wait.needed = true;
        vec![create, wait]
    }

    pub(super) fn removal() -> Step {
        let mut step = Step::new("DELETE", format!("{DEFINITIONS}/things.$id.example.com"), None);
        step.directives.push("@differs the real server has written the status meanwhile".into());
        step
    }

    /// A creation that is only tried, whose schema is bent in one place.
    pub(super) fn tried(mut self, dice: &mut Dice) -> Step {
        let schema = &mut self.body["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
        bend(dice, schema);
        Step::new("POST", format!("{DEFINITIONS}?dryRun=All"), Some(self.body))
            .except("/status", "the real server fills it in a moment later")
    }
}

/// Draws a definition that every server accepts.
pub(super) fn definition(dice: &mut Dice) -> Definition {
    let spec = object(dice, 0);
    let mut status = json!({"type": "object", "properties": {"replicas": {"type": "integer"}, "phase": {"type": "string"}}});
    if dice.chance(30) {
        status["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    let mut properties = json!({"spec": spec, "status": status});
    if dice.chance(20) {
        let extra = any(dice, 1);
        properties["extra"] = extra;
    }
    let schema = json!({"type": "object", "properties": properties});
    let with_status = dice.chance(60);
    let with_scale = dice.chance(30);
    let mut subresources = Map::new();
    let mut names = Vec::new();
    if with_status {
        subresources.insert("status".into(), json!({}));
        names.push("status".to_owned());
    }
    if with_scale {
        subresources.insert(
            "scale".into(),
            json!({"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}),
        );
        names.push("scale".to_owned());
    }
    let mut version =
        json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
    if !subresources.is_empty() {
        version["subresources"] = Value::Object(subresources);
    }
    let body = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.$id.example.com"},
        "spec": {
            "group": "$id.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [version],
        },
    });
    let mut typed = schema;
    typed["properties"]["metadata"] = json!({"$ref": META});
    let base =
        json!({"apiVersion": "$id.example.com/v1", "kind": "Thing", "metadata": {"name": "a"}, "spec": {}});
    let kind = Kind {
        group_version: "$id.example.com/v1".into(),
        plural: "things".into(),
        namespaced: true,
        subresources: names,
        only_tried: false,
        base,
        schema: typed,
    };
    Definition { body, kind }
}

fn any(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = match dice.below(if depth > 2 { 5 } else { 9 }) {
        0 | 1 => string(dice),
        2 => integer(dice),
        3 => json!({"type": "boolean"}),
        4 => json!({"x-kubernetes-int-or-string": true}),
        5 | 6 => array(dice, depth),
        7 => map(dice, depth),
        _ => object(dice, depth),
    };
    if dice.chance(8) {
        schema["nullable"] = json!(true);
    }
    if schema["type"] == "boolean" && dice.chance(40) {
        schema["default"] = json!(true);
    }
    schema
}

fn string(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": "string"});
    match dice.below(8) {
        0 => schema["enum"] = json!(["a", "b", "web"]),
        1 => schema["maxLength"] = json!(3),
        2 => schema["minLength"] = json!(2),
        3 => schema["pattern"] = json!("^[a-z]+$"),
        4 => {
            schema["format"] = json!(*dice.pick(&[
                "date-time",
                "ipv4",
                "uuid",
                "byte",
                "duration",
                "uri",
                "cidr",
                "date",
                "email",
                "odd"
            ]));
        }
        _ => {}
    }
    if dice.chance(25) && schema.get("format").is_none() {
        schema["default"] = json!(if schema.get("enum").is_some() { "web" } else { "abc" });
    }
    if dice.chance(20) {
        rule(
            dice,
            &mut schema,
            &[
                "self != 'b'",
                "self == oldSelf",
                "self.startsWith('a') || self.size() > 1",
                "self.matches('^[a-z]*$')",
            ],
        );
    }
    schema
}

fn integer(dice: &mut Dice) -> Value {
    let mut schema = json!({"type": *dice.pick(&["integer", "integer", "number"])});
    match dice.below(6) {
        0 => schema["minimum"] = json!(1),
        1 => {
            schema["maximum"] = json!(10);
            if dice.chance(40) {
                schema["exclusiveMaximum"] = json!(true);
            }
        }
        2 => schema["multipleOf"] = json!(5),
        3 => schema["format"] = json!(*dice.pick(&["int32", "int64"])),
        4 => schema["enum"] = json!([1, 5]),
        _ => {}
    }
    if dice.chance(25) {
        schema["default"] = json!(5);
    }
    if dice.chance(20) && schema["type"] == "integer" {
        rule(dice, &mut schema, &["self != 3", "self >= oldSelf", "self % 2 == 1 || self == 0"]);
    }
    schema
}

fn array(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = json!({"type": "array", "maxItems": 5});
    match dice.below(4) {
        0 => {
            schema["x-kubernetes-list-type"] = json!("set");
            schema["items"] = json!({"type": *dice.pick(&["string", "integer"])});
        }
        1 => {
            schema["x-kubernetes-list-type"] = json!("map");
            schema["x-kubernetes-list-map-keys"] = json!(["key"]);
            let mut items = object(dice, depth + 1);
            items["properties"]["key"] = json!({"type": "string"});
            items["required"] = json!(["key"]);
            items.as_object_mut().unwrap().remove("default");
            schema["items"] = items;
        }
        2 => {
            schema["x-kubernetes-list-type"] = json!("atomic");
            schema["items"] = any(dice, depth + 1);
        }
        _ => schema["items"] = any(dice, depth + 1),
    }
    if dice.chance(20) {
        schema["minItems"] = json!(1);
    }
    if dice.chance(15) {
        rule(dice, &mut schema, &["self.size() < 3", "oldSelf.size() <= self.size()"]);
    }
    schema
}

fn map(dice: &mut Dice, depth: usize) -> Value {
    let mut schema = json!({"type": "object", "additionalProperties": any(dice, depth + 1)});
    if dice.chance(20) {
        schema["maxProperties"] = json!(2);
    }
    if dice.chance(15) {
        schema["x-kubernetes-map-type"] = json!("atomic");
    }
    schema
}

fn object(dice: &mut Dice, depth: usize) -> Value {
    let mut properties = Map::new();
    for name in ["name", "replicas", "mode", "items"].iter().take(1 + dice.below(4)) {
        let schema = if *name == "replicas" { integer(dice) } else { any(dice, depth + 1) };
        properties.insert((*name).to_owned(), schema);
    }
    let first = properties.keys().next().unwrap().clone();
    let mut schema = json!({"type": "object", "properties": properties});
    if dice.chance(15) && depth > 0 {
        schema["required"] = json!([first]);
    }
    if dice.chance(15) {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if dice.chance(10) && depth > 0 && schema.get("required").is_none() {
        schema["default"] = json!({});
    }
    if dice.chance(20) {
        rule(
            dice,
            &mut schema,
            &["!has(self.name) || has(self.name)", "has(self.name) || !has(oldSelf.name)"],
        );
    }
    schema
}

fn rule(dice: &mut Dice, schema: &mut Value, rules: &[&str]) {
    let mut rule = json!({"rule": *dice.pick(rules)});
    match dice.below(4) {
        0 => rule["message"] = json!("must be right"),
        1 => rule["messageExpression"] = json!("'wrong'"),
        2 => {
            rule["reason"] = json!(*dice.pick(&[
                "FieldValueForbidden",
                "FieldValueInvalid",
                "FieldValueRequired",
                "FieldValueDuplicate"
            ]));
        }
        _ => {}
    }
    schema["x-kubernetes-validations"] = json!([rule]);
}

/// Puts something into a schema that may well be refused.
fn bend(dice: &mut Dice, schema: &mut Value) {
    let inner = match schema.get("properties").and_then(Value::as_object).map(Map::len) {
        Some(count) if count > 0 && dice.chance(80) => {
            let index = dice.below(count);
            schema["properties"].as_object_mut().unwrap().values_mut().nth(index)
        }
        _ if schema.get("items").is_some() && dice.chance(60) => schema.get_mut("items"),
        _ => None,
    };
    if let Some(inner) = inner {
        return bend(dice, inner);
    }
    let changes: &[(&str, Value)] = &[
        ("type", json!("odd")),
        ("type", json!("")),
        ("type", json!("object")),
        ("default", json!("x")),
        ("default", json!({"a": 1})),
        ("default", json!(null)),
        ("enum", json!([])),
        ("enum", json!(["a", "a"])),
        ("pattern", json!("(")),
        ("minimum", json!("x")),
        ("maxLength", json!(-1)),
        ("format", json!("date-time")),
        ("nullable", json!(true)),
        ("$ref", json!("#/x")),
        ("uniqueItems", json!(true)),
        ("additionalProperties", json!(false)),
        ("additionalProperties", json!(true)),
        ("x-kubernetes-list-type", json!("odd")),
        ("x-kubernetes-list-type", json!("map")),
        ("x-kubernetes-list-type", json!("set")),
        ("x-kubernetes-list-map-keys", json!(["x"])),
        ("x-kubernetes-map-type", json!("granular")),
        ("x-kubernetes-preserve-unknown-fields", json!(false)),
        ("x-kubernetes-embedded-resource", json!(true)),
        ("x-kubernetes-int-or-string", json!(true)),
        ("allOf", json!([{"type": "string"}])),
        ("anyOf", json!([{"required": ["a"]}])),
        ("oneOf", json!([{"minimum": 1}, {"properties": {"x": {"pattern": "a"}}}])),
        ("not", json!({"enum": ["a"]})),
        ("items", json!({"type": "string"})),
        ("required", json!(["missing"])),
        ("properties", json!({"Bad Name": {"type": "string"}})),
        ("definitions", json!({"a": {"type": "string"}})),
        ("dependencies", json!({"a": ["b"]})),
        ("patternProperties", json!({"a": {"type": "string"}})),
        ("additionalItems", json!(true)),
        ("id", json!("x")),
        ("externalDocs", json!({"url": "u"})),
        ("x-kubernetes-validations", json!([{"rule": "self.nothing == 1"}])),
        ("x-kubernetes-validations", json!([{"rule": "1 + 1"}])),
        ("x-kubernetes-validations", json!([{"rule": "("}])),
        ("x-kubernetes-validations", json!([{"rule": ""}])),
        ("x-kubernetes-validations", json!([{"rule": "true", "message": "a\nb"}])),
        ("x-kubernetes-validations", json!([{"rule": "true", "reason": "Odd"}])),
        ("x-kubernetes-validations", json!([{"rule": "true", "fieldPath": ".x"}])),
        ("x-kubernetes-validations", json!([{"rule": "true", "messageExpression": "1"}])),
        ("x-kubernetes-validations", json!([{"rule": "true", "optionalOldSelf": true}])),
    ];
    let (key, value) = dice.pick(changes);
    schema[*key] = value.clone();
}
