//! `FieldsV1` against what the real server writes, and its round trip over arbitrary sets.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn a_servers_fields_survive_reading_and_writing() {
    let fields = json!({
        "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}}},
        "f:spec": {
            "f:ports": {
                ".": {},
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:targetPort": {}},
            },
            "f:selector": {},
        },
    });
    let set = FieldSet::from_json(&fields).expect("the fields must parse");
    assert_eq!(set.to_json(), fields);
    assert_eq!(set.paths().len(), 7);
}

#[test]
fn a_dot_alone_means_the_same_as_nothing() {
    let with_dot = FieldSet::from_json(&json!({"f:a": {".": {}}})).expect("must parse");
    let without = FieldSet::from_json(&json!({"f:a": {}})).expect("must parse");
    assert_eq!(with_dot, without);
}

#[test]
fn unknown_element_types_are_dropped_and_garbage_is_named() {
    let set = FieldSet::from_json(&json!({"x:1": {}, "f:a": {}})).expect("must parse");
    assert_eq!(set, FieldSet::of_paths(["a"]));
    for garbage in ["", "f", "plain", "k:[1]", "v:{", "i:x", "é:"] {
        let error = FieldSet::from_json(&json!({ garbage: {} })).expect_err("must not parse");
        assert!(error.to_string().contains("failed to read"), "{error}");
    }
}

#[test]
fn strings_are_escaped_as_go_escapes_them() {
    let element = PathElement::Value(json!("a<b&c"));
    assert_eq!(print(&element), r#"v:"a\u003cb\u0026c""#);
    assert_eq!(parse(&print(&element)), Ok(Some(element)));
}

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        "[a-z./]{0,5}".prop_map(PathElement::Field),
        (any::<i64>(), "[a-z<\"]{0,4}").prop_map(|(port, name)| {
            PathElement::Key(vec![("name".to_owned(), json!(name)), ("port".to_owned(), json!(port))])
        }),
        "[a-z\u{e9}\\\\]{0,4}".prop_map(|text| PathElement::Value(json!(text))),
        any::<bool>().prop_map(|flag| PathElement::Value(json!(flag))),
        (0_i64..5).prop_map(PathElement::Index),
    ]
}

pub(crate) fn sets() -> impl Strategy<Value = FieldSet> {
    let path = prop::collection::vec(element(), 1..5);
    prop::collection::vec(path, 0..12).prop_map(|paths| {
        let mut set = FieldSet::new();
        for path in &paths {
            set.insert(path);
        }
        set
    })
}

proptest! {
    #[test]
    fn every_set_survives_the_round_trip(set in sets()) {
        prop_assert_eq!(FieldSet::from_json(&set.to_json()), Ok(set));
    }

    #[test]
    fn difference_and_intersection_split_a_set(left in sets(), right in sets()) {
        let (kept, shared) = (left.difference(&right), left.intersection(&right));
        prop_assert!(kept.intersection(&right).is_empty());
        prop_assert_eq!(kept.union(&shared), left);
    }

    #[test]
    fn union_is_commutative_and_holds_both(left in sets(), right in sets()) {
        let union = left.union(&right);
        prop_assert_eq!(&union, &right.union(&left));
        prop_assert!(left.difference(&union).is_empty());
    }
}
