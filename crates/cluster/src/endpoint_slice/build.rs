//! The slices that a Service should have. Pure: the Service, its Pods and its slices enter, a [`Plan`] leaves.

use std::{collections::BTreeMap, sync::Arc};

use windlass::k8s_openapi::{
    api::{
        core::v1::{ObjectReference, Pod, Service, ServicePort},
        discovery::v1::{
            Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone,
        },
    },
    apimachinery::pkg::{apis::meta::v1::ObjectMeta, util::intstr::IntOrString},
};

use crate::pods;

const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: (&str, &str) =
    ("endpointslice.kubernetes.io/managed-by", "endpointslice-controller.k8s.io");
pub(super) const HEADLESS: &str = "service.kubernetes.io/headless";

/// The most endpoints of one slice.
const LARGEST: usize = 100;

/// What is to be done.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) update: Vec<(Arc<EndpointSlice>, EndpointSlice)>,
    pub(super) create: Vec<EndpointSlice>,
    pub(super) delete: Vec<Arc<EndpointSlice>>,
}

/// The zones of nodes, by their names.
pub(super) type Zones = BTreeMap<String, String>;

/// Ports as they compare and sort: name, protocol, number, application protocol.
pub(super) type Ports = Vec<(String, String, Option<i32>, Option<String>)>;

/// The least that has to be done to the slices of a Service.
pub(super) fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    existing: &[Arc<EndpointSlice>],
    zones: &Zones,
) -> Plan {
    let mut plan = Plan::default();
    let mut free: Vec<Arc<EndpointSlice>> = existing.to_vec();
    let mut groups = endpoints(service, pods);
    groups.values_mut().flatten().for_each(|endpoint| locate(endpoint, service, zones));
    if groups.is_empty() {
        // A Service without Pods has one empty slice.
        groups.insert(Ports::new(), Vec::new());
    }
    for (ports, endpoints) in groups {
        for chunk in chunks(endpoints) {
            let wanted = slice(service, &ports, chunk);
            // A slice with the same ports changes least.
            let reused = free.iter().position(|old| self::ports(old) == ports).or(free.len().checked_sub(1));
            match reused.map(|index| free.remove(index)) {
                None => plan.create.push(wanted),
                Some(old) => plan.update.push((old.clone(), merged(&old, wanted))),
            }
        }
    }
    plan.delete = free;
    plan
}

/// Says in which zone an endpoint is, and to whom its Service would rather have it answer.
fn locate(endpoint: &mut Endpoint, service: &Service, zones: &Zones) {
    endpoint.zone = endpoint.node_name.as_ref().and_then(|node| zones.get(node)).cloned();
    let wanted = service.spec.as_ref().and_then(|spec| spec.traffic_distribution.as_deref());
    let near = matches!(wanted, Some("PreferClose" | "PreferSameZone" | "PreferSameNode"));
    let ready = endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true);
    if !near || !ready {
        return;
    }
    let zone = endpoint.zone.clone().map(|name| vec![ForZone { name }]);
    let node = endpoint.node_name.clone().filter(|_| wanted == Some("PreferSameNode"));
    let node = node.map(|name| vec![ForNode { name }]);
    if zone.is_some() || node.is_some() {
        endpoint.hints = Some(EndpointHints { for_zones: zone, for_nodes: node });
    }
}

fn chunks(mut endpoints: Vec<Endpoint>) -> Vec<Vec<Endpoint>> {
    let mut chunks = Vec::new();
    while endpoints.len() > LARGEST {
        let rest = endpoints.split_off(LARGEST);
        chunks.push(std::mem::replace(&mut endpoints, rest));
    }
    chunks.push(endpoints);
    chunks
}

/// The endpoints by the ports that they have: a named port can have another number in each Pod.
pub(super) fn endpoints(service: &Service, pods: &[Arc<Pod>]) -> BTreeMap<Ports, Vec<Endpoint>> {
    let spec = service.spec.clone().unwrap_or_default();
    let all = spec.publish_not_ready_addresses == Some(true);
    let mut groups: BTreeMap<Ports, Vec<Endpoint>> = BTreeMap::new();
    for pod in pods.iter().filter(|pod| !pods::is_finished(pod)) {
        let Some(address) = pod.status.as_ref().and_then(|status| status.pod_ip.clone()) else { continue };
        let wanted = spec.ports.iter().flatten();
        let resolved: Ports = wanted.filter_map(|port| resolve(port, pod)).collect();
        groups.entry(resolved).or_default().push(endpoint(service, pod, address, all));
    }
    for endpoints in groups.values_mut() {
        endpoints.sort_by_cached_key(|one| one.addresses.clone());
    }
    groups
}

fn resolve(port: &ServicePort, pod: &Pod) -> Option<(String, String, Option<i32>, Option<String>)> {
    let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
    let number = match &port.target_port {
        None => port.port,
        Some(IntOrString::Int(number)) => *number,
        Some(IntOrString::String(name)) => {
            let mut ports =
                pod.spec.iter().flat_map(|s| &s.containers).flat_map(|c| c.ports.iter().flatten());
            let same = |p: &&windlass::k8s_openapi::api::core::v1::ContainerPort| {
                p.name.as_ref() == Some(name) && p.protocol.as_deref().unwrap_or("TCP") == protocol
            };
            ports.find(same)?.container_port
        }
    };
    Some((port.name.clone().unwrap_or_default(), protocol, Some(number), port.app_protocol.clone()))
}

fn endpoint(service: &Service, pod: &Pod, address: String, publish_all: bool) -> Endpoint {
    let (ready, going) = (pods::is_ready(pod), pods::is_terminating(&pod.metadata));
    let spec = pod.spec.as_ref();
    Endpoint {
        addresses: vec![address],
        conditions: Some(EndpointConditions {
            ready: Some(publish_all || (ready && !going)),
            serving: Some(ready),
            terminating: Some(going),
        }),
        hostname: spec
            .and_then(|spec| spec.hostname.clone())
            .filter(|_| spec.is_some_and(|spec| spec.subdomain == service.metadata.name)),
        node_name: pods::node(pod).map(str::to_owned),
        target_ref: Some(ObjectReference {
            kind: Some("Pod".into()),
            namespace: pod.metadata.namespace.clone(),
            name: pod.metadata.name.clone(),
            uid: pod.metadata.uid.clone(),
            ..ObjectReference::default()
        }),
        ..Endpoint::default()
    }
}

fn ports(slice: &EndpointSlice) -> Ports {
    let port = |port: &EndpointPort| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        (text(&port.name), text(&port.protocol), port.port, port.app_protocol.clone())
    };
    slice.ports.iter().flatten().map(port).collect()
}

fn slice(service: &Service, ports: &Ports, endpoints: Vec<Endpoint>) -> EndpointSlice {
    let name = service.metadata.name.clone().unwrap_or_default();
    let mut labels = service.metadata.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_NAME.into(), name.clone());
    labels.insert(MANAGED_BY.0.into(), MANAGED_BY.1.into());
    if service.spec.as_ref().is_some_and(|spec| spec.cluster_ip.as_deref() == Some("None")) {
        labels.insert(HEADLESS.into(), String::new());
    }
    let port = |(name, protocol, port, app): &(String, String, Option<i32>, Option<String>)| EndpointPort {
        name: Some(name.clone()),
        protocol: Some(protocol.clone()),
        port: *port,
        app_protocol: app.clone(),
    };
    EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            labels: Some(labels),
            ..ObjectMeta::default()
        },
        address_type: "IPv4".into(),
        endpoints: Some(endpoints),
        ports: Some(ports.iter().map(port).collect()).filter(|ports: &Vec<_>| !ports.is_empty()),
    }
}

/// The old slice with the content of the new one.
fn merged(old: &EndpointSlice, new: EndpointSlice) -> EndpointSlice {
    let mut metadata = old.metadata.clone();
    metadata.labels = new.metadata.labels;
    // The API server shows an empty list where we send none, and the other way round: that is no difference.
    let endpoints = match &old.endpoints {
        None if new.endpoints.as_ref().is_some_and(Vec::is_empty) => None,
        _ => new.endpoints,
    };
    let ports = match (&old.ports, new.ports) {
        (Some(old), None) if old.is_empty() => Some(Vec::new()),
        (_, new) => new,
    };
    EndpointSlice { metadata, address_type: old.address_type.clone(), endpoints, ports }
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    fn service() -> Service {
        from_value(json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]},
        }))
        .unwrap()
    }

    fn pod(name: &str, address: &str, port: i32) -> Arc<Pod> {
        let mut pod = Pod::test(name).on("n1").phase("Running").ready_at(1);
        pod.status.as_mut().unwrap().pod_ip = Some(address.into());
        let containers = json!([{"name": "c", "ports": [{"name": "web", "containerPort": port}]}]);
        pod.spec.as_mut().unwrap().containers = from_value(containers).unwrap();
        Arc::new(pod)
    }

    #[test]
    fn ready_pods_become_endpoints_under_their_named_port() {
        let plan =
            plan(&service(), &[pod("b", "10.0.0.2", 8080), pod("a", "10.0.0.1", 8080)], &[], &Zones::new());
        assert_eq!(plan.create.len(), 1);
        let slice = &plan.create[0];
        assert_eq!(ports(slice), [("http".into(), "TCP".into(), Some(8080), None)]);
        let addresses: Vec<_> = slice.endpoints.iter().flatten().map(|e| e.addresses[0].as_str()).collect();
        assert_eq!(addresses, ["10.0.0.1", "10.0.0.2"]);
        assert_eq!(slice.metadata.labels.as_ref().unwrap()[SERVICE_NAME], "web");
    }

    #[test]
    fn pods_with_another_port_number_get_a_slice_of_their_own() {
        let plan =
            plan(&service(), &[pod("a", "10.0.0.1", 8080), pod("b", "10.0.0.2", 9090)], &[], &Zones::new());
        assert_eq!(plan.create.len(), 2);
    }

    #[test]
    fn a_slice_holds_a_hundred_endpoints() {
        let pods: Vec<_> =
            (0..250).map(|i| pod(&format!("p{i}"), &format!("10.0.{}.{}", i / 200, i % 200), 80)).collect();
        let sizes: Vec<_> = plan(&service(), &pods, &[], &Zones::new())
            .create
            .iter()
            .map(|slice| slice.endpoints.as_ref().unwrap().len())
            .collect();
        assert_eq!(sizes, [100, 100, 50]);
    }

    #[test]
    fn slices_are_reused_and_surplus_ones_deleted() {
        let pods = [pod("a", "10.0.0.1", 8080)];
        let old: Vec<_> =
            plan(&service(), &pods, &[], &Zones::new()).create.into_iter().map(Arc::new).collect();
        let again = plan(&service(), &pods, &old, &Zones::new());
        assert!(again.create.is_empty() && again.delete.is_empty());
        assert_eq!(again.update[0].1, *old[0]);
        let two = vec![old[0].clone(), old[0].clone()];
        assert_eq!(plan(&service(), &pods, &two, &Zones::new()).delete.len(), 1);
        let none = plan(&service(), &[], &old, &Zones::new());
        assert_eq!(none.update[0].1.endpoints, Some(Vec::new()));
    }

    #[test]
    fn what_is_not_ready_is_published_but_does_not_serve() {
        let mut service = service();
        service.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
        let mut starting = Pod::clone(&pod("a", "10.0.0.1", 80));
        starting.status.as_mut().unwrap().conditions = None;
        starting.spec.as_mut().unwrap().hostname = Some("a".into());
        starting.spec.as_mut().unwrap().subdomain = Some("another".into());
        let plan = plan(&service, &[Arc::new(starting)], &[], &Zones::new());
        let endpoint = &plan.create[0].endpoints.as_ref().unwrap()[0];
        let conditions = endpoint.conditions.clone().unwrap();
        assert_eq!((conditions.ready, conditions.serving), (Some(true), Some(false)));
        assert_eq!(endpoint.hostname, None, "the name is one of another Service");
    }

    #[test]
    fn endpoints_have_the_zones_of_their_nodes_and_hints_where_they_are_wanted() {
        let zones: Zones = [("n1".to_owned(), "east".to_owned())].into();
        let pods = [pod("a", "10.0.0.1", 80)];
        let first = |service: &Service| {
            plan(service, &pods, &[], &zones).create[0].endpoints.clone().unwrap().remove(0)
        };
        let plain = first(&service());
        assert_eq!((plain.zone.as_deref(), plain.hints), (Some("east"), None));
        let mut near = service();
        near.spec.as_mut().unwrap().traffic_distribution = Some("PreferClose".into());
        let hints = first(&near).hints.unwrap();
        assert_eq!((hints.for_zones.unwrap()[0].name.as_str(), hints.for_nodes), ("east", None));
        near.spec.as_mut().unwrap().traffic_distribution = Some("PreferSameNode".into());
        assert_eq!(first(&near).hints.unwrap().for_nodes.unwrap()[0].name, "n1");
    }
}
