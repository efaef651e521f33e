//! EndpointSlices for Endpoints that somebody wrote by hand: whoever reads slices finds those addresses too.
//!
//! Enters: the Endpoints of a Service without a selector. Leave: slices that they own, one for each subset and
//! family of addresses.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use windlass::{
    Action, Context, Controller, ObjectKey, Reconciler,
    k8s_openapi::{
        api::{
            core::v1::{EndpointAddress, EndpointSubset, Endpoints, Service},
            discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice},
        },
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
};

const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SERVICE: &str = "kubernetes.io/service-name";
/// With this label, Endpoints say that they want no slices.
const SKIP: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with this annotation are a lock, not addresses.
const LOCK: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that speak of the Endpoints alone.
const OWN_ANNOTATIONS: [&str; 2] =
    ["endpoints.kubernetes.io/last-change-trigger-time", "kubectl.kubernetes.io/last-applied-configuration"];

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Mirrors> {
    Controller::new(Mirrors)
        .name("endpointslice-mirroring-controller")
        .core_events("endpoint-slice-mirroring-controller")
        .owns::<EndpointSlice>()
        .watches::<Service, _>(|service, _| vec![ObjectKey::of(service)])
        .concurrency(2)
}

/// Keeps the slices of Endpoints.
pub(crate) struct Mirrors;

impl Reconciler for Mirrors {
    type Resource = Endpoints;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        endpoints: Arc<Endpoints>,
        ctx: &Context<Endpoints>,
    ) -> windlass::Result<Action> {
        let service = ctx.get::<Service>(ctx.key().namespace(), ctx.key().name())?;
        let wanted = match service {
            Some(service) if is_mirrored(&endpoints, &service) => slices(&endpoints),
            _ => Vec::new(),
        };
        let mut existing = ctx.owned::<EndpointSlice>()?;
        existing.sort_by_cached_key(|one| one.metadata.name.clone());
        for slice in wanted {
            // The family of a slice never changes.
            let same = existing.iter().position(|old| old.address_type == slice.address_type);
            let written = match same.map(|index| existing.remove(index)) {
                Some(old) => ctx.modify(&*old, |old| replace(old, slice)).await.map(drop),
                None => ctx.create_child(slice).await.map(drop),
            };
            match written {
                // The namespace went in between.
                Err(error) if error.status().is_some_and(|status| matches!(status.code, 403 | 404)) => {}
                Err(error) => return crate::retry_conflicts(Err(error)),
                Ok(()) => {}
            }
        }
        for surplus in existing {
            ctx.delete(&*surplus).await?;
        }
        Ok(Action::await_change())
    }
}

fn is_mirrored(endpoints: &Endpoints, service: &Service) -> bool {
    let meta = &endpoints.metadata;
    let skips = meta.labels.as_ref().and_then(|labels| labels.get(SKIP)).is_some_and(|skip| skip == "true");
    let locks = meta.annotations.as_ref().is_some_and(|annotations| annotations.contains_key(LOCK));
    let selects =
        service.spec.as_ref().and_then(|spec| spec.selector.as_ref()).is_some_and(|s| !s.is_empty());
    !skips && !locks && !selects && meta.deletion_timestamp.is_none()
}

fn replace(old: &mut EndpointSlice, new: EndpointSlice) {
    old.metadata.labels = new.metadata.labels;
    old.metadata.annotations = new.metadata.annotations;
    old.endpoints = new.endpoints;
    old.ports = new.ports;
}

/// The slices that say what the Endpoints say.
fn slices(endpoints: &Endpoints) -> Vec<EndpointSlice> {
    let subsets = endpoints.subsets.iter().flatten();
    let family = |subset: &EndpointSubset, wanted: &str| {
        let of = |addresses: &Option<Vec<EndpointAddress>>, ready: bool| -> Vec<Endpoint> {
            let fitting = addresses.iter().flatten().filter(|address| family_of(&address.ip) == Some(wanted));
            fitting.map(|address| endpoint(address, ready)).collect()
        };
        let mut all = of(&subset.addresses, true);
        all.extend(of(&subset.not_ready_addresses, false));
        (!all.is_empty()).then(|| slice(endpoints, subset, wanted, all))
    };
    subsets
        .flat_map(|subset| {
            ["IPv4", "IPv6"].into_iter().filter_map(|wanted| family(subset, wanted)).collect::<Vec<_>>()
        })
        .collect()
}

fn family_of(address: &str) -> Option<&'static str> {
    match address.parse().ok()? {
        IpAddr::V4(_) => Some("IPv4"),
        IpAddr::V6(_) => Some("IPv6"),
    }
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone(),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn slice(endpoints: &Endpoints, subset: &EndpointSubset, family: &str, all: Vec<Endpoint>) -> EndpointSlice {
    let name = endpoints.metadata.name.clone().unwrap_or_default();
    let mut labels = endpoints.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.into(), MANAGER.into());
    labels.insert(SERVICE.into(), name.clone());
    let mut annotations: BTreeMap<String, String> =
        endpoints.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|key, _| !OWN_ANNOTATIONS.contains(&key.as_str()));
    let port = |port: &windlass::k8s_openapi::api::core::v1::EndpointPort| EndpointPort {
        name: Some(port.name.clone().unwrap_or_default()),
        port: Some(port.port),
        protocol: Some(port.protocol.clone().unwrap_or_else(|| "TCP".into())),
        app_protocol: port.app_protocol.clone(),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: endpoints.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations).filter(|annotations| !annotations.is_empty()),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(all),
        ports: Some(subset.ports.iter().flatten().map(port).collect()),
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;

    fn endpoints(labels: windlass::serde_json::Value) -> Endpoints {
        from_value(json!({
            "metadata": {"name": "db", "namespace": "n", "labels": labels},
            "subsets": [{
                "addresses": [{"ip": "10.1.2.3"}, {"ip": "fd00::1"}],
                "notReadyAddresses": [{"ip": "10.1.2.4"}],
                "ports": [{"port": 80}],
            }],
        }))
        .unwrap()
    }

    #[test]
    fn each_family_has_a_slice_and_readiness_is_kept() {
        let slices = slices(&endpoints(json!({"app": "db"})));
        let families: Vec<&str> = slices.iter().map(|slice| slice.address_type.as_str()).collect();
        assert_eq!(families, ["IPv4", "IPv6"]);
        let ready: Vec<_> =
            slices[0].endpoints.iter().flatten().map(|one| one.conditions.as_ref().unwrap().ready).collect();
        assert_eq!(ready, [Some(true), Some(false)]);
        let labels = slices[0].metadata.labels.as_ref().unwrap();
        assert_eq!((labels["app"].as_str(), labels[SERVICE].as_str()), ("db", "db"));
    }

    #[test]
    fn a_service_that_selects_has_slices_of_its_own() {
        let service: Service = from_value(json!({"spec": {"selector": {"a": "b"}}})).unwrap();
        assert!(!is_mirrored(&endpoints(json!({})), &service));
        assert!(is_mirrored(&endpoints(json!({})), &Service::default()));
        assert!(!is_mirrored(&endpoints(json!({SKIP: "true"})), &Service::default()));
    }
}
