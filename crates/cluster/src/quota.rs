//! The ResourceQuota controller: how much of a namespace's quota is used.
//!
//! Enters: a quota and what is in its namespace. Leaves: `status.used`, which admission compares with `status.hard`
//! and charges with every write. So that a recount never forgets a charge, everything is read live, the quota first,
//! and the count is written only onto the version that was read.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, Kind, ObjectKey, Predicate, Reader, ReconcileError, Reconciler, Watch,
    k8s_openapi::{
        api::core::v1::{
            ConfigMap, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, ResourceQuotaSpec,
            ResourceQuotaStatus, Secret, Service,
        },
        apimachinery::pkg::api::resource::Quantity,
    },
    kube::{
        self, Api,
        api::{DynamicObject, ListParams, PostParams},
        core::ApiResource,
    },
    serde_json,
};
use windlass_apiserver::quota::{self, Amount, Usage};

/// How often kinds are counted that may not be watched.
const RECOUNT: Duration = Duration::from_mins(5);

/// How soon a count is repeated that a charge overtook.
const AGAIN: Duration = Duration::from_millis(20);

/// What is counted of the core group, besides what `count/…` names.
const CORE: [(&str, &str); 7] = [
    ("Pod", "pods"),
    ("Service", "services"),
    ("PersistentVolumeClaim", "persistentvolumeclaims"),
    ("ConfigMap", "configmaps"),
    ("Secret", "secrets"),
    ("ReplicationController", "replicationcontrollers"),
    ("ResourceQuota", "resourcequotas"),
];

/// Why a quota could not be counted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The quota could not be read or written.
    #[error("failed to {0} a quota")]
    Quota(&'static str, #[source] kube::Error),
    /// The kinds of the cluster could not be listed.
    #[error("failed to discover the kinds of the cluster")]
    Discover(#[source] kube::Error),
    /// The objects of a kind could not be listed.
    #[error("failed to list {0}")]
    List(String, #[source] kube::Error),
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Quota(..) => "QuotaFailed",
            Self::Discover(_) => "DiscoveryFailed",
            Self::List(..) => "ListFailed",
        }
    }
}

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Quotas> {
    Controller::new(Quotas)
        .name("resourcequota-controller")
        .watches::<Pod, _>(|pod, cache| quotas(pod.metadata.namespace.as_deref(), cache))
        .watches::<Service, _>(|service, cache| quotas(service.metadata.namespace.as_deref(), cache))
        .watches::<PersistentVolumeClaim, _>(|claim, cache| {
            quotas(claim.metadata.namespace.as_deref(), cache)
        })
        .watches::<ConfigMap, _>(|map, cache| quotas(map.metadata.namespace.as_deref(), cache))
        .watches::<Secret, _>(|secret, cache| quotas(secret.metadata.namespace.as_deref(), cache))
        .watches::<ReplicationController, _>(|one, cache| quotas(one.metadata.namespace.as_deref(), cache))
        .permits([
            windlass::rbac::rule("*", ["*"], ["list"]),
            windlass::rbac::rule("", ["resourcequotas"], ["get"]),
            windlass::rbac::rule("", ["resourcequotas/status"], ["update"]),
        ])
}

fn quotas(namespace: Option<&str>, cache: &Reader) -> Vec<ObjectKey> {
    let found = cache.list::<ResourceQuota>(namespace).unwrap_or_default();
    found.iter().map(|quota| ObjectKey::of(&**quota)).collect()
}

/// Reconciles ResourceQuotas.
pub(crate) struct Quotas;

impl Reconciler for Quotas {
    type Resource = ResourceQuota;
    type Error = Error;

    async fn reconcile(
        &self,
        quota: Arc<ResourceQuota>,
        ctx: &Context<ResourceQuota>,
    ) -> Result<Action, Error> {
        let namespace = quota.metadata.namespace.as_deref().unwrap_or_default();
        let name = quota.metadata.name.as_deref().unwrap_or_default();
        let api: Api<ResourceQuota> = Api::namespaced(ctx.client().clone(), namespace);
        let live = api.get_opt(name).await.map_err(|source| Error::Quota("read", source))?;
        let Some(mut live) = live else { return Ok(Action::await_change()) };
        let spec = live.spec.clone().unwrap_or_default();
        let kinds = kinds(&spec.hard.clone().unwrap_or_default(), ctx).await?;
        follow(&kinds, ctx).await;
        let status = ResourceQuotaStatus {
            used: Some(used(&spec, &kinds, namespace, ctx).await?),
            hard: Some(spec.hard.clone().unwrap_or_default()),
        };
        if live.status.as_ref() != Some(&status) {
            live.status = Some(status);
            match api.replace_status(name, &PostParams::default(), &live).await {
                Ok(_) => {}
                Err(kube::Error::Api(refusal)) if matches!(refusal.code, 404 | 409) => {
                    return Ok(Action::requeue(AGAIN));
                }
                Err(source) => return Err(Error::Quota("write", source)),
            }
        }
        let unwatched = spec.hard.iter().flatten().any(|(name, _)| name.starts_with("count/"));
        Ok(if unwatched { Action::requeue(RECOUNT) } else { Action::await_change() })
    }
}

/// Watches the kinds that a quota counts and that are not watched anyway: what is deleted is given back at once.
async fn follow(kinds: &[ApiResource], ctx: &Context<ResourceQuota>) {
    let watched =
        |kind: &&ApiResource| kind.group.is_empty() && CORE.iter().any(|(_, one)| *one == kind.plural);
    for kind in kinds.iter().filter(|kind| !watched(kind)) {
        let kind = Kind {
            group: kind.group.clone(),
            version: kind.version.clone(),
            kind: kind.kind.clone(),
            plural: kind.plural.clone(),
            namespaced: true,
        };
        if ctx.watches().kinds().contains(&kind) {
            continue;
        }
        let watch = Watch::dynamic_metadata(kind).filter(Predicate::deleted()).optional();
        let added =
            ctx.watches().watches(watch, |object, cache| quotas(object.metadata.namespace.as_deref(), cache));
        if let Err(error) = added.await {
            tracing::debug!(%error, "a kind that a quota counts is counted again later");
        }
    }
}

/// What the objects of a namespace use of what the quota bounds.
async fn used(
    spec: &ResourceQuotaSpec,
    kinds: &[ApiResource],
    namespace: &str,
    ctx: &Context<ResourceQuota>,
) -> Result<BTreeMap<String, Quantity>, Error> {
    let hard = spec.hard.clone().unwrap_or_default();
    let scopes = serde_json::to_value(spec).unwrap_or_default();
    let mut total = Usage::new();
    for kind in kinds {
        let (group, plural) = (kind.group.as_str(), kind.plural.as_str());
        let bounded = |name: &str| hard.contains_key(name) && quota::tracks(group, plural, name);
        let nothing = hard.keys().filter(|name| bounded(name)).map(|name| (name.clone(), Amount::ZERO));
        quota::add(&mut total, nothing.collect());
        let api: Api<DynamicObject> = Api::namespaced_with(ctx.client().clone(), namespace, kind);
        let found = api.list(&ListParams::default()).await;
        for object in found.map_err(|source| Error::List(kind.plural.clone(), source))?.items {
            let object = serde_json::to_value(&object).unwrap_or_default();
            if quota::in_scope(&scopes, group, plural, &object) {
                let usage = quota::usage(group, plural, &object, ctx.now());
                quota::add(&mut total, usage.into_iter().filter(|(name, _)| bounded(name)).collect());
            }
        }
    }
    Ok(total.into_iter().map(|(name, amount)| (name, Quantity(amount.to_string()))).collect())
}

/// The kinds that use anything of what is bounded.
async fn kinds(
    hard: &BTreeMap<String, Quantity>,
    ctx: &Context<ResourceQuota>,
) -> Result<Vec<ApiResource>, Error> {
    let core = CORE.iter().map(|(kind, plural)| ApiResource {
        group: String::new(),
        version: "v1".into(),
        api_version: "v1".into(),
        kind: (*kind).into(),
        plural: (*plural).into(),
    });
    let tracked = |kind: &ApiResource| hard.keys().any(|name| quota::tracks(&kind.group, &kind.plural, name));
    let mut kinds: Vec<ApiResource> = core.filter(tracked).collect();
    let known = |name: &String| CORE.iter().any(|(_, plural)| *name == quota::count_name("", plural));
    if hard.keys().any(|name| name.starts_with("count/") && !known(name)) {
        let served = crate::resources::discover(ctx.client()).await.map_err(Error::Discover)?;
        let others = served.into_iter().filter(|kind| kind.namespaced).map(|kind| kind.api);
        let others =
            others.filter(|kind| !(kind.group.is_empty() && CORE.iter().any(|(_, one)| *one == kind.plural)));
        kinds.extend(others.filter(tracked));
    }
    Ok(kinds)
}
