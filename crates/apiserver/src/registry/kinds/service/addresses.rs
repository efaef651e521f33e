//! Cluster addresses and node ports of Services.
//!
//! The real server keeps bitmaps beside the Services; here the Services themselves are the record, read
//! once and then kept in step, so that there is nothing that could disagree with them. What a write takes is a
//! [`Reservation`]: it is given back when the write comes to nothing, however it ends.

use std::{
    collections::BTreeSet,
    net::Ipv4Addr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serde_json::{Value, json};

use super::text;
use crate::{
    error::{Cause, Error, Result},
    registry::{Registry, Resource, decode, strategy::Reservation},
    store::Object,
};

/// 10.96.0.0/16, as the testbed and kubeadm use it.
const FIRST: u32 = u32::from_be_bytes([10, 96, 0, 10]);
const LAST: u32 = u32::from_be_bytes([10, 96, 255, 254]);
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

/// What is taken, by all Services and by the writes under way.
pub(in crate::registry) type Shared = Arc<Mutex<Addresses>>;

/// Addresses and node ports.
#[derive(Debug, Default, Clone)]
struct Held {
    cluster: BTreeSet<u32>,
    ports: BTreeSet<u16>,
}

/// What is taken.
#[derive(Debug, Default)]
pub(in crate::registry) struct Addresses {
    /// How often the store had gone back when they were read.
    loaded: Option<u64>,
    held: Held,
    /// What writes under way have taken of it.
    reserved: Held,
}

/// What a write has taken and no Service holds yet.
#[derive(Debug)]
struct Taken {
    new: Held,
    addresses: Shared,
    kept: bool,
}

impl Reservation for Taken {
    fn keep(mut self: Box<Self>, old: Option<&Value>, stored: &Value) {
        self.kept = true;
        let mut addresses = lock(&self.addresses);
        addresses.reserved.release(&self.new);
        if let Some(old) = old {
            addresses.held.release(&Held::by(old).without(&Held::by(stored)));
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if !self.kept {
            let mut addresses = lock(&self.addresses);
            addresses.reserved.release(&self.new);
            addresses.held.release(&self.new);
        }
    }
}

impl Held {
    /// What a Service holds.
    fn by(service: &Value) -> Self {
        let address = text(service, "/spec/clusterIP").parse::<Ipv4Addr>().ok();
        Self {
            cluster: address.into_iter().map(u32::from).collect(),
            ports: ports(service).filter_map(node_port).collect(),
        }
    }

    fn without(&self, other: &Self) -> Self {
        Self { cluster: &self.cluster - &other.cluster, ports: &self.ports - &other.ports }
    }

    fn take(&mut self, other: &Self) {
        self.cluster.extend(&other.cluster);
        self.ports.extend(&other.ports);
    }

    fn release(&mut self, other: &Self) {
        self.cluster.retain(|address| !other.cluster.contains(address));
        self.ports.retain(|port| !other.ports.contains(port));
    }
}

fn lock(addresses: &Shared) -> MutexGuard<'_, Addresses> {
    addresses.lock().unwrap_or_else(PoisonError::into_inner)
}

fn needs_address(service: &Value) -> bool {
    text(service, "/spec/type") != "ExternalName" && text(service, "/spec/clusterIP") != "None"
}

fn ports(service: &Value) -> impl Iterator<Item = &Value> {
    service.pointer("/spec/ports").and_then(Value::as_array).into_iter().flatten()
}

fn node_port(port: &Value) -> Option<u16> {
    port["nodePort"].as_u64().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

/// Gives a new or changed Service the address and the node ports that it needs.
pub(super) fn reserve(
    registry: &Registry,
    resource: &Resource,
    service: &mut Value,
    old: Option<&Value>,
) -> Result<Box<dyn Reservation>> {
    let mut addresses = lock(&registry.addresses);
    let losses = registry.store().losses();
    if addresses.loaded != Some(losses) {
        addresses.loaded = Some(losses);
        addresses.held = addresses.reserved.clone();
        for object in registry.store().snapshot(&resource.table, None).objects {
            addresses.held.take(&Held::by(&decode::stored(&object)));
        }
    }
    let own = old.map(Held::by).unwrap_or_default();
    let mut choice = Choice { taken: &addresses.held, own: &own, new: Held::default() };
    let mut causes = Vec::new();
    if needs_address(service) {
        choice.cluster_ip(service, &mut causes)?;
    }
    if causes.is_empty() && matches!(text(service, "/spec/type"), "NodePort" | "LoadBalancer") {
        choice.node_ports(service, &mut causes)?;
    }
    if !causes.is_empty() {
        return Err(Error::invalid(resource.named_kind(), text(service, "/metadata/name"), causes));
    }
    let new = choice.new;
    addresses.held.take(&new);
    addresses.reserved.take(&new);
    Ok(Box::new(Taken { new, addresses: Arc::clone(&registry.addresses), kept: false }))
}

/// Returns what a removed Service held.
pub(super) fn release(registry: &Registry, _: &Resource, last: &Object) {
    lock(&registry.addresses).held.release(&Held::by(&decode::stored(last)));
}

/// What a write may take: what nobody has, and what its own Service has already.
struct Choice<'a> {
    taken: &'a Held,
    own: &'a Held,
    new: Held,
}

impl Choice<'_> {
    fn cluster_ip(&mut self, service: &mut Value, causes: &mut Vec<Cause>) -> Result<()> {
        let asked = text(service, "/spec/clusterIP").to_owned();
        let address = if asked.is_empty() {
            let free = (FIRST..=LAST).find(|address| !self.taken.cluster.contains(address));
            let free =
                free.ok_or_else(|| Error::internal("failed to allocate a serviceIP: range is full"))?;
            self.new.cluster.insert(free);
            Ipv4Addr::from(free)
        } else {
            let refused = |why: &str| {
                let why = format!("failed to allocate IP {asked}: {why}");
                Cause::invalid("spec.clusterIPs", &json!([asked]), why)
            };
            let address: Option<Ipv4Addr> = asked.parse().ok();
            let Some(address) = address.filter(|address| [10, 96] == address.octets()[..2]) else {
                causes.push(refused("the provided network does not match the current range"));
                return Ok(());
            };
            let number = u32::from(address);
            if !self.own.cluster.contains(&number) {
                if self.taken.cluster.contains(&number) {
                    causes.push(refused("provided IP is already allocated"));
                    return Ok(());
                }
                self.new.cluster.insert(number);
            }
            address
        };
        service["spec"]["clusterIP"] = json!(address.to_string());
        service["spec"]["clusterIPs"] = json!([address.to_string()]);
        service["spec"]["ipFamilies"] = json!(["IPv4"]);
        Ok(())
    }

    fn node_ports(&mut self, service: &mut Value, causes: &mut Vec<Cause>) -> Result<()> {
        let balanced = text(service, "/spec/type") == "LoadBalancer";
        let unwanted =
            balanced && service.pointer("/spec/allocateLoadBalancerNodePorts") == Some(&json!(false));
        let Some(list) = service.pointer_mut("/spec/ports").and_then(Value::as_array_mut) else {
            return Ok(());
        };
        // Those that were asked for first, so that none of them is given away below. One number may serve two protocols.
        let mut asked = BTreeSet::new();
        for (index, port) in list.iter().enumerate() {
            let Some(number) = node_port(port) else { continue };
            let again = !asked.insert((number, text(port, "/protocol").to_owned()));
            let why = if !(FIRST_PORT..=LAST_PORT).contains(&number) {
                format!(
                    "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
                )
            } else if again || (self.taken.ports.contains(&number) && !self.own.ports.contains(&number)) {
                "provided port is already allocated".to_owned()
            } else {
                if !self.own.ports.contains(&number) {
                    self.new.ports.insert(number);
                }
                continue;
            };
            causes.push(Cause::invalid(format!("spec.ports[{index}].nodePort"), &json!(number), why));
            return Ok(());
        }
        for port in list.iter_mut().filter(|port| node_port(port).is_none()) {
            if unwanted {
                continue;
            }
            let free = (FIRST_PORT..=LAST_PORT)
                .find(|number| !self.taken.ports.contains(number) && !self.new.ports.contains(number))
                .ok_or_else(|| Error::internal("failed to allocate a nodePort: range is full"))?;
            self.new.ports.insert(free);
            port["nodePort"] = json!(free);
        }
        Ok(())
    }
}
