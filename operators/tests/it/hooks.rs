//! The webhooks of the operators under test on a real cluster: they run beside the operators, since these may not tell
//! the API server where its webhooks are. There is one server for all cases, since the cluster has each CRD once.

use std::{net::UdpSocket, sync::OnceLock};

use kube::{Client, Config};
use tokio_util::sync::CancellationToken;
use windlass::{RunError, webhook::Server};
use windlass_operators::{catalogue, webhooks};

pub(crate) async fn serve(client: Client, server: Server, stop: CancellationToken) -> Result<(), RunError> {
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
