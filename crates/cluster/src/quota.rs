//! The ResourceQuota controller: how much of a namespace's quota is used.
//!
//! Enters: a quota and what is in its namespace. Leaves: `status.used`, which admission compares with `status.hard`.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use windlass::{
    Action, Context, Controller, ObjectKey, Reader, Reconciler,
    k8s_openapi::{
        api::core::v1::{
            ConfigMap, PersistentVolumeClaim, Pod, ReplicationController, ResourceQuota, ResourceQuotaSpec,
            ResourceQuotaStatus, Secret, Service,
        },
        apimachinery::pkg::api::resource::Quantity,
    },
    kube::{
        Api,
        api::{DynamicObject, ListParams},
        core::ApiResource,
    },
};

use crate::{pods, quantity};

/// How often kinds are counted that are not watched.
const RECOUNT: Duration = Duration::from_mins(5);

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
        .permits([windlass::rbac::rule("*", ["*"], ["list"])])
}

fn quotas(namespace: Option<&str>, cache: &Reader) -> Vec<ObjectKey> {
    let found = cache.list::<ResourceQuota>(namespace).unwrap_or_default();
    found.iter().map(|quota| ObjectKey::of(&**quota)).collect()
}

/// Reconciles ResourceQuotas.
pub(crate) struct Quotas;

impl Reconciler for Quotas {
    type Resource = ResourceQuota;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        quota: Arc<ResourceQuota>,
        ctx: &Context<ResourceQuota>,
    ) -> Result<Action, windlass::Error> {
        let Some(spec) = &quota.spec else { return Ok(Action::await_change()) };
        let hard = spec.hard.clone().unwrap_or_default();
        let namespace = quota.metadata.namespace.as_deref();
        let mut used = measured(spec, namespace, ctx)?;
        let mut counted = false;
        for name in hard.keys() {
            if let Some(resource) = name.strip_prefix("count/")
                && let Some(count) = count(resource, namespace.unwrap_or_default(), ctx).await
            {
                used.insert(name.clone(), count * 1000);
                counted = true;
            }
        }
        let amount = |name: &String, limit: &Quantity| {
            let used = used.get(name).copied().unwrap_or(0);
            (name.clone(), quantity::like(used, limit))
        };
        let used = hard.iter().map(|(name, limit)| amount(name, limit)).collect();
        let status = ResourceQuotaStatus { hard: Some(hard), used: Some(used) };
        ctx.patch_status(&*quota, &status).await?;
        Ok(if counted { Action::requeue(RECOUNT) } else { Action::await_change() })
    }
}

/// What is used, in thousandths.
type Used = BTreeMap<String, i128>;

fn add(used: &mut Used, name: &str, amount: i128) {
    *used.entry(name.to_owned()).or_default() += amount;
}

fn measured(
    spec: &ResourceQuotaSpec,
    namespace: Option<&str>,
    ctx: &Context<ResourceQuota>,
) -> windlass::Result<Used> {
    let mut used = Used::new();
    for pod in ctx.list::<Pod>(namespace)?.iter().filter(|pod| in_scope(spec, pod)) {
        count_pod(&mut used, pod);
    }
    for service in ctx.list::<Service>(namespace)? {
        add(&mut used, "services", 1000);
        match service.spec.as_ref().and_then(|spec| spec.type_.as_deref()) {
            Some("NodePort") => add(&mut used, "services.nodeports", 1000),
            Some("LoadBalancer") => {
                add(&mut used, "services.loadbalancers", 1000);
                add(&mut used, "services.nodeports", 1000);
            }
            _ => {}
        }
    }
    for claim in ctx.list::<PersistentVolumeClaim>(namespace)? {
        let spec = claim.spec.clone().unwrap_or_default();
        let storage = spec.resources.and_then(|r| r.requests?.get("storage").and_then(quantity::thousandths));
        add(&mut used, "persistentvolumeclaims", 1000);
        add(&mut used, "requests.storage", storage.unwrap_or(0));
        if let Some(class) = spec.storage_class_name {
            let of = |what: &str| format!("{class}.storageclass.storage.k8s.io/{what}");
            add(&mut used, &of("persistentvolumeclaims"), 1000);
            add(&mut used, &of("requests.storage"), storage.unwrap_or(0));
        }
    }
    for (name, count) in [
        ("configmaps", ctx.list::<ConfigMap>(namespace)?.len()),
        ("secrets", ctx.list::<Secret>(namespace)?.len()),
        ("replicationcontrollers", ctx.list::<ReplicationController>(namespace)?.len()),
        ("resourcequotas", ctx.list::<ResourceQuota>(namespace)?.len()),
    ] {
        add(&mut used, name, count as i128 * 1000);
    }
    Ok(used)
}

/// Pods that have ended use nothing but their place in a count.
fn count_pod(used: &mut Used, pod: &Pod) {
    if pods::is_finished(pod) {
        return;
    }
    add(used, "pods", 1000);
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    for resources in containers.filter_map(|container| container.resources.as_ref()) {
        for (kind, amounts) in [("requests", &resources.requests), ("limits", &resources.limits)] {
            for (name, amount) in amounts.iter().flatten() {
                let amount = quantity::thousandths(amount).unwrap_or(0);
                add(used, &format!("{kind}.{name}"), amount);
                if kind == "requests" {
                    add(used, name, amount);
                }
            }
        }
    }
}

/// Whether a quota counts a Pod: it must be in all of the quota's scopes.
fn in_scope(spec: &ResourceQuotaSpec, pod: &Pod) -> bool {
    let body = pod.spec.clone().unwrap_or_default();
    let ends = body.active_deadline_seconds.is_some();
    let best_effort = pod.status.as_ref().and_then(|s| s.qos_class.as_deref()) == Some("BestEffort");
    let class = body.priority_class_name.unwrap_or_default();
    let scope = |name: &str| match name {
        "Terminating" => ends,
        "NotTerminating" => !ends,
        "BestEffort" => best_effort,
        "NotBestEffort" => !best_effort,
        _ => true,
    };
    let selected =
        spec.scope_selector.iter().flat_map(|selector| selector.match_expressions.iter().flatten());
    spec.scopes.iter().flatten().all(|name| scope(name))
        && selected.into_iter().all(|wanted| match (wanted.scope_name.as_str(), wanted.operator.as_str()) {
            ("PriorityClass", "In") => wanted.values.iter().flatten().any(|value| *value == class),
            ("PriorityClass", "NotIn") => !wanted.values.iter().flatten().any(|value| *value == class),
            ("PriorityClass", "Exists") => !class.is_empty(),
            ("PriorityClass", "DoesNotExist") => class.is_empty(),
            (name, _) => scope(name),
        })
}

/// How many objects there are of a resource such as `deployments.apps`; `None` if it is not served.
async fn count(resource: &str, namespace: &str, ctx: &Context<ResourceQuota>) -> Option<i128> {
    let (plural, group) = resource.split_once('.').unwrap_or((resource, ""));
    let known = crate::resources::discover(ctx.client()).await.ok()?;
    let found = known.into_iter().find(|one| one.api.plural == plural && one.api.group == group)?;
    let resource: ApiResource = found.api;
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client().clone(), namespace, &resource);
    Some(api.list_metadata(&ListParams::default()).await.ok()?.items.len() as i128)
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;

    #[test]
    fn running_pods_use_what_they_ask_for() {
        let pod: Pod = from_value(json!({
            "spec": {"containers": [{"name": "a", "resources": {
                "requests": {"cpu": "250m"}, "limits": {"memory": "1Gi"}}}]},
        }))
        .unwrap();
        let mut used = Used::new();
        count_pod(&mut used, &pod);
        assert_eq!((used["pods"], used["cpu"], used["requests.cpu"]), (1000, 250, 250));
        assert_eq!(used["limits.memory"], 1024 * 1024 * 1024 * 1000);
        let ended = Pod { status: from_value(json!({"phase": "Succeeded"})).unwrap(), ..pod };
        let mut nothing = Used::new();
        count_pod(&mut nothing, &ended);
        assert!(nothing.is_empty());
    }

    #[test]
    fn scopes_choose_pods() {
        let spec = |scope: &str| from_value::<ResourceQuotaSpec>(json!({"scopes": [scope]})).unwrap();
        let plain = Pod::default();
        assert!(in_scope(&spec("NotTerminating"), &plain) && !in_scope(&spec("Terminating"), &plain));
    }
}
