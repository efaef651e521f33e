//! The comparison keeps its word: what it calls harmless leaves every valid object valid and whole.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_apiserver::schema::{TypeRef, structural_errors};
use windlass_crd::{
    Definition,
    diff::{self, Finding, Severity},
};

use crate::world::{Chance, changed, object_of, root};

fn findings(old: &Value, new: &Value) -> Vec<Finding> {
    diff::schemas(old.as_object().unwrap(), new.as_object().unwrap())
}

fn is_breaking(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Breaking)
}

/// Whether the API server would take the schema.
fn is_allowed(schema: &Value) -> bool {
    structural_errors(schema, "schema", false, &crate::kubernetes).is_empty()
}

/// What becomes of an object under a schema: itself with the defaults, or why not.
fn admitted(ty: &TypeRef, object: &Value) -> Result<Value, String> {
    let mut object = object.clone();
    ty.apply_defaults(&mut object);
    let pruned = ty.prune(&mut object);
    if !pruned.is_empty() {
        return Err(format!("pruned: {pruned:?}"));
    }
    let errors = ty.validate(&object, None);
    if errors.is_empty() { Ok(object) } else { Err(format!("{errors:?}")) }
}

/// A schema, a change of it, and objects that are valid under the first; none where chance made nonsense.
fn case(seed: u64) -> Option<(Value, Value, Vec<Value>)> {
    let mut chance = Chance(seed);
    let old = root(&mut chance);
    let new = changed(&old, &mut chance);
    if !is_allowed(&old) || !is_allowed(&new) {
        return None;
    }
    let ty = TypeRef::from_openapi(&old, &crate::kubernetes).unwrap();
    let objects = (0..30)
        .map(|_| json!({"spec": object_of(&old["properties"]["spec"], &mut chance)}))
        .filter(|object| admitted(&ty, object).is_ok())
        .collect();
    Some((old, new, objects))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn a_schema_does_not_differ_from_itself(seed in any::<u64>()) {
        let schema = root(&mut Chance(seed));
        prop_assert_eq!(findings(&schema, &schema), vec![]);
    }

    #[test]
    fn what_is_not_breaking_leaves_valid_objects_valid_and_whole(seed in any::<u64>()) {
        let Some((old, new, objects)) = case(seed) else { return Ok(()) };
        let found = findings(&old, &new);
        if is_breaking(&found) {
            return Ok(());
        }
        let ty = TypeRef::from_openapi(&new, &crate::kubernetes).unwrap();
        for object in objects {
            if let Err(why) = admitted(&ty, &object) {
                prop_assert!(false, "{why}\nobject {object}\nold {old}\nnew {new}\nfindings {found:#?}");
            }
        }
    }
}

#[test]
fn the_property_above_is_about_something() {
    let (mut harmless, mut breaking, mut shown) = (0, 0, 0);
    for seed in 0..600 {
        let Some((old, new, objects)) = case(seed) else { continue };
        let found = findings(&old, &new);
        if !is_breaking(&found) {
            harmless += usize::from(!found.is_empty() && !objects.is_empty());
            continue;
        }
        breaking += 1;
        let ty = TypeRef::from_openapi(&new, &crate::kubernetes).unwrap();
        shown += usize::from(objects.iter().any(|object| admitted(&ty, object).is_err()));
    }
    assert!(harmless > 30, "{harmless} harmless changes");
    assert!(shown * 3 > breaking, "of {breaking} breaking changes, {shown} broke one of thirty objects");
}

#[test]
fn a_definition_does_not_differ_from_itself() {
    for (name, definition, _) in crate::round_trip::sources() {
        assert_eq!(diff::definition(&definition, &definition), vec![], "{name}");
    }
}

const OLD: &str = include_str!("diff/old.yaml");
const NEW: &str = include_str!("diff/new.yaml");

#[test]
fn every_change_is_found_and_weighed() {
    let (old, new) = (Definition::parse(OLD).unwrap(), Definition::parse(NEW).unwrap());
    let found = diff::definitions(&old, &new);
    let lines: Vec<String> = found
        .iter()
        .map(|finding| {
            let version = finding.version.as_deref().unwrap_or("-");
            format!(
                "{:8} {} {version} {} {}",
                finding.severity, finding.definition, finding.path, finding.reason
            )
        })
        .collect();
    let expected = include_str!("diff/expected.txt").replace("\r\n", "\n");
    assert_eq!(lines.join("\n") + "\n", expected);
    for finding in &found {
        assert!(finding.severity != Severity::Breaking || !finding.hint.is_empty(), "{finding:?}");
    }
}
