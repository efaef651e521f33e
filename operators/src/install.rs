//! Puts kinds, permissions and samples into a cluster. All may be there already: what is applied again stays.

use std::time::Duration;

use k8s_openapi::{
    api::rbac::v1::{ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef, Subject},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ObjectMeta, Patch, PatchParams},
    core::GroupVersionKind,
    runtime::wait::{await_condition, conditions::is_crd_established},
};

use crate::{Entry, FIELD_MANAGER};

/// How long the API server may take until it serves a new kind.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Something that could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CRD was refused, or could not be sent.
    #[error("failed to apply the CRD {name}")]
    ApplyCrd {
        /// The CRD.
        name: String,
        /// The client's error.
        #[source]
        source: Box<kube::Error>,
    },
    /// The wait for a CRD broke off.
    #[error("failed to watch the CRD {name}")]
    WatchCrd {
        /// The CRD.
        name: String,
        /// The watch's error.
        #[source]
        source: Box<kube::runtime::wait::Error>,
    },
    /// The API server accepted a CRD, but does not serve it.
    #[error("the CRD {name} was not established within {} s; `kubectl describe crd {name}` says why", TIMEOUT.as_secs())]
    NotEstablished {
        /// The CRD.
        name: String,
    },
    /// The webhooks run, and the API server was not told of them.
    #[error("the CRD {name} was not pointed at the conversion webhook within {limit} s; the log says why")]
    NotConverted {
        /// The CRD.
        name: String,
        /// How long that was waited for, in seconds.
        limit: u64,
    },
    /// A role or a binding was refused, or could not be sent.
    #[error("failed to give {account} its permissions")]
    Permit {
        /// Who was to have them.
        account: String,
        /// The client's error.
        #[source]
        source: Box<kube::Error>,
    },
    /// A sample was refused, or could not be sent.
    #[error("failed to apply the sample {name}")]
    ApplySample {
        /// The sample.
        name: String,
        /// The client's error.
        #[source]
        source: Box<kube::Error>,
    },
    /// A sample could not be encoded.
    #[error("failed to encode the sample of {name}")]
    EncodeSample {
        /// The kind.
        name: String,
        /// The encoder's error.
        #[source]
        source: serde_json::Error,
    },
}

/// Applies CRDs, and waits until the API server serves them.
pub async fn crds(client: &Client, crds: &[CustomResourceDefinition]) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    // Forced: the operator's binary decides what its kinds are.
    let params = PatchParams::apply(FIELD_MANAGER).force();
    for crd in crds {
        let name = crd.name_any();
        let applied = api.patch(&name, &params, &Patch::Apply(crd)).await;
        applied.map_err(|source| Error::ApplyCrd { name: name.clone(), source: Box::new(source) })?;
        let established = await_condition(api.clone(), &name, is_crd_established());
        match tokio::time::timeout(TIMEOUT, established).await {
            Ok(Ok(_)) => {}
            Ok(Err(source)) => return Err(Error::WatchCrd { name, source: Box::new(source) }),
            Err(_) => return Err(Error::NotEstablished { name }),
        }
    }
    Ok(())
}

/// Lets a service account do what the rules say: in its own namespace, or in all of them.
pub async fn permissions(
    client: &Client,
    namespace: &str,
    name: &str,
    rules: Vec<PolicyRule>,
    everywhere: bool,
) -> Result<(), Error> {
    const GROUP: &str = "rbac.authorization.k8s.io";
    let failed = |source| Error::Permit { account: format!("{namespace}/{name}"), source: Box::new(source) };
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    let subject = Subject {
        kind: "ServiceAccount".into(),
        name: name.into(),
        namespace: Some(namespace.into()),
        ..Subject::default()
    };
    let role_ref =
        |kind: &str| RoleRef { api_group: Some(GROUP.into()), kind: kind.into(), name: name.into() };
    let subjects = Some(vec![subject]);
    let params = PatchParams::apply(FIELD_MANAGER).force();
    if everywhere {
        let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding { metadata, role_ref: role_ref("ClusterRole"), subjects };
        let roles = Api::<ClusterRole>::all(client.clone());
        let bindings = Api::<ClusterRoleBinding>::all(client.clone());
        roles.patch(name, &params, &Patch::Apply(role)).await.map_err(failed)?;
        bindings.patch(name, &params, &Patch::Apply(binding)).await.map_err(failed)?;
    } else {
        let role = Role { metadata: metadata.clone(), rules: Some(rules) };
        let binding = RoleBinding { metadata, role_ref: role_ref("Role"), subjects };
        let roles = Api::<Role>::namespaced(client.clone(), namespace);
        let bindings = Api::<RoleBinding>::namespaced(client.clone(), namespace);
        roles.patch(name, &params, &Patch::Apply(role)).await.map_err(failed)?;
        bindings.patch(name, &params, &Patch::Apply(binding)).await.map_err(failed)?;
    }
    Ok(())
}

/// Applies the sample of a kind, and returns its name.
pub async fn sample(client: &Client, entry: &Entry, namespace: &str) -> Result<String, Error> {
    let encode = |source| Error::EncodeSample { name: entry.name.into(), source };
    let sample: DynamicObject = entry.sample().and_then(serde_json::from_value).map_err(encode)?;
    let name = sample.name_any();
    let api = Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &entry.resource());
    // Not forced: a sample that someone has edited is theirs.
    let applied = api.patch(&name, &PatchParams::apply("windlass-samples"), &Patch::Apply(&sample)).await;
    applied.map_err(|source| Error::ApplySample { name: name.clone(), source: Box::new(source) })?;
    Ok(name)
}

impl Entry {
    /// The kind as an untyped client needs it.
    pub fn resource(&self) -> ApiResource {
        let (group, version) = self.api_version.split_once('/').unwrap_or(("", self.api_version));
        ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, self.kind), self.plural)
    }
}
