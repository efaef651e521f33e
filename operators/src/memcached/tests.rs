//! Build, without a cluster.

use k8s_openapi::api::{apps::v1::Deployment, core::v1::Service, policy::v1::PodDisruptionBudget};
use serde_json::json;

use super::{Exporter, Memcached, build, sample};

fn cache() -> Memcached {
    let mut cache = sample();
    cache.metadata.uid = Some("u-1".into());
    cache
}

#[test]
fn the_deployment_is_what_the_specification_says() {
    let children = build::children(&cache());
    let spec = children.of::<Deployment>()[0].spec.clone();
    let selector = json!({"app": "memcached", "memcached_cr": "memcached-sample"});
    assert_eq!(serde_json::to_value(spec.selector.match_labels).unwrap(), selector);
    let container = &spec.template.spec.unwrap().containers[0];
    let port = &container.ports.as_ref().unwrap()[0];
    assert_eq!((container.name.as_str(), port.name.as_deref()), ("memcached", Some("memcached")));
    assert_eq!((port.container_port, container.args.clone()), (11211, None));
}

#[test]
fn options_become_the_servers_arguments() {
    let mut cache = cache();
    cache.spec.memory_mb = Some(256);
    cache.spec.max_item_size = Some("2m".into());
    cache.spec.connections = Some(4096);
    let children = build::children(&cache);
    let pod = children.of::<Deployment>()[0].spec.template.spec.clone().unwrap();
    assert_eq!(pod.containers[0].args.as_ref().unwrap(), &["-m", "256", "-I", "2m", "-c", "4096"]);
}

#[test]
fn the_service_is_headless_and_selects_by_uid() {
    let children = build::children(&cache());
    let service = children.of::<Service>()[0].spec.clone().unwrap();
    assert_eq!(service.cluster_ip.as_deref(), Some("None"));
    assert_eq!(service.selector.unwrap()["cache.example.com/uid"], "u-1");
}

#[test]
fn a_single_node_has_no_disruption_budget() {
    let mut cache = cache();
    assert_eq!(build::children(&cache).of::<PodDisruptionBudget>().len(), 1);
    cache.spec.size = 1;
    assert!(build::children(&cache).of::<PodDisruptionBudget>().is_empty());
}

#[test]
fn an_exporter_is_a_second_container_with_a_port_of_its_own() {
    let mut cache = cache();
    cache.spec.exporter = Some(Exporter { image: "exporter:1".into() });
    let children = build::children(&cache);
    let pod = children.of::<Deployment>()[0].spec.template.spec.clone().unwrap();
    assert_eq!(pod.containers[1].image.as_deref(), Some("exporter:1"));
    let ports = children.of::<Service>()[0].spec.clone().unwrap().ports.unwrap();
    assert_eq!(ports[1].name.as_deref(), Some("metrics"));
}

#[test]
fn the_probes_ask_the_server_itself() {
    let children = build::children(&cache());
    let template = children.of::<Deployment>()[0].spec.template.clone();
    let container = &template.spec.unwrap().containers[0];
    for probe in [&container.readiness_probe, &container.liveness_probe] {
        let asked = probe.as_ref().unwrap().tcp_socket.as_ref().unwrap();
        assert_eq!(json!(asked.port), "memcached");
    }
}
