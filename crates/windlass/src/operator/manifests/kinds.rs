//! Roles for the people who use an operator's kinds: all, edit, view. They are bound to nobody.

use serde_json::{Value, json};

use super::{Operator, labelled};

/// Who may do what with the objects of a kind, by kubebuilder's names.
const GRANTS: [(&str, &[&str]); 3] = [
    ("admin", &["*"]),
    ("editor", &["create", "delete", "get", "list", "patch", "update", "watch"]),
    ("viewer", &["get", "list", "watch"]),
];

impl Operator {
    /// Three ClusterRoles for each kind that the operator brings.
    pub(super) fn kind_roles(&self) -> Vec<Value> {
        let mut roles = Vec::new();
        for crd in self.crds() {
            let (group, names) = (&crd.spec.group, &crd.spec.names);
            let mut kind = names.kind.to_lowercase();
            // Kinds of two groups may have one name.
            let shared = self.crds().iter().filter(|other| other.spec.names.kind == names.kind).count() > 1;
            if shared {
                kind = format!("{}-{kind}", group.replace('.', "-"));
            }
            for (who, verbs) in GRANTS {
                let status = format!("{}/status", names.plural);
                let role = json!({
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": "ClusterRole",
                    "rules": [
                        { "apiGroups": [group], "resources": [names.plural], "verbs": verbs },
                        { "apiGroups": [group], "resources": [status], "verbs": ["get"] },
                    ],
                });
                roles.push(labelled(self, role, &format!("{}-{kind}-{who}-role", self.name()), None));
            }
        }
        roles
    }
}
