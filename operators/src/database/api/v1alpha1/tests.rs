//! Nothing is lost between the versions, in either direction, whatever an object says.

use proptest::{collection::btree_map, option, prelude::*};
use serde_json::{Value, json};
use windlass::webhook::Conversion;

use super::{
    super::{self as hub, Bootstrap, DeletionPolicy, Method, Recovery, Reference, Retention, Target},
    *,
};

const V1: &str = "database.example.com/v1";
const V1ALPHA1: &str = "database.example.com/v1alpha1";

fn storage() -> impl Strategy<Value = hub::Storage> {
    ("[1-9][0-9]?(Mi|Gi)", option::of("[a-z]{1,8}"))
        .prop_map(|(size, storage_class_name)| hub::Storage { size, storage_class_name })
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![Just(Method::Physical), Just(Method::Logical)]
}

fn backup() -> impl Strategy<Value = hub::Backup> {
    let time = ("[0-9] [0-9] \\* \\* \\*", "(Etc/UTC|Europe/Rome)");
    (any::<bool>(), time, method(), (1..9_i32, 60..604_801_i64), option::of(storage())).prop_map(
        |(suspend, (schedule, time_zone), method, (count, active_deadline_seconds), target)| hub::Backup {
            suspend,
            schedule,
            time_zone,
            method,
            retention: Retention { count },
            active_deadline_seconds,
            target: target.map(|claim| Target { persistent_volume_claim: claim }),
        },
    )
}

fn policy() -> impl Strategy<Value = DeletionPolicy> {
    prop_oneof![
        Just(DeletionPolicy::Retain),
        Just(DeletionPolicy::Delete),
        Just(DeletionPolicy::BackupThenDelete)
    ]
}

fn bootstrap() -> impl Strategy<Value = Bootstrap> {
    ("[a-z]{1,5}", "[a-z]{1,5}", option::of("[a-z]{1,5}")).prop_map(|(database, owner, backup)| Bootstrap {
        database,
        owner,
        recovery: backup.map(|name| Recovery { backup_ref: Reference { name } }),
    })
}

prop_compose! {
    fn spec()(
        version in "1[3-8]",
        image in option::of("[a-z]{1,5}:[0-9]"),
        storage in storage(),
        backup in option::of(backup()),
        bootstrap in option::of(bootstrap()),
        parameters in btree_map("[a-z_]{1,5}", "[a-z0-9' ]{0,5}", 0..3),
        deletion_policy in policy(),
        deletion_protection in any::<bool>(),
    ) -> hub::DatabaseSpec {
        hub::DatabaseSpec {
            version, image, storage, backup, bootstrap, parameters, deletion_policy, deletion_protection,
            ..hub::DatabaseSpec::default()
        }
    }
}

fn conversion() -> Conversion {
    Conversion::hub::<hub::Database>().spoke::<Database>()
}

fn object(api_version: &str, spec: Value, annotated: bool) -> Value {
    let mut metadata = json!({"name": "db", "uid": "u-1", "resourceVersion": "7"});
    if annotated {
        metadata["annotations"] = json!({"team": "shop"});
    }
    json!({
        "apiVersion": api_version, "kind": "Database", "metadata": metadata, "spec": spec,
        "status": {"readyInstances": 1, "instances": 1, "initialized": true, "selector": "a=b", "conditions": []},
    })
}

proptest! {
    #[test]
    fn v1_survives_v1alpha1(spec in spec(), annotated: bool) {
        let before = object(V1, serde_json::to_value(spec).unwrap(), annotated);
        let old = conversion().convert(before.clone(), V1ALPHA1).unwrap();
        prop_assert_eq!(conversion().convert(old, V1).unwrap(), before);
    }

    #[test]
    fn v1alpha1_survives_v1(spec in spec(), annotated: bool) {
        let spec = DatabaseSpec::of(&spec);
        let before = object(V1ALPHA1, serde_json::to_value(spec).unwrap(), annotated);
        let new = conversion().convert(before.clone(), V1).unwrap();
        prop_assert_eq!(conversion().convert(new, V1ALPHA1).unwrap(), before);
    }

    #[test]
    fn a_change_in_v1alpha1_touches_nothing_else(spec in spec(), size in "[1-9][0-9]Gi", enabled: bool) {
        let before = object(V1, serde_json::to_value(&spec).unwrap(), false);
        let mut old = conversion().convert(before.clone(), V1ALPHA1).unwrap();
        old["spec"]["storage"]["size"] = size.clone().into();
        if spec.backup.is_some() {
            old["spec"]["backup"]["enabled"] = enabled.into();
        }
        let mut expected = before;
        expected["spec"]["storage"]["size"] = size.into();
        if spec.backup.is_some() {
            expected["spec"]["backup"]["suspend"] = (!enabled).into();
        }
        prop_assert_eq!(conversion().convert(old, V1).unwrap(), expected);
    }
}

#[test]
fn the_older_sample_is_the_newer_one_in_other_words() {
    let old = serde_json::to_value(crate::database::v1alpha1_sample()).unwrap();
    let new = serde_json::to_value(crate::database::sample()).unwrap();
    let converted = conversion().convert(old, V1).unwrap();
    assert_eq!((&converted["spec"], &converted["metadata"]), (&new["spec"], &new["metadata"]));
}

#[test]
fn an_annotation_that_nobody_can_read_is_an_error_that_names_the_object() {
    let mut old = object(V1ALPHA1, json!({"version": "13", "storage": {"size": "1Gi"}}), false);
    old["metadata"]["annotations"] = json!({"windlass.dev/v1-fields": "{"});
    let error = conversion().convert(old, V1).unwrap_err().to_string();
    assert!(error.contains("Database \"db\" from database.example.com/v1alpha1"), "{error}");
}
