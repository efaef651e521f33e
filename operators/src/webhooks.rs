//! Webhooks of operators that run outside the cluster: where they listen, and how to know that the API server asks
//! them.
//!
//! In a cluster the manifests say all of this. Outside, a kind of two versions is of use only once its CRD points at
//! this process: until then what is written in the older version would lose fields.

use std::{
    io,
    net::{IpAddr, SocketAddr, TcpListener},
    time::Duration,
};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    runtime::wait::{Condition, await_condition, conditions::is_crd_established},
};
use windlass::webhook::{Certificates, Reach, Server};

use crate::install::Error;

/// How long the CRDs may take to point at this process.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The Secret with the certificates of a process outside the cluster.
const SECRET: &str = "windlass-local-webhook-certificates";

/// A server for webhooks at an address that the API server can reach, on a free port.
pub fn server(address: IpAddr, namespace: &str) -> io::Result<Server> {
    let free = TcpListener::bind((address, 0))?.local_addr()?;
    Ok(server_at(free, format!("https://{free}"), namespace))
}

/// A server for webhooks that the API server reaches by a URL. Its certificates are kept in the namespace.
pub fn server_at(address: SocketAddr, url: String, namespace: &str) -> Server {
    Server {
        address,
        reach: Reach::Url(url),
        http2: true,
        certificates: Certificates::Issued { namespace: namespace.into(), secret: SECRET.into() },
    }
}

/// Whether a kind has several versions.
fn is_converted(crd: &CustomResourceDefinition) -> bool {
    crd.spec.versions.len() > 1
}

/// The CRDs for a cluster that cannot reach our webhooks: only what is stored is served, since nobody would convert
/// the rest.
pub fn without_conversion(crds: &[CustomResourceDefinition]) -> Vec<CustomResourceDefinition> {
    let mut crds = crds.to_vec();
    for version in crds.iter_mut().flat_map(|crd| &mut crd.spec.versions) {
        version.served = version.storage;
    }
    crds
}

/// Waits until the CRDs that need it are converted by this server.
pub async fn converted(
    client: &Client,
    crds: &[CustomResourceDefinition],
    server: &Server,
) -> Result<(), Error> {
    let Reach::Url(url) = &server.reach else { return Ok(()) };
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    for crd in crds.iter().filter(|crd| is_converted(crd)) {
        let name = crd.name_any();
        let points_here = await_condition(api.clone(), &name, is_crd_established().and(points_at(url)));
        match tokio::time::timeout(TIMEOUT, points_here).await {
            Ok(Ok(_)) => {}
            Ok(Err(source)) => return Err(Error::WatchCrd { name, source: Box::new(source) }),
            Err(_) => return Err(Error::NotConverted { name, limit: TIMEOUT.as_secs() }),
        }
    }
    Ok(())
}

fn points_at(url: &str) -> impl Condition<CustomResourceDefinition> {
    move |crd: Option<&CustomResourceDefinition>| {
        let conversion = crd.and_then(|crd| crd.spec.conversion.as_ref());
        let config = conversion.and_then(|found| found.webhook.as_ref()?.client_config.as_ref());
        config.and_then(|config| config.url.as_ref()).is_some_and(|found| found.starts_with(url))
    }
}
