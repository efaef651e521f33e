//! Which kinds and objects stay where they are, and why.

use serde_json::Value;

use windlass_ui::Kind;

use super::text;

/// As `kubectl api-resources` names it.
pub(crate) fn name(kind: &Kind) -> String {
    if kind.group.is_empty() { kind.plural.clone() } else { format!("{}.{}", kind.plural, kind.group) }
}

pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.group == "apiextensions.k8s.io" && kind.plural == "customresourcedefinitions"
}

fn is_namespace(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "namespaces"
}

/// What somebody wants to have.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    pub(crate) namespaces: Vec<String>,
    pub(crate) kinds: Vec<String>,
    pub(crate) secrets: bool,
}

/// Kinds whose objects say something of the cluster that they are in, and nothing of any other.
const OF_THE_CLUSTER: &[(&str, &str, &str)] = &[
    ("", "nodes", "the new cluster has its own nodes"),
    ("", "events", "they tell of the other cluster's past"),
    ("events.k8s.io", "events", "they tell of the other cluster's past"),
    ("coordination.k8s.io", "leases", "their holders are in the other cluster"),
    ("coordination.k8s.io", "leasecandidates", "their holders are in the other cluster"),
    ("apiregistration.k8s.io", "apiservices", "aggregated APIs are not served"),
    ("certificates.k8s.io", "certificatesigningrequests", "the new cluster has its own authority"),
    ("storage.k8s.io", "csinodes", "the new cluster has its own nodes"),
    ("storage.k8s.io", "volumeattachments", "the new cluster has its own nodes"),
    ("storage.k8s.io", "csistoragecapacities", "the new cluster has its own nodes"),
    ("resource.k8s.io", "resourceslices", "the new cluster has its own nodes"),
    ("internal.apiserver.k8s.io", "storageversions", "the new cluster has its own"),
    ("networking.k8s.io", "ipaddresses", "the new cluster gives its own addresses"),
    ("networking.k8s.io", "servicecidrs", "the new cluster gives its own addresses"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas", "the new cluster has its own"),
    ("flowcontrol.apiserver.k8s.io", "prioritylevelconfigurations", "the new cluster has its own"),
];

/// Whoever wants these names them: where their Services lead to nothing, they refuse every write.
const WEBHOOKS: [&str; 2] = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];

impl Selection {
    /// Whether somebody has asked for a kind, or for everything.
    pub(crate) fn wants(&self, kind: &Kind) -> bool {
        if is_definition(kind) || is_namespace(kind) {
            return true;
        }
        let named = self.kinds.iter().any(|word| kind.is_meant_by(word));
        (self.kinds.is_empty() || named) && (self.namespaces.is_empty() || kind.namespaced)
    }

    /// Why no object of a kind comes along although all were asked for.
    pub(crate) fn leaves_out_kind(&self, kind: &Kind) -> Option<&'static str> {
        let named = self.kinds.iter().any(|word| kind.is_meant_by(word));
        let own =
            OF_THE_CLUSTER.iter().find(|(group, plural, _)| *group == kind.group && *plural == kind.plural);
        if let Some((_, _, why)) = own {
            return Some(why);
        }
        if kind.group == "admissionregistration.k8s.io" && WEBHOOKS.contains(&kind.plural.as_str()) && !named
        {
            return Some("they would refuse every write until their Services run; name them with --kind");
        }
        if kind.group.is_empty() && kind.plural == "secrets" && !self.secrets {
            return Some("--secrets was not given");
        }
        None
    }

    /// Whether a definition is needed for the kinds that were asked for.
    fn wants_definition(&self, definition: &Value) -> bool {
        let kind = Kind {
            group: text(definition, "/spec/group").to_owned(),
            kind: text(definition, "/spec/names/kind").to_owned(),
            plural: text(definition, "/spec/names/plural").to_owned(),
            version: String::new(),
            namespaced: true,
            custom: true,
            workload: true,
        };
        let all = |word: &String| word.to_lowercase().starts_with("customresourcedefinition");
        self.kinds.is_empty() || self.kinds.iter().any(|word| all(word) || kind.is_meant_by(word))
    }

    /// Why an object of a kind that comes along does not.
    pub(crate) fn leaves_out(&self, kind: &Kind, object: &Value) -> Option<&'static str> {
        let (namespace, name) = (text(object, "/metadata/namespace"), text(object, "/metadata/name"));
        if is_definition(kind) && !self.wants_definition(object) {
            return Some("--kind names others");
        }
        let within = if is_namespace(kind) { name } else { namespace };
        let anywhere = self.namespaces.is_empty() || (!kind.namespaced && !is_namespace(kind));
        if !anywhere && !self.namespaces.iter().any(|wanted| wanted == within) {
            return Some("--namespace names others");
        }
        if !text(object, "/metadata/deletionTimestamp").is_empty() {
            return Some("being deleted");
        }
        let label = |name: &str| object["metadata"]["labels"][name].as_str().unwrap_or_default();
        let controller = object["metadata"]["ownerReferences"]
            .as_array()
            .is_some_and(|owners| owners.iter().any(|owner| owner["controller"] == true));
        match (kind.group.as_str(), kind.plural.as_str()) {
            ("", "pods") if controller => Some("the controller of their owner makes them anew"),
            ("", "pods") if object["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string() => {
                Some("they belong to a node")
            }
            ("discovery.k8s.io", "endpointslices")
                if label("endpointslice.kubernetes.io/managed-by").ends_with("controller.k8s.io") =>
            {
                Some("the new cluster makes them of Services")
            }
            ("", "endpoints")
                if label("endpoints.kubernetes.io/managed-by") == "endpoint-controller"
                    || !object["metadata"]["annotations"]["endpoints.kubernetes.io/last-change-trigger-time"]
                        .is_null() =>
            {
                Some("the new cluster makes them of Services")
            }
            ("", "configmaps") if name == "kube-root-ca.crt" => Some("the new cluster has its own authority"),
            ("", "secrets") if object["type"] == "kubernetes.io/service-account-token" => {
                Some("tokens of the other cluster")
            }
            ("", "services" | "endpoints") if namespace == "default" && name == "kubernetes" => {
                Some("the new cluster has its own")
            }
            ("discovery.k8s.io", "endpointslices") if namespace == "default" && name == "kubernetes" => {
                Some("the new cluster has its own")
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(group: &str, kind: &str, plural: &str, namespaced: bool) -> Kind {
        super::super::kind(group, kind, plural, namespaced)
    }

    #[test]
    fn secrets_come_when_asked_for_and_tokens_never() {
        let secrets = kind("", "Secret", "secrets", true);
        let all = Selection { secrets: true, ..Selection::default() };
        assert!(Selection::default().leaves_out_kind(&secrets).unwrap().contains("--secrets"));
        assert_eq!(all.leaves_out_kind(&secrets), None);
        let token = json!({"metadata": {"name": "t"}, "type": "kubernetes.io/service-account-token"});
        assert_eq!(all.leaves_out(&secrets, &token), Some("tokens of the other cluster"));
        assert_eq!(all.leaves_out(&secrets, &json!({"metadata": {"name": "t"}, "type": "Opaque"})), None);
    }

    #[test]
    fn a_namespace_leaves_out_all_others_and_keeps_definitions() {
        let only = Selection { namespaces: vec!["shop".into()], ..Selection::default() };
        let maps = kind("", "ConfigMap", "configmaps", true);
        let namespaces = kind("", "Namespace", "namespaces", false);
        let definitions =
            kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false);
        assert!(!only.wants(&kind("storage.k8s.io", "StorageClass", "storageclasses", false)));
        for kind in [&maps, &namespaces, &definitions] {
            assert!(only.wants(kind) && only.leaves_out_kind(kind).is_none());
        }
        let map = |namespace: &str| json!({"metadata": {"namespace": namespace, "name": "a"}});
        assert_eq!(only.leaves_out(&maps, &map("shop")), None);
        assert!(only.leaves_out(&maps, &map("other")).is_some());
        let named = |name: &str| json!({"metadata": {"name": name}});
        assert_eq!(only.leaves_out(&namespaces, &named("shop")), None);
        assert!(only.leaves_out(&namespaces, &named("other")).is_some());
        assert_eq!(only.leaves_out(&definitions, &named("things.example.com")), None);
    }

    #[test]
    fn a_kind_brings_its_definition_and_no_other() {
        let only = Selection { kinds: vec!["things.example.com".into()], ..Selection::default() };
        let definitions =
            kind("apiextensions.k8s.io", "CustomResourceDefinition", "customresourcedefinitions", false);
        let definition = |group: &str| {
            json!({"metadata": {"name": "x"},
                "spec": {"group": group, "names": {"kind": "Thing", "plural": "things"}}})
        };
        assert_eq!(only.leaves_out(&definitions, &definition("example.com")), None);
        assert!(only.leaves_out(&definitions, &definition("example.org")).is_some());
        assert!(only.wants(&kind("example.com", "Thing", "things", true)));
        assert!(!only.wants(&kind("", "ConfigMap", "configmaps", true)));
    }

    #[test]
    fn what_controllers_make_they_make_anew() {
        let pods = kind("", "Pod", "pods", true);
        let owned = json!({"metadata": {"name": "a", "ownerReferences": [{"uid": "1", "controller": true}]}});
        assert!(Selection::default().leaves_out(&pods, &owned).is_some());
        assert_eq!(Selection::default().leaves_out(&pods, &json!({"metadata": {"name": "a"}})), None);
        let gone = json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(Selection::default().leaves_out(&pods, &gone), Some("being deleted"));
    }
}
