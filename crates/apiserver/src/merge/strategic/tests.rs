//! Strategic merge patches against what a real kube-apiserver made of them, and by property.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::merge::tests::built_in;

static DEPLOYMENT: LazyLock<TypeRef> = LazyLock::new(|| built_in("io.k8s.api.apps.v1.Deployment"));

fn deployment() -> &'static TypeRef {
    &DEPLOYMENT
}

fn pod_spec(spec: &Value) -> Value {
    json!({"spec": {"template": {"spec": spec}}})
}

/// Each step of `tests/fixtures/strategic` is an object, a patch, and what a real server made.
#[test]
fn every_recorded_patch_gives_the_real_object() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/strategic");
    let mut failures = Vec::new();
    let mut count = 0;
    for entry in std::fs::read_dir(directory).expect("the fixtures must be there") {
        let path = entry.expect("the directory must be readable").path();
        let text = std::fs::read_to_string(&path).expect("a fixture must be readable");
        let fixture: Value = serde_json::from_str(&text).expect("a fixture must be JSON");
        let ty = built_in(fixture["definition"].as_str().expect("a fixture must name its type"));
        for case in fixture["cases"].as_array().expect("a fixture must have cases") {
            count += 1;
            let real = &case["result"];
            match strategic(&ty, &case["object"], &case["patch"]) {
                Ok(mut ours) => {
                    ty.prune(&mut ours);
                    ty.normalize(&mut ours);
                    ours.as_object_mut().expect("an object must stay one").remove("status");
                    if !same(&ours, real) {
                        failures.push(format!("{}\n ours: {ours}\n real: {real}", case["name"]));
                    }
                }
                Err(_) if real.get("error").is_some() => {}
                Err(error) => failures.push(format!("{}: {error}", case["name"])),
            }
        }
    }
    assert!(count >= 10, "only {count} cases were found");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Whether two objects are equal but for what the server fills into new containers and volumes.
fn same(ours: &Value, real: &Value) -> bool {
    const DEFAULTS: [&str; 5] =
        ["defaultMode", "imagePullPolicy", "protocol", "terminationMessagePath", "terminationMessagePolicy"];
    match (ours, real) {
        (Value::Object(ours), Value::Object(real)) => {
            ours.iter().all(|(key, value)| real.get(key).is_some_and(|real| same(value, real)))
                && real.keys().all(|key| ours.contains_key(key) || DEFAULTS.contains(&key.as_str()))
        }
        (Value::Array(ours), Value::Array(real)) => {
            ours.len() == real.len() && ours.iter().zip(real).all(|(ours, real)| same(ours, real))
        }
        _ => ours == real,
    }
}

#[test]
fn a_directive_without_meaning_is_refused() {
    let object = json!({"spec": {"template": {"spec": {"containers": [{"name": "a"}]}}}});
    for patch in [
        json!({"spec": {"$patch": "merge"}}),
        pod_spec(&json!({"containers": [{"name": "a", "$patch": "explode"}]})),
        pod_spec(&json!({"containers": [{"image": "x"}]})),
        pod_spec(&json!({"containers": ["x"]})),
        pod_spec(&json!({"$setElementOrder/containers": "x"})),
        pod_spec(&json!({"$retainKeys": ["containers"], "volumes": []})),
    ] {
        assert!(strategic(deployment(), &object, &patch).is_err(), "{patch}");
    }
}

#[test]
fn order_and_content_that_disagree_are_refused() {
    let object = pod_spec(&json!({"containers": [{"name": "a"}, {"name": "b"}]}));
    let patch = pod_spec(&json!({
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "y"}],
    }));
    let error = strategic(deployment(), &object, &patch).expect_err("the order must not fit");
    assert!(matches!(error, PatchError::OrderMismatch { .. }), "{error}");
}

prop_compose! {
    fn containers()(names in prop::collection::btree_set("[a-e]", 0..4), image in "[x-z]") -> Value {
        names.iter().map(|name| json!({"name": name, "image": image})).collect()
    }
}

proptest! {
    #[test]
    fn a_patch_of_the_object_itself_changes_nothing(list in containers(), replicas in 0_i64..3) {
        let mut object = pod_spec(&json!({ "containers": list }));
        object["spec"]["replicas"] = json!(replicas);
        prop_assert_eq!(strategic(deployment(), &object, &object), Ok(object.clone()));
        prop_assert_eq!(strategic(deployment(), &object, &json!({})), Ok(object));
    }

    #[test]
    fn patching_twice_is_patching_once(before in containers(), patch in containers()) {
        let object = pod_spec(&json!({ "containers": before }));
        let patch = pod_spec(&json!({ "containers": patch }));
        let once = strategic(deployment(), &object, &patch).expect("must apply");
        prop_assert_eq!(strategic(deployment(), &once, &patch), Ok(once));
    }
}
