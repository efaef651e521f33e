//! Apply and ownership, judged by what a real kube-apiserver answered.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::Value;

use crate::schema::{KUBERNETES, TypeRef};

mod hostile;
mod properties;
mod recorded;

static DEFINITIONS: LazyLock<BTreeMap<&str, &str>> =
    LazyLock::new(|| KUBERNETES.lines().filter_map(|line| line.split_once(' ')).collect());

pub(crate) fn definition(name: &str) -> Option<Value> {
    serde_json::from_str(DEFINITIONS.get(name)?).ok()
}

pub(crate) fn built_in(name: &str) -> TypeRef {
    TypeRef::named(name, &definition).expect("the definition must load")
}

pub(crate) fn custom(schema: &Value) -> TypeRef {
    TypeRef::custom(schema, false, &definition).expect("the schema must load")
}

#[test]
fn every_built_in_definition_loads() {
    for name in DEFINITIONS.keys() {
        built_in(name).zero();
    }
}
