//! Cluster addresses and node ports of Services.
//!
//! The real server keeps bitmaps beside the Services; here the Services themselves are the record, read
//! once and then kept in step, so that there is nothing that could disagree with them.

use std::{collections::BTreeSet, net::Ipv4Addr};

use serde_json::{Value, json};

use super::{Registry, Resource, decode, resource::text};
use crate::error::{Cause, Error, Result};

/// 10.96.0.0/16, as the testbed and kubeadm use it.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 10]);
const LAST: u32 = u32::from_be_bytes([10, 96, 255, 254]);
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

/// What is taken.
#[derive(Debug, Default)]
pub(super) struct Addresses {
    /// How often the store had gone back when they were read.
    loaded: Option<u64>,
    cluster: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

fn needs_address(service: &Value) -> bool {
    text(service, "/spec/type") != "ExternalName" && text(service, "/spec/clusterIP") != "None"
}

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten()
}

impl Registry {
    /// Gives a new or changed Service the address and the node ports that it needs.
    pub(super) fn assign_addresses(&self, resource: &Resource, service: &mut Value) -> Result<()> {
        let mut taken = self.addresses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let losses = self.store().losses();
        if taken.loaded != Some(losses) {
            *taken = Addresses { loaded: Some(losses), ..Addresses::default() };
            for object in self.store().snapshot(&resource.table, None).objects {
                taken.note(&decode::stored(&object));
            }
        }
        if needs_address(service) {
            assign_cluster_ip(&mut taken, resource, service)?;
        }
        if matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer") {
            assign_node_ports(&mut taken, resource, service)?;
        }
        Ok(())
    }

    /// Returns what a changed Service held and holds no longer.
    pub(super) fn release_unused(&self, old: &Value, new: &Value) {
        let mut taken = self.addresses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (before, after) = (text(old, "/spec/clusterIP"), text(new, "/spec/clusterIP"));
        if before != after
            && let Ok(address) = before.parse::<Ipv4Addr>()
        {
            taken.cluster.remove(&address.into());
        }
        let kept: BTreeSet<u16> = ports(new).filter_map(node_port).collect();
        for port in ports(old).filter_map(node_port).filter(|port| !kept.contains(port)) {
            taken.ports.remove(&port);
        }
    }

    /// Returns what a removed Service held.
    pub(super) fn release_addresses(&self, service: &Value) {
        let mut taken = self.addresses.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Ok(address) = text(service, "/spec/clusterIP").parse::<Ipv4Addr>() {
            taken.cluster.remove(&address.into());
        }
        for port in ports(service).filter_map(node_port) {
            taken.ports.remove(&port);
        }
    }
}

impl Addresses {
    fn note(&mut self, service: &Value) {
        if let Ok(address) = text(service, "/spec/clusterIP").parse::<Ipv4Addr>() {
            self.cluster.insert(address.into());
        }
        self.ports.extend(ports(service).filter_map(node_port));
    }
}

fn node_port(port: &Value) -> Option<u16> {
    port["nodePort"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

fn assign_node_ports(taken: &mut Addresses, resource: &Resource, service: &mut Value) -> Result<()> {
    for (index, port) in ports(service).enumerate() {
        if let Some(number) = node_port(port).filter(|number| !(FIRST_PORT..=LAST_PORT).contains(number)) {
            let why = format!(
                "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
            );
            let cause = Cause::invalid(format!("spec.ports[{index}].nodePort"), &json!(number), why);
            return Err(Error::invalid(resource.named_kind(), text(service, "/metadata/name"), vec![cause]));
        }
    }
    let balanced = text(service, "/spec/type") == "LoadBalancer";
    let unwanted = balanced && service.pointer("/spec/allocateLoadBalancerNodePorts") == Some(&json!(false));
    let Some(list) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else { return Ok(()) };
    for port in list {
        let number = match node_port(port) {
            Some(number) => number,
            None if unwanted => continue,
            None => (FIRST_PORT..=LAST_PORT)
                .find(|number| !taken.ports.contains(number))
                .ok_or_else(|| Error::internal("failed to allocate a nodePort: range is full"))?,
        };
        taken.ports.insert(number);
        port["nodePort"] = json!(number);
    }
    Ok(())
}

fn assign_cluster_ip(taken: &mut Addresses, resource: &Resource, service: &mut Value) -> Result<()> {
    let asked = text(service, "/spec/clusterIP").to_owned();
    let address = if asked.is_empty() {
        let free = (FIRST..=LAST).find(|address| !taken.cluster.contains(address));
        let free = free.ok_or_else(|| Error::internal("failed to allocate a serviceIP: range is full"))?;
        Ipv4Addr::from(free)
    } else {
        let address: Option<Ipv4Addr> = asked.parse().ok();
        address.filter(|address| [10, 96] == address.octets()[..2]).ok_or_else(|| {
            let why = format!(
                "failed to allocate IP {asked}: the provided network does not match the current range"
            );
            let cause = Cause::invalid("spec.clusterIPs", &json!([asked]), why);
            Error::invalid(resource.named_kind(), text(service, "/metadata/name"), vec![cause])
        })?
    };
    taken.cluster.insert(address.into());
    service["spec"]["clusterIP"] = json!(address.to_string());
    service["spec"]["clusterIPs"] = json!([address.to_string()]);
    service["spec"]["ipFamilies"] = json!(["IPv4"]);
    Ok(())
}
