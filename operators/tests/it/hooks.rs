//! The webhooks of the operators under test: they run beside the operators, since these may not tell the API server
//! where its webhooks are.
//!
//! An embedded cluster has a server of its own. A real one has one for all cases, since it has each CRD once.

use std::{net::UdpSocket, sync::OnceLock};

use kube::{Client, Config};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::{Operator, RunError, webhook::Server};
use windlass_cluster::Cluster;
use windlass_operators::{catalogue, webhooks};

/// The webhooks of one embedded cluster, if the operator's kinds have any.
pub(crate) struct Hooks(Option<Running>);

struct Running {
    server: Server,
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Hooks {
    pub(crate) fn embedded(cluster: &Cluster, operator: &Operator) -> Self {
        if operator.crds().iter().all(|crd| crd.spec.versions.len() == 1) {
            return Self(None);
        }
        let server = webhooks::server("127.0.0.1".parse().unwrap(), "default").unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(serve(cluster.client(), server.clone(), stop.clone()));
        Self(Some(Running { server, stop, task }))
    }

    pub(crate) fn server(&self) -> Option<&Server> {
        self.0.as_ref().map(|running| &running.server)
    }

    pub(crate) async fn stop(self) {
        if let Some(Running { stop, task, .. }) = self.0 {
            stop.cancel();
            task.await.expect("the webhooks must not panic").expect("the webhooks must end cleanly");
        }
    }
}

async fn serve(client: Client, server: Server, stop: CancellationToken) -> Result<(), RunError> {
    let operator = windlass_operators::webhooks("windlass-it", catalogue()).serve_webhooks(server);
    operator.run(client, stop.cancelled_owned()).await
}

/// The server for all cases of this process on the real cluster. Every case has a runtime of its own, and so has this.
pub(crate) fn real(config: &Config) -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let server = webhooks::server(own_address(config), "default").unwrap();
        let (config, serving) = (config.clone(), server.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let client = Client::try_from(config).unwrap();
                serve(client, serving, CancellationToken::new()).await.unwrap();
            });
        });
        server
    })
}

/// The address by which the API server sees us.
fn own_address(config: &Config) -> std::net::IpAddr {
    let host = config.cluster_url.host().unwrap();
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect((host, config.cluster_url.port_u16().unwrap_or(443))).unwrap();
    socket.local_addr().unwrap().ip()
}
