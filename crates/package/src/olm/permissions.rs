//! What an operator may do, as the Operator Lifecycle Manager takes it: rules that hold in the namespaces that it is
//! installed for, and rules that hold in the whole cluster.

use serde_json::{Value, json};

use crate::{
    Objects,
    objects::{items, kind, role_key},
};

/// The rules of an operator, and whether it can be restricted to namespaces.
pub(super) struct Permissions {
    /// Rules for the namespaces that the operator is installed for. OLM makes them rules for the cluster when those are
    /// all namespaces.
    pub(super) namespaced: Vec<Value>,
    /// Rules for the cluster.
    pub(super) cluster: Vec<Value>,
}

impl Permissions {
    /// The rules of every role that the operator is bound to. When it can be restricted, the roles that it has then say
    /// which rules are needed in the whole cluster.
    pub(super) fn of(objects: &Objects) -> Self {
        let list = objects.when_restricted().unwrap_or(objects.all());
        let bound = Objects::bound(list, objects.account());
        let (mut namespaced, mut cluster) = (Vec::new(), Vec::new());
        for role in list.iter().filter(|object| bound.contains(&role_key(object))) {
            let rules = if kind(role) == "Role" { &mut namespaced } else { &mut cluster };
            for rule in items(&role["rules"]) {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
        Self { namespaced, cluster }
    }

    /// As they stand in an install strategy.
    pub(super) fn entry(rules: &[Value], account: &str) -> Option<Value> {
        (!rules.is_empty()).then(|| json!([{ "serviceAccountName": account, "rules": rules }]))
    }
}

/// For which namespaces the operator can be installed. The webhook of a conversion serves a kind in every namespace, and a
/// kind that lives in no namespace is seen from all of them.
pub(super) fn install_modes(objects: &Objects, converts: bool) -> Value {
    let everywhere = |crd: &Value| crd["spec"]["scope"] == "Cluster";
    let some = objects.when_restricted().is_some() && !converts && !objects.crds().any(everywhere);
    json!([
        { "type": "OwnNamespace", "supported": some },
        { "type": "SingleNamespace", "supported": some },
        { "type": "MultiNamespace", "supported": some },
        { "type": "AllNamespaces", "supported": true },
    ])
}
