//! Which kinds a cluster serves: its discovery enters, a list of what can be listed and watched leaves.

use serde::Serialize;
use windlass::kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    discovery::{self, ApiGroup, Discovery, Scope, verbs},
};

/// A kind that a cluster serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Kind {
    /// The API group, empty for the core group.
    pub group: String,
    /// The version that the cluster prefers.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// The plural name, in paths.
    pub plural: String,
    /// Whether its objects are in namespaces.
    pub namespaced: bool,
    /// Whether somebody has defined it, rather than Kubernetes.
    pub custom: bool,
    /// Whether people run things with it, so that it is shown without being asked for.
    pub workload: bool,
}

impl Kind {
    /// The same, as kube has it.
    pub fn resource(&self) -> ApiResource {
        let Self { group, version, kind, plural, .. } = self.clone();
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        ApiResource { group, version, api_version, kind, plural }
    }

    /// All its objects, or those of a namespace.
    pub fn api(&self, client: &Client, namespace: Option<&str>) -> Api<DynamicObject> {
        let resource = self.resource();
        match namespace.filter(|namespace| self.namespaced && !namespace.is_empty()) {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    }

    /// Whether it is what somebody means by a word: `pods`, `Pod`, `deployments.apps`, `webservers.example.org`.
    pub fn is_meant_by(&self, word: &str) -> bool {
        let word = word.to_ascii_lowercase();
        let (name, group) =
            word.split_once('.').map_or((word.as_str(), None), |(name, group)| (name, Some(group)));
        let named =
            name == self.plural || name == self.kind.to_ascii_lowercase() || self.short() == Some(name);
        named && group.is_none_or(|group| group == self.group)
    }

    /// The plural name with its group, as runs and kubectl name it.
    pub fn qualified(&self) -> String {
        match self.group.as_str() {
            "" => self.plural.clone(),
            group => format!("{}.{group}", self.plural),
        }
    }

    /// The short names that everybody types.
    fn short(&self) -> Option<&'static str> {
        Some(match (self.group.as_str(), self.plural.as_str()) {
            ("", "pods") => "po",
            ("", "services") => "svc",
            ("", "configmaps") => "cm",
            ("", "namespaces") => "ns",
            ("", "nodes") => "no",
            ("", "serviceaccounts") => "sa",
            ("", "persistentvolumeclaims") => "pvc",
            ("apps", "deployments") => "deploy",
            ("apps", "replicasets") => "rs",
            ("apps", "statefulsets") => "sts",
            ("apps", "daemonsets") => "ds",
            ("batch", "cronjobs") => "cj",
            _ => return None,
        })
    }
}

/// Built-in kinds that people run things with.
const WORKLOADS: [(&str, &str); 13] = [
    ("", "Pod"),
    ("", "Service"),
    ("", "Node"),
    ("", "PersistentVolumeClaim"),
    ("", "ReplicationController"),
    ("apps", "Deployment"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("apps", "ReplicaSet"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("batch", "CronJob"),
    ("batch", "Job"),
    ("networking.k8s.io", "Ingress"),
];

/// Groups that Kubernetes itself serves end in this or have no dot at all.
fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Every kind whose objects can be listed and watched, once: in the version that the cluster prefers. Events are left
/// out; they are about objects, and are shown with them.
///
/// A group that does not answer, because whoever serves it is down, hides no other.
pub async fn kinds(client: &Client) -> Result<Vec<Kind>, windlass::kube::Error> {
    let failed = match Discovery::new(client.clone()).run().await {
        Ok(discovery) => return Ok(discovery.groups_alphabetical().into_iter().flat_map(of_group).collect()),
        Err(error) => error,
    };
    let Ok(listed) = client.list_api_groups().await else { return Err(failed) };
    let mut names: Vec<String> = listed.groups.into_iter().map(|group| group.name).collect();
    names.push(ApiGroup::CORE_GROUP.to_owned());
    names.sort_unstable();
    let mut found = Vec::new();
    for name in names {
        match discovery::group(client, &name).await {
            Ok(group) => found.extend(of_group(&group)),
            Err(error) => tracing::debug!(%error, group = name, "failed to discover the kinds of a group"),
        }
    }
    if found.is_empty() { Err(failed) } else { Ok(found) }
}

fn of_group(group: &ApiGroup) -> Vec<Kind> {
    let mut kinds = Vec::new();
    for (resource, capabilities) in group.recommended_resources() {
        let listed =
            capabilities.supports_operation(verbs::LIST) && capabilities.supports_operation(verbs::WATCH);
        if !listed || resource.kind == "Event" {
            continue;
        }
        let custom = is_custom(&resource.group);
        let named = (resource.group.as_str(), resource.kind.as_str());
        kinds.push(Kind {
            workload: custom || WORKLOADS.contains(&named),
            custom,
            group: resource.group,
            version: resource.version,
            kind: resource.kind,
            plural: resource.plural,
            namespaced: capabilities.scope == Scope::Namespaced,
        });
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_known_by_all_its_names() {
        let kind = Kind {
            group: "apps".into(),
            version: "v1".into(),
            kind: "Deployment".into(),
            plural: "deployments".into(),
            namespaced: true,
            custom: false,
            workload: true,
        };
        for word in ["deployment", "Deployments", "deploy", "deployments.apps", "deployment.apps"] {
            assert!(kind.is_meant_by(word), "{word}");
        }
        for word in ["deployments.example.org", "deploys", "", "pods"] {
            assert!(!kind.is_meant_by(word), "{word}");
        }
        assert!(is_custom("example.org") && is_custom("windlass.dev"));
        assert!(!is_custom("") && !is_custom("apps") && !is_custom("networking.k8s.io"));
    }
}
