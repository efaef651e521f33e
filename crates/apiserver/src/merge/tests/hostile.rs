//! Arbitrary JSON against every entry point: whatever a client sends, the answer is a value or an
//! error, never a panic.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::built_in;
use crate::{
    merge::{ApplyOptions, FieldSet, UpdateOptions, Versions, apply, strategic, track_update},
    schema::{TypeRef, structural_errors},
};

static DEPLOYMENT: LazyLock<TypeRef> = LazyLock::new(|| built_in("io.k8s.api.apps.v1.Deployment"));

/// Keys that mean something to some layer, so that values land where types are expected.
const KEYS: [&str; 28] = [
    "apiVersion",
    "kind",
    "metadata",
    "spec",
    "status",
    "template",
    "containers",
    "name",
    "image",
    "ports",
    "containerPort",
    "protocol",
    "labels",
    "annotations",
    "finalizers",
    "managedFields",
    "ownerReferences",
    "resources",
    "limits",
    "cpu",
    "replicas",
    "$patch",
    "$retainKeys",
    "$setElementOrder/containers",
    "$deleteFromPrimitiveList/finalizers",
    "properties",
    "items",
    "type",
];

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|float| json!(float)),
        "(delete|replace|merge|object|array|100m|\\PC{0,6})".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, |inner| {
        let key = prop::sample::select(&KEYS[..]);
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|entries| {
                let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
                Value::Object(entries.collect::<Map<_, _>>())
            }),
        ]
    })
}

/// An object that gets past the first look, whatever is inside.
fn objects() -> impl Strategy<Value = Value> {
    (json_values(), json_values()).prop_map(|(metadata, spec)| {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})
    })
}

fn normalized(value: &Value) -> Value {
    let mut value = value.clone();
    DEPLOYMENT.normalize(&mut value);
    value
}

proptest! {
    #[test]
    fn apply_and_update_survive_any_objects(live in objects(), intent in objects(), force: bool) {
        let none = FieldSet::new();
        let options = ApplyOptions {
            manager: "m", force, subresource: "", api_version: "apps/v1",
            time: "2026-01-01T00:00:00Z", reset: &none, zero: Some(DEPLOYMENT.zero_ref()), versions: Versions::default(),
        };
        let _ = apply(&DEPLOYMENT, Some(&live), &intent, &options);
        let _ = apply(&DEPLOYMENT, None, &intent, &options);
        let options = UpdateOptions {
            manager: "m", subresource: "", api_version: "apps/v1",
            time: "2026-01-01T00:00:00Z", reset: &none, zero: Some(DEPLOYMENT.zero_ref()), versions: Versions::default(),
        };
        let mut new = intent.clone();
        track_update(&DEPLOYMENT, Some(&live), &mut new, &options);
        track_update(&DEPLOYMENT, None, &mut new, &options);
    }

    #[test]
    fn patches_survive_any_json(object in objects(), patch in json_values()) {
        let _ = strategic(&DEPLOYMENT, &object, &patch);
    }

    #[test]
    fn normalizing_and_pruning_settle_at_once(object in objects()) {
        let once = normalized(&object);
        prop_assert_eq!(&normalized(&once), &once);
        let mut pruned = once;
        DEPLOYMENT.prune(&mut pruned);
        prop_assert!(DEPLOYMENT.prune(&mut pruned).is_empty());
        let _ = DEPLOYMENT.decode_error(&pruned);
    }

    #[test]
    fn any_json_is_a_schema_or_an_error(schema in json_values(), object in json_values()) {
        let _ = structural_errors(&schema, "schema", false, &|_| None);
        if let Ok(ty) = TypeRef::from_openapi(&schema, &|_| None) {
            let mut value = object;
            ty.prune(&mut value);
            ty.apply_defaults(&mut value);
            let _ = ty.validate(&value, None);
        }
    }
}
