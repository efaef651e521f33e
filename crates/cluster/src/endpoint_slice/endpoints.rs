//! The Endpoints object of a Service, for those who still read it. Pure.

use std::{collections::BTreeMap, sync::Arc};

use windlass::k8s_openapi::{
    api::{
        core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service},
        discovery::v1::Endpoint,
    },
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};

use super::build::{self, HEADLESS};

const MANAGED_BY: (&str, &str) = ("endpoints.kubernetes.io/managed-by", "endpoint-controller");

/// The most addresses that the object holds; there can be more in slices.
const MOST: usize = 1000;

/// Whether the object was made here, and not by hand.
pub(super) fn is_own(endpoints: &Endpoints) -> bool {
    let label = endpoints.metadata.labels.as_ref().and_then(|labels| labels.get(MANAGED_BY.0));
    label.is_some_and(|value| value == MANAGED_BY.1)
}

/// The Endpoints that a Service should have.
pub(super) fn build(service: &Service, pods: &[Arc<Pod>]) -> Endpoints {
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(MANAGED_BY.0.into(), MANAGED_BY.1.into());
    if service.spec.as_ref().is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None")) {
        labels.insert(HEADLESS.into(), String::new());
    }
    let mut left = MOST;
    let portless = service.spec.as_ref().is_none_or(|spec| spec.ports.iter().flatten().next().is_none());
    let subsets: Vec<EndpointSubset> = repacked(build::endpoints(service, pods), portless)
        .into_iter()
        .map(|(ports, endpoints)| subset(&ports, &endpoints, &mut left))
        .filter(|subset| subset.addresses.is_some() || subset.not_ready_addresses.is_some())
        .collect();
    Endpoints {
        metadata: ObjectMeta {
            name: service.metadata.name.clone(),
            namespace: service.metadata.namespace.clone(),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        subsets: Some(subsets).filter(|subsets| !subsets.is_empty()),
    }
}

/// Groups by ports: those with the same addresses are together. Without a port of the Service's an address is left out,
/// unless the Service has none at all.
fn repacked(
    groups: BTreeMap<build::Ports, Vec<Endpoint>>,
    portless: bool,
) -> Vec<(build::Ports, Vec<Endpoint>)> {
    let mut by_port: BTreeMap<build::Ports, Vec<Endpoint>> = BTreeMap::new();
    for (ports, endpoints) in groups {
        let none = (portless && ports.is_empty()).then(Vec::new);
        for port in none.into_iter().chain(ports.into_iter().map(|port| vec![port])) {
            by_port.entry(port).or_default().extend(endpoints.iter().cloned());
        }
    }
    let mut packed: BTreeMap<Vec<Vec<String>>, (build::Ports, Vec<Endpoint>)> = BTreeMap::new();
    for (port, mut endpoints) in by_port {
        endpoints.sort_by_cached_key(|one| one.addresses.clone());
        let addresses = endpoints.iter().map(|one| one.addresses.clone()).collect();
        packed.entry(addresses).or_insert_with(|| (Vec::new(), endpoints)).0.extend(port);
    }
    packed.into_values().collect()
}

fn subset(ports: &build::Ports, endpoints: &[Endpoint], left: &mut usize) -> EndpointSubset {
    let is = |endpoint: &Endpoint, ready: bool| {
        let conditions = endpoint.conditions.clone().unwrap_or_default();
        // What is on its way out is in slices only.
        conditions.ready == Some(ready) && (ready || conditions.terminating != Some(true))
    };
    let mut addresses = |ready: bool| {
        let matching = endpoints.iter().filter(|endpoint| is(endpoint, ready));
        let some: Vec<EndpointAddress> = matching.take(*left).map(address).collect();
        *left -= some.len();
        Some(some).filter(|some| !some.is_empty())
    };
    let port = |(name, protocol, number, app_protocol): &(String, String, Option<i32>, Option<String>)| {
        EndpointPort {
            name: Some(name.clone()).filter(|name| !name.is_empty()),
            protocol: Some(protocol.clone()),
            port: number.unwrap_or(0),
            app_protocol: app_protocol.clone(),
        }
    };
    EndpointSubset {
        addresses: addresses(true),
        not_ready_addresses: addresses(false),
        ports: Some(ports.iter().map(port).collect::<Vec<_>>()).filter(|ports| !ports.is_empty()),
    }
}

fn address(endpoint: &Endpoint) -> EndpointAddress {
    EndpointAddress {
        ip: endpoint.addresses.first().cloned().unwrap_or_default(),
        hostname: endpoint.hostname.clone(),
        node_name: endpoint.node_name.clone(),
        target_ref: endpoint.target_ref.clone(),
    }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    #[test]
    fn ready_and_unready_addresses_are_told_apart() {
        let service: Service = from_value(json!({
            "metadata": {"name": "web"}, "spec": {"ports": [{"name": "http", "port": 80, "targetPort": 8080}]}
        }))
        .unwrap();
        let at = |name: &str, ip: &str| {
            let mut pod = Pod::test(name).phase("Running").on("n1");
            pod.status.as_mut().unwrap().pod_ip = Some(ip.into());
            pod
        };
        let pods = [Arc::new(at("a", "10.0.0.1").ready_at(1)), Arc::new(at("b", "10.0.0.2"))];
        let subset = build(&service, &pods).subsets.unwrap().remove(0);
        assert_eq!(subset.addresses.unwrap()[0].ip, "10.0.0.1");
        assert_eq!(subset.not_ready_addresses.unwrap()[0].ip, "10.0.0.2");
        assert_eq!(subset.ports.unwrap()[0].port, 8080);
        assert_eq!(build(&service, &[]).subsets, None);
    }
}
