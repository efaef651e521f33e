//! Ports of the node that Pods ask for: two cannot have the same one. Pure.

use std::sync::Arc;

use windlass::k8s_openapi::api::core::v1::{ContainerPort, Pod, PodSpec};

use crate::pods;

/// Every address of a node.
const ANY: &str = "0.0.0.0";

/// Whether a Pod asks for a port of the node that one of the others has.
pub(crate) fn conflict<'a>(spec: &PodSpec, others: impl IntoIterator<Item = &'a Arc<Pod>>) -> bool {
    let wanted: Vec<_> = host_ports(spec).collect();
    if wanted.is_empty() {
        return false;
    }
    let active = others.into_iter().filter(|pod| !pods::is_finished(pod));
    let mut taken = active.filter_map(|pod| pod.spec.as_ref()).flat_map(host_ports);
    taken.any(|taken| wanted.iter().any(|wanted| meet(wanted, &taken)))
}

/// Whether a Pod asks for a port of its node at all: hardly any does.
pub(crate) fn are_wanted(spec: &PodSpec) -> bool {
    host_ports(spec).next().is_some()
}

fn host_ports(spec: &PodSpec) -> impl Iterator<Item = (&str, &str, i32)> {
    let sidecars =
        spec.init_containers.iter().flatten().filter(|init| init.restart_policy.as_deref() == Some("Always"));
    let ports = spec.containers.iter().chain(sidecars).flat_map(|container| container.ports.iter().flatten());
    ports.filter_map(|port: &ContainerPort| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let address = port.host_ip.as_deref().filter(|address| !address.is_empty()).unwrap_or(ANY);
        Some((address, port.protocol.as_deref().unwrap_or("TCP"), number))
    })
}

fn meet(one: &(&str, &str, i32), other: &(&str, &str, i32)) -> bool {
    (one.1, one.2) == (other.1, other.2) && (one.0 == other.0 || one.0 == ANY || other.0 == ANY)
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{from_value, json};

    use super::*;
    use crate::pods::tests::PodFixture;

    fn asking(address: &str, protocol: &str, port: i32) -> Pod {
        let port = json!({"containerPort": 80, "hostPort": port, "hostIP": address, "protocol": protocol});
        Pod {
            spec: from_value(json!({"containers": [{"name": "c", "ports": [port]}]})).unwrap(),
            ..Pod::test("p")
        }
    }

    #[test]
    fn a_port_is_taken_on_its_address_and_for_its_protocol() {
        let taken = [Arc::new(asking("127.0.0.1", "TCP", 54321))];
        let meets = |pod: Pod| conflict(&pod.spec.unwrap(), &taken);
        assert!(meets(asking("127.0.0.1", "TCP", 54321)));
        assert!(meets(asking("", "TCP", 54321)));
        assert!(!meets(asking("127.0.0.2", "TCP", 54321)));
        assert!(!meets(asking("127.0.0.1", "UDP", 54321)));
        assert!(!meets(asking("127.0.0.1", "TCP", 54322)));
        assert!(!meets(Pod::test("none")));
    }
}
