//! The kinds that scenarios speak of, and what follows from them.

use windlass::kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
};

/// A kind: its group and version, its plural, and whether it is in a namespace.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) api_version: &'static str,
    plural: &'static str,
    pub(crate) namespaced: bool,
    /// The kinds that a controller makes of it.
    brings: &'static [&'static str],
}

const fn kind(
    name: &'static str,
    api_version: &'static str,
    plural: &'static str,
    brings: &'static [&'static str],
) -> Kind {
    Kind { name, api_version, plural, namespaced: true, brings }
}

const fn global(name: &'static str, api_version: &'static str, plural: &'static str) -> Kind {
    Kind { name, api_version, plural, namespaced: false, brings: &[] }
}

const KINDS: &[Kind] = &[
    kind("Deployment", "apps/v1", "deployments", &["ReplicaSet"]),
    kind("ReplicaSet", "apps/v1", "replicasets", &["Pod"]),
    kind("StatefulSet", "apps/v1", "statefulsets", &["Pod", "ControllerRevision"]),
    kind("DaemonSet", "apps/v1", "daemonsets", &["Pod", "ControllerRevision"]),
    kind("ControllerRevision", "apps/v1", "controllerrevisions", &[]),
    kind("ReplicationController", "v1", "replicationcontrollers", &["Pod"]),
    kind("Job", "batch/v1", "jobs", &["Pod"]),
    kind("CronJob", "batch/v1", "cronjobs", &["Job"]),
    kind("Pod", "v1", "pods", &[]),
    kind("PodDisruptionBudget", "policy/v1", "poddisruptionbudgets", &[]),
    kind("HorizontalPodAutoscaler", "autoscaling/v2", "horizontalpodautoscalers", &[]),
    kind("Service", "v1", "services", &["EndpointSlice", "Endpoints"]),
    kind("EndpointSlice", "discovery.k8s.io/v1", "endpointslices", &[]),
    kind("Endpoints", "v1", "endpoints", &["EndpointSlice"]),
    kind("PersistentVolumeClaim", "v1", "persistentvolumeclaims", &[]),
    kind("ConfigMap", "v1", "configmaps", &[]),
    kind("Secret", "v1", "secrets", &[]),
    kind("ServiceAccount", "v1", "serviceaccounts", &[]),
    kind("ResourceQuota", "v1", "resourcequotas", &[]),
    kind("LimitRange", "v1", "limitranges", &[]),
    kind("Role", "rbac.authorization.k8s.io/v1", "roles", &[]),
    global("ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles"),
    global("Node", "v1", "nodes"),
    global("Namespace", "v1", "namespaces"),
    global("PersistentVolume", "v1", "persistentvolumes"),
    global("StorageClass", "storage.k8s.io/v1", "storageclasses"),
    global("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses"),
];

/// The kind of a name.
pub(crate) fn named(name: &str) -> &'static Kind {
    KINDS.iter().find(|kind| kind.name == name).unwrap_or_else(|| panic!("kind {name} is not in kinds.rs"))
}

/// The kinds in a namespace, with all that follows from them, in the order of the table.
pub(crate) fn following<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'static Kind> {
    let mut wanted: Vec<&str> = names.collect();
    let mut next = 0;
    while let Some(name) = wanted.get(next).copied() {
        wanted.extend(named(name).brings.iter().filter(|more| !wanted.contains(more)).collect::<Vec<_>>());
        next += 1;
    }
    KINDS.iter().filter(|kind| kind.namespaced && wanted.contains(&kind.name)).collect()
}

impl Kind {
    fn resource(&self) -> ApiResource {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: self.api_version.into(),
            kind: self.name.into(),
            plural: self.plural.into(),
        }
    }

    /// Its objects in a namespace, or all if it has none.
    pub(crate) fn api(&self, client: &Client, namespace: &str) -> Api<DynamicObject> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource())
        } else {
            Api::all_with(client.clone(), &self.resource())
        }
    }
}
