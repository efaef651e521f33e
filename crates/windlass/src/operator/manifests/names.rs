//! kubebuilder's names for what runs an operator, behind a prefix of the user's.
//!
//! The webhooks' Service, Secret and configurations keep the operator's own name: its process finds them by that.

use serde_json::Value;

use super::{Operator, Placement};

/// The kinds that are named anew.
const NAMED: [&str; 7] = [
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "ClusterRole",
    "ClusterRoleBinding",
    "Deployment",
    "PodDisruptionBudget",
];

impl Operator {
    /// The same objects, by the names that the placement asks for.
    pub(in crate::operator) fn named(&self, mut manifests: Vec<Value>, placement: &Placement) -> Vec<Value> {
        if let Some(prefix) = &placement.name_prefix {
            for manifest in &mut manifests {
                self.rename(manifest, prefix);
            }
        }
        manifests
    }

    fn rename(&self, manifest: &mut Value, prefix: &str) {
        let metrics = format!("{}-metrics", self.name());
        let kind = manifest["kind"].as_str().unwrap_or_default().to_owned();
        if kind == "Service" && manifest["metadata"]["name"] == metrics.as_str() {
            manifest["metadata"]["name"] = format!("{prefix}controller-manager-metrics-service").into();
        }
        if !NAMED.contains(&kind.as_str()) {
            return;
        }
        let new = |old: &str| match old.strip_prefix(self.name()) {
            Some("") => format!("{prefix}controller-manager"),
            Some(part) => format!("{prefix}{}", part.trim_start_matches('-')),
            None => old.to_owned(),
        };
        let subjects = manifest["subjects"].as_array().map_or(0, Vec::len);
        let mut places = vec![
            "/metadata/name".to_owned(),
            "/roleRef/name".to_owned(),
            "/spec/template/spec/serviceAccountName".to_owned(),
        ];
        places.extend((0..subjects).map(|index| format!("/subjects/{index}/name")));
        for place in places {
            if let Some(name) = manifest.pointer_mut(&place) {
                let renamed = name.as_str().map(new);
                *name = renamed.map_or(Value::Null, Value::String);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_gives_the_names_that_kubebuilder_gives() {
        let operator = Operator::new("windlass");
        let mut placement = Placement::new("pod-operator-system", "pod-operator:latest");
        placement.name_prefix = Some("pod-operator-".into());
        let objects = operator.manifests(&placement);
        let named = |kind: &str, name: &str| {
            objects.iter().any(|object| object["kind"] == kind && object["metadata"]["name"] == name)
        };
        for (kind, name) in [
            ("Deployment", "pod-operator-controller-manager"),
            ("ServiceAccount", "pod-operator-controller-manager"),
            ("ClusterRole", "pod-operator-manager-role"),
            ("ClusterRoleBinding", "pod-operator-manager-rolebinding"),
            ("Role", "pod-operator-leader-election-role"),
            ("Service", "pod-operator-controller-manager-metrics-service"),
        ] {
            assert!(named(kind, name), "there is {kind} {name} in {objects:#?}");
        }
        // Whatever is named is there under that name.
        for object in &objects {
            if object["kind"] == "Deployment" {
                let account = object["spec"]["template"]["spec"]["serviceAccountName"].as_str().unwrap();
                assert!(named("ServiceAccount", account), "{account}");
                assert_eq!(object["metadata"]["namespace"], "pod-operator-system");
            }
            for subject in object["subjects"].as_array().into_iter().flatten() {
                assert!(named("ServiceAccount", subject["name"].as_str().unwrap()), "{subject}");
            }
            if let Some(role) = object["roleRef"]["name"].as_str() {
                assert!(named(object["roleRef"]["kind"].as_str().unwrap(), role), "{role}");
            }
        }
    }
}
