//! Nulls in custom objects: one that the schema does not allow was never said, in the object and in its status alike.

use http::Method;
use proptest::{prelude::*, test_runner::TestCaseError};
use serde_json::{Map, Value, json};

use crate::server::{Answer, DEFINITIONS, Server};

const THINGS: &str = "/apis/example.com/v1/namespaces/default/things";
const CASES: u32 = 96;

/// A schema, and a value of it in which some fields are null that must not be.
fn typed() -> impl Strategy<Value = (Value, Value)> {
    let leaf = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>()).prop_map(
        |(number, nullable, default, null)| {
            let mut schema = json!({"type": if number { "integer" } else { "string" }, "nullable": nullable});
            if default {
                schema["default"] = if number { json!(7) } else { json!("d") };
            }
            let value = if number { json!(1) } else { json!("x") };
            (schema, if null { Value::Null } else { value })
        },
    );
    leaf.prop_recursive(3, 12, 3, |inner| {
        let object = (prop::collection::vec(inner.clone(), 0..4), any::<(bool, bool)>()).prop_map(
            |(fields, (nullable, null))| {
                let (mut properties, mut object) = (Map::new(), Map::new());
                for (index, (schema, value)) in fields.into_iter().enumerate() {
                    properties.insert(format!("f{index}"), schema);
                    object.insert(format!("f{index}"), value);
                }
                let schema = json!({"type": "object", "nullable": nullable, "properties": properties});
                (schema, if null { Value::Null } else { Value::Object(object) })
            },
        );
        let map = (inner.clone(), any::<bool>()).prop_map(|((schema, value), null)| {
            let schema = json!({"type": "object", "additionalProperties": schema});
            (schema, if null { Value::Null } else { json!({"a": value, "b": value}) })
        });
        // A null among the items of a list is refused by the real server, unless they have a default.
        let list = (inner, any::<bool>()).prop_map(|((schema, value), null)| {
            let items = if value.is_null() { json!([]) } else { json!([value]) };
            (json!({"type": "array", "items": schema}), if null { Value::Null } else { items })
        });
        prop_oneof![object, map, list]
    })
}

fn definition(schema: &Value) -> Value {
    let part = json!({"type": "object", "properties": {"v": schema, "replicas": {"type": "integer"}}});
    json!({"metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
            "schema": {"openAPIV3Schema": {"type": "object",
                "properties": {"spec": part, "status": part}}}}]}})
}

fn thing(name: &str, part: &str, value: &Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, part: {"v": value}})
}

/// Writes the value into a part of a new object.
async fn written(server: &Server, verb: &str, part: &str, value: &Value) -> Answer {
    let name = format!("{verb}-{part}");
    let path = format!("{THINGS}/{name}");
    let place = if part == "status" { format!("{path}/status") } else { path };
    let mut object = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}});
    let live = server.post(THINGS, &object).await.expect_success();
    match verb {
        "put" => {
            object = thing(&name, part, value);
            object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
            server.put(&place, &object).await
        }
        "merge" => server.merge(&place, &json!({part: {"v": value}})).await,
        "json" => {
            let patch = json!([{"op": "add", "path": format!("/{part}"), "value": {"v": value}}]);
            server
                .send(Method::PATCH, &place, "application/json-patch+json", "application/json", &patch)
                .await
        }
        _ => server.apply(&place, "one", &thing(&name, part, value)).await,
    }
}

/// Whether a value has a null that its schema neither allows nor has a default for.
fn says_nothing(schema: &Value, value: &Value) -> bool {
    match value {
        Value::Null => schema["nullable"] != json!(true) && schema.get("default").is_none(),
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let declared = schema["properties"].get(key).unwrap_or(&schema["additionalProperties"]);
            says_nothing(declared, value)
        }),
        Value::Array(items) => items.iter().any(|item| says_nothing(&schema["items"], item)),
        _ => false,
    }
}

async fn agree(schema: &Value, value: &Value) -> Result<(), TestCaseError> {
    let server = Server::new();
    let defined = server.post(DEFINITIONS, &definition(schema)).await;
    prop_assert_eq!(defined.status.as_u16(), 201, "{}", defined.body);
    let created = server.post(THINGS, &thing("created", "spec", value)).await;
    prop_assert_eq!(created.status.as_u16(), 201, "create: {}", created.body);
    let created = created.body["spec"]["v"].clone();
    for verb in ["put", "merge", "json", "apply"] {
        let main = written(&server, verb, "spec", value).await;
        let status = written(&server, verb, "status", value).await;
        if verb == "apply" && says_nothing(schema, value) {
            // What is applied is no decoded object: there such a null is wrong, in the real server too.
            prop_assert_eq!(main.status.as_u16(), 422, "{} of the object: {}", verb, main.body);
            prop_assert_eq!(status.status.as_u16(), 422, "{} of the status: {}", verb, status.body);
            continue;
        }
        prop_assert_eq!(main.status.as_u16(), 200, "{} of the object: {}", verb, main.body);
        prop_assert_eq!(status.status.as_u16(), 200, "{} of the status: {}", verb, status.body);
        prop_assert_eq!(&main.body["spec"]["v"], &status.body["status"]["v"], "{}", verb);
        // A merge patch takes away what it says null of, also what may be null.
        if verb != "merge" {
            prop_assert_eq!(&main.body["spec"]["v"], &created, "{} and create", verb);
        }
        let scaled = json!({"spec": {"replicas": 2}});
        let scale = format!("{THINGS}/{verb}-status/scale");
        let scaled = server.merge(&scale, &scaled).await;
        prop_assert_eq!(scaled.status.as_u16(), 200, "scale after {}: {}", verb, scaled.body);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_null_means_the_same_in_an_object_and_in_its_status_by_every_verb((schema, value) in typed()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(agree(&schema, &value))?;
    }
}
