//! Where a Service is really reached.

use std::{
    collections::BTreeMap,
    fmt,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::io::DuplexStream;

use super::outgoing;
use crate::store::{Key, Store, TableName};

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServicePort {
    /// The namespace of the Service.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The port, as the Service numbers it.
    pub port: u16,
}

/// Finds the address behind a Service that a webhook is reached by.
pub trait Resolver: fmt::Debug + Send + Sync + 'static {
    /// An address to connect to, or what the caller is told instead.
    fn resolve(&self, store: &Store, service: &ServicePort) -> Result<SocketAddr, String>;

    /// A connection to a server of this process, if that is where the Service leads. TLS is spoken on it as on any.
    fn connect(&self, _: &ServicePort) -> Option<DuplexStream> {
        None
    }
}

/// Finds addresses as a cluster does: from the Service's EndpointSlices, or else from its Endpoints.
#[derive(Debug, Clone, Copy, Default)]
pub struct EndpointSlices;

/// A table of addresses, and EndpointSlices for what is not in it.
///
/// The Pods of the embedded cluster are simulated, so their addresses lead nowhere, and are refused. A webhook server
/// that runs in this process or beside it is entered here under the Service that stands for it.
#[derive(Debug, Default)]
pub struct Routes {
    known: Mutex<BTreeMap<ServicePort, Route>>,
}

#[derive(Clone)]
enum Route {
    Address(SocketAddr),
    InProcess(Arc<dyn Fn() -> DuplexStream + Send + Sync>),
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(address) => address.fmt(f),
            Self::InProcess(_) => f.write_str("in process"),
        }
    }
}

impl Routes {
    /// Leads a port of a Service to an address.
    pub fn add(&self, service: ServicePort, address: SocketAddr) {
        self.insert(service, Route::Address(address));
    }

    /// Leads a port of a Service to a server in this process, without a socket: tokio's paused clock does not run ahead
    /// of an answer.
    pub fn add_in_process(
        &self,
        service: ServicePort,
        connect: impl Fn() -> DuplexStream + Send + Sync + 'static,
    ) {
        self.insert(service, Route::InProcess(Arc::new(connect)));
    }

    fn insert(&self, service: ServicePort, route: Route) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).insert(service, route);
    }

    fn known(&self, service: &ServicePort) -> Option<Route> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(service).cloned()
    }

    /// Forgets where a port of a Service leads.
    pub fn remove(&self, service: &ServicePort) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(service);
    }
}

impl Resolver for Routes {
    fn resolve(&self, store: &Store, service: &ServicePort) -> Result<SocketAddr, String> {
        match self.known(service) {
            Some(Route::Address(address)) => Ok(address),
            _ => {
                let address = EndpointSlices.resolve(store, service)?;
                outgoing::check(store, None, address.ip())
                    .map_err(|why| format!("service \"{}\": {why}", service.name))?;
                Ok(address)
            }
        }
    }

    fn connect(&self, service: &ServicePort) -> Option<DuplexStream> {
        match self.known(service)? {
            Route::InProcess(connect) => Some(connect()),
            Route::Address(_) => None,
        }
    }
}

impl Resolver for EndpointSlices {
    fn resolve(&self, store: &Store, service: &ServicePort) -> Result<SocketAddr, String> {
        let ServicePort { namespace, name, port } = service;
        let object = store
            .get(&table("", "services"), &Key::new(namespace, name))
            .and_then(|object| serde_json::from_slice::<Value>(&object.bytes).ok())
            .ok_or_else(|| format!("service \"{name}\" not found"))?;
        let ports = object.pointer("/spec/ports").and_then(Value::as_array);
        let wanted = ports
            .into_iter()
            .flatten()
            .find(|one| one["port"].as_u64() == Some(u64::from(*port)))
            .ok_or_else(|| format!("no service port {port} found for service \"{name}\""))?;
        let port_name = wanted["name"].as_str().unwrap_or_default();
        slices(store, service, port_name)
            .or_else(|| endpoints(store, service, port_name))
            .ok_or_else(|| format!("no endpoints available for service \"{name}\""))
    }
}

fn table(group: &str, plural: &str) -> TableName {
    TableName { group: group.into(), plural: plural.into() }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field].as_str().unwrap_or_default()
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn port_of(ports: &Value, name: &str) -> Option<u16> {
    let port = items(ports).find(|port| text(port, "name") == name)?;
    port["port"].as_u64().and_then(|port| u16::try_from(port).ok())
}

fn address(text: &str, port: u16) -> Option<SocketAddr> {
    text.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, port))
}

fn slices(store: &Store, service: &ServicePort, port_name: &str) -> Option<SocketAddr> {
    let snapshot = store.snapshot(&table("discovery.k8s.io", "endpointslices"), Some(&service.namespace));
    let of_service = snapshot.objects.iter().filter(|object| {
        object
            .labels
            .iter()
            .any(|(key, value)| &**key == "kubernetes.io/service-name" && **value == *service.name)
    });
    of_service.filter_map(|object| serde_json::from_slice::<Value>(&object.bytes).ok()).find_map(|slice| {
        let port = port_of(&slice["ports"], port_name)?;
        let ready = |endpoint: &&Value| endpoint.pointer("/conditions/ready") != Some(&Value::Bool(false));
        items(&slice["endpoints"])
            .filter(ready)
            .flat_map(|endpoint| items(&endpoint["addresses"]))
            .find_map(|ip| address(ip.as_str()?, port))
    })
}

fn endpoints(store: &Store, service: &ServicePort, port_name: &str) -> Option<SocketAddr> {
    let key = Key::new(&service.namespace, &service.name);
    let object = store.get(&table("", "endpoints"), &key)?;
    let object: Value = serde_json::from_slice(&object.bytes).ok()?;
    items(&object["subsets"]).find_map(|subset| {
        let port = port_of(&subset["ports"], port_name)?;
        items(&subset["addresses"]).find_map(|one| address(text(one, "ip"), port))
    })
}
