//! The socket: clients that say nothing, or not enough, take nothing from the others.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api, Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use tokio::{io::AsyncWriteExt, net::TcpStream};
use windlass_apiserver::{
    ApiServer,
    authority::Authority,
    environment::{Environment, TokioClock},
    listener::{Listener, kubeconfig},
    registry::Registry,
    store::Store,
};

#[tokio::test]
async fn clients_that_never_finish_do_not_keep_others_waiting() {
    #[expect(clippy::disallowed_methods, reason = "certificates are checked against the machine's clock")]
    let now = Timestamp::now();
    let environment = Environment::new(TokioClock::starting_at(now), 7);
    let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
    let authority = Authority::new(now).unwrap();
    let listener = Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0)), &authority).await.unwrap();
    let (address, url) = (listener.address(), listener.url());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = tokio::spawn(listener.serve(ApiServer::new(Arc::new(registry)), async {
        let _ = stopped.await;
    }));

    let mut silent = Vec::new();
    for count in 0..200 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        // Nothing at all, the first bytes of a handshake, or no TLS.
        let said: &[u8] = [&b""[..], b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n"][count % 3];
        stream.write_all(said).await.unwrap();
        silent.push(stream);
    }
    let admin = authority.client("admin", &["system:masters"]).unwrap();
    let text = kubeconfig(&url, &authority, "admin", &admin);
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let namespaces = Api::<Namespace>::all(client);
    let answer = tokio::time::timeout(Duration::from_secs(9), namespaces.get("default")).await;
    answer.expect("the others' silence must not be waited for").unwrap();
    stop.send(()).unwrap();
    serving.await.unwrap();
    drop(silent);
}
