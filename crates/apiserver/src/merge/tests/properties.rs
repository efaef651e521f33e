//! What must hold for any object: applying is idempotent, keeps what was asked, and takes back
//! what is no longer asked.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::custom;
use crate::{
    merge::{ApplyOptions, FieldSet, Versions, apply, fields_of},
    schema::TypeRef,
};

static WIDGET: LazyLock<TypeRef> = LazyLock::new(|| {
    custom(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "size": {"type": "integer"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "args": {"type": "array", "items": {"type": "string"}},
            "parts": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "required": ["name"], "properties": {
                    "name": {"type": "string"},
                    "weight": {"type": "integer"},
                }},
            },
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }))
});

fn widget() -> &'static TypeRef {
    &WIDGET
}

fn options<'a>(manager: &'a str, none: &'a FieldSet) -> ApplyOptions<'a> {
    ApplyOptions {
        manager,
        force: true,
        subresource: "",
        api_version: "example.com/v1",
        time: "2026-01-01T00:00:00Z",
        reset: none,
        zero: None,
        versions: Versions::default(),
    }
}

fn widget_with(spec: &Value) -> Value {
    let mut object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
    });
    if spec.as_object().is_some_and(|spec| !spec.is_empty()) {
        object["spec"] = spec.clone();
    }
    object
}

prop_compose! {
    fn part()(name in "[a-d]", weight in prop::option::of(0_i64..3)) -> Value {
        match weight {
            Some(weight) => json!({"name": name, "weight": weight}),
            None => json!({"name": name}),
        }
    }
}

fn unique_by_name(parts: Vec<Value>) -> Value {
    let mut seen = std::collections::BTreeSet::new();
    parts.into_iter().filter(|part| seen.insert(part["name"].to_string())).collect()
}

fn specs() -> impl Strategy<Value = Value> {
    let labels = prop::collection::btree_map("[a-c]", "[x-z]", 1..3).prop_map(|map| json!(map));
    let tags = prop::collection::btree_set("[a-d]", 1..4).prop_map(|tags| json!(tags)).prop_shuffle_value();
    let args = prop::collection::vec("[a-c]", 1..3).prop_map(|args| json!(args));
    let parts = prop::collection::vec(part(), 1..4).prop_map(unique_by_name);
    let free = prop::collection::btree_map("[a-c]", 0_i64..3, 1..3).prop_map(|map| json!(map));
    (
        prop::option::of(0_i64..5),
        prop::option::of(labels),
        prop::option::of(tags),
        prop::option::of(args),
        prop::option::of(parts),
        prop::option::of(free),
    )
        .prop_map(|(size, labels, tags, args, parts, free)| {
            let fields = [
                ("size", size.map(|size| json!(size))),
                ("labels", labels),
                ("tags", tags),
                ("args", args),
                ("parts", parts),
                ("free", free),
            ];
            let spec: Map<String, Value> =
                fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
            Value::Object(spec)
        })
}

trait ShuffleValue: Strategy<Value = Value> + Sized + 'static {
    fn prop_shuffle_value(self) -> BoxedStrategy<Value> {
        self.prop_flat_map(|value| {
            let items = value.as_array().cloned().unwrap_or_default();
            Just(items).prop_shuffle().prop_map(Value::Array)
        })
        .boxed()
    }
}

impl<S: Strategy<Value = Value> + Sized + 'static> ShuffleValue for S {}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in specs(), second in specs()) {
        let (ty, none) = (widget(), FieldSet::new());
        let live = apply(ty, None, &widget_with(&first), &options("a", &none)).expect("must apply");
        let intent = widget_with(&second);
        let once = apply(ty, Some(&live), &intent, &options("b", &none)).expect("must apply");
        let twice = apply(ty, Some(&once), &intent, &options("b", &none)).expect("must apply");
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_forced_apply_holds_all_it_asked_for(first in specs(), second in specs()) {
        let (ty, none) = (widget(), FieldSet::new());
        let live = apply(ty, None, &widget_with(&first), &options("a", &none)).expect("must apply");
        let intent = widget_with(&second);
        let merged = apply(ty, Some(&live), &intent, &options("b", &none)).expect("must apply");
        let missing = fields_of(ty, &intent).difference(&fields_of(ty, &merged));
        prop_assert!(missing.is_empty(), "{:?}", missing.paths());
        for (key, value) in second.as_object().expect("a spec is an object") {
            if key == "size" || key == "args" {
                prop_assert_eq!(&merged["spec"][key], value);
            }
        }
    }

    #[test]
    fn an_empty_intent_takes_back_what_its_manager_alone_owned(first in specs(), second in specs()) {
        let (ty, none) = (widget(), FieldSet::new());
        let before = apply(ty, None, &widget_with(&first), &options("a", &none)).expect("must apply");
        let alone = widget_with(&json!({}));
        let gone = apply(ty, Some(&before), &alone, &options("a", &none)).expect("must apply");
        prop_assert!(gone.get("spec").is_none_or(Value::is_null), "{}", gone);
        prop_assert!(gone.pointer("/metadata/managedFields").is_none());

        let both = apply(ty, Some(&before), &widget_with(&second), &options("b", &none)).expect("must apply");
        let rest = apply(ty, Some(&both), &alone, &options("a", &none)).expect("must apply");
        let missing = fields_of(ty, &widget_with(&second)).difference(&fields_of(ty, &rest));
        prop_assert!(missing.is_empty(), "{:?}", missing.paths());
    }
}
