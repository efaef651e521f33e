//! `exec` and `attach` over a real socket: TLS, an upgrade, a WebSocket, a container that is simulated.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};
use windlass::{
    k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret},
    kube::{
        Api, Client, Config,
        api::DeleteParams,
        client::ConfigExt,
        config::{KubeConfigOptions, Kubeconfig},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, wait};

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";

/// A cluster with a socket and a Pod that runs.
struct Place {
    cluster: Cluster,
    address: SocketAddr,
    tls: TlsConnector,
}

/// What a session said, and how it ended.
#[derive(Debug, Default, PartialEq)]
struct Output {
    out: String,
    errors: String,
    status: Value,
}

/// A client inside of a container.
struct Inside(WebSocketStream<TlsStream<TcpStream>>);

impl Place {
    async fn new() -> Self {
        let mut cluster = Cluster::start().await.unwrap();
        let listening = cluster.listen(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
        let kubeconfig = Kubeconfig::from_yaml(&listening.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        // HTTP/1.1 alone, as every client of a WebSocket asks for it.
        let mut tls = config.rustls_client_config().unwrap();
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        let place = Self { cluster, address: listening.address, tls: TlsConnector::from(Arc::new(tls)) };
        place.furnish().await;
        place
    }

    fn client(&self) -> Client {
        self.cluster.client()
    }

    async fn furnish(&self) {
        let client = self.client();
        let data = json!({"metadata": {"name": "conf"}, "data": {"a.txt": "hello\n"}});
        create(&client, &decode::<ConfigMap>(data)).await;
        let data = json!({"metadata": {"name": "sec"}, "stringData": {"password": "s3cret"}});
        create(&client, &decode::<Secret>(data)).await;
        let pod = json!({"metadata": {"name": "one"}, "spec": {
            "containers": [{"name": "app", "image": "busybox:1.37", "command": ["sleep", "infinity"],
                "env": [{"name": "PW", "valueFrom": {"secretKeyRef": {"name": "sec", "key": "password"}}}],
                "volumeMounts": [{"name": "conf", "mountPath": "/etc/conf"}]}],
            "volumes": [{"name": "conf", "configMap": {"name": "conf"}}]}});
        create(&client, &decode::<Pod>(pod)).await;
        let runs = |pod: Option<&Pod>| {
            let status = pod.and_then(|pod| pod.status.as_ref());
            status.is_some_and(|status| status.phase.as_deref() == Some("Running"))
        };
        wait(api::<Pod>(&client), "one", "running", runs).await;
    }

    /// Asks for an upgrade; the answer's head and what follows it.
    async fn ask(&self, path: &str, headers: &str) -> (TlsStream<TcpStream>, String, Vec<u8>) {
        let stream = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut stream = self.tls.connect(name, stream).await.unwrap();
        let path = format!("/api/v1/namespaces/default/pods/{path}");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut read = Vec::new();
        loop {
            if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
                let rest = read.split_off(end + 4);
                return (stream, String::from_utf8(read).unwrap(), rest);
            }
            let mut buffer = [0; 4096];
            let count = stream.read(&mut buffer).await.unwrap();
            assert!(count > 0, "the server must answer: {:?}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&buffer[..count]);
        }
    }

    async fn enter(&self, path: &str, protocol: &str) -> Inside {
        let headers = format!(
            "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: {protocol}\r\n"
        );
        let (stream, head, rest) = self.ask(path, &headers).await;
        assert!(head.starts_with("HTTP/1.1 101 "), "{head}{}", String::from_utf8_lossy(&rest));
        let head = head.to_lowercase();
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        assert!(head.contains(&format!("sec-websocket-protocol: {protocol}\r\n")), "{head}");
        Inside(WebSocketStream::from_partially_read(stream, rest, Role::Client, None).await)
    }

    /// Runs a command to its end.
    async fn exec(&self, words: &[&str]) -> Output {
        let command: Vec<String> = words.iter().map(|word| format!("command={}", encoded(word))).collect();
        let path = format!("one/exec?{}&stdout=1&stderr=1", command.join("&"));
        self.enter(&path, V5).await.output().await
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat()
}

impl Inside {
    async fn send(&mut self, bytes: &[u8]) {
        self.0.send(Message::Binary(bytes.to_vec().into())).await.unwrap();
    }

    /// The next message, as its channel and its text.
    async fn next(&mut self) -> Option<(u8, String)> {
        let next = tokio::time::timeout(Duration::from_secs(30), self.0.next()).await;
        match next.expect("the session must go on")?.unwrap() {
            Message::Binary(data) => Some((data[0], String::from_utf8(data[1..].to_vec()).unwrap())),
            Message::Close(frame) => {
                assert_eq!(u16::from(frame.unwrap().code), 1000);
                None
            }
            other => panic!("{other:?}"),
        }
    }

    /// Everything that is said until the end.
    async fn output(&mut self) -> Output {
        let mut output = Output::default();
        while let Some((channel, text)) = self.next().await {
            match channel {
                1 => output.out.push_str(&text),
                2 => output.errors.push_str(&text),
                3 => output.status = serde_json::from_str(&text).unwrap(),
                other => panic!("channel {other}"),
            }
        }
        output
    }
}

fn success() -> Value {
    json!({"metadata": {}, "status": "Success"})
}

fn code(output: &Output) -> &str {
    assert_eq!(output.status["reason"], "NonZeroExitCode", "{output:?}");
    output.status["details"]["causes"][0]["message"].as_str().unwrap()
}

#[tokio::test]
async fn a_command_says_what_the_objects_decide_and_ends_with_its_code() {
    let place = Place::new().await;
    let echo = place.exec(&["echo", "hi", "there"]).await;
    assert_eq!(echo, Output { out: "hi there\n".into(), errors: String::new(), status: success() });
    assert_eq!(place.exec(&["cat", "/etc/conf/a.txt"]).await.out, "hello\n");
    assert_eq!(place.exec(&["printenv", "PW"]).await.out, "s3cret\n");
    assert_eq!(place.exec(&["hostname"]).await.out, "one\n");
    let failed = place.exec(&["sh", "-c", "echo oops >&2; exit 3"]).await;
    assert_eq!((&*failed.errors, code(&failed)), ("oops\n", "3"));
    let unknown = place.exec(&["nginx", "-v"]).await;
    assert!(
        unknown.errors.starts_with("windlass: not run: nginx -v: this container is simulated"),
        "{unknown:?}"
    );
    assert_eq!(code(&unknown), "127");
    // What the service account sees of the API is mounted as everywhere else.
    let account = "/var/run/secrets/kubernetes.io/serviceaccount";
    assert_eq!(place.exec(&["ls", account]).await.out, "ca.crt\nnamespace\ntoken\n");
    let token = place.exec(&["cat", &format!("{account}/token")]).await.out;
    assert_eq!(token.split('.').count(), 3, "{token}");
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn typing_ends_with_a_message_of_its_own_or_with_the_connection() {
    let place = Place::new().await;
    let mut cat = place.enter("one/exec?command=cat&stdin=1&stdout=1", V5).await;
    assert_eq!(cat.next().await, Some((1, String::new())), "the first message says that it began");
    cat.send(b"\0hi").await;
    assert_eq!(cat.next().await, Some((1, "hi".into())));
    // More than the server keeps for a program that does not read is not lost.
    for index in 0..100 {
        cat.send(format!("\0{index}\n").as_bytes()).await;
    }
    cat.send(&[255, 0]).await;
    let output = cat.output().await;
    assert_eq!(output.out, (0..100).map(|index| format!("{index}\n")).collect::<Vec<_>>().concat());
    assert_eq!(output.status, success());

    let mut old = place.enter("one/exec?command=cat&stdin=1&stdout=1", V4).await;
    assert_eq!(old.next().await, Some((1, String::new())));
    old.send(&[255, 0]).await;
    old.send(b"\0still").await;
    assert_eq!(old.next().await, Some((1, "still".into())), "version 4 cannot end a channel");
    old.0.close(None).await.unwrap();
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_terminal_shows_keys_and_obeys_them() {
    let place = Place::new().await;
    let mut shell = place.enter("one/exec?command=sh&stdin=1&stdout=1&tty=1", V5).await;
    shell.send(b"\x04{\"Width\":80,\"Height\":24}").await;
    shell.send(b"\0echo $PW\r").await;
    shell.send(b"\0sleep infinity\r").await;
    shell.send(b"\0\x03").await;
    shell.send(b"\0exit\r").await;
    let output = shell.output().await;
    let (_, screen) = output.out.split_once("with these\r\n").unwrap();
    assert!(screen.contains("s3cret\r\n"), "{screen:?}");
    assert!(screen.contains("^C\r\n"), "{screen:?}");
    assert_eq!(code(&output), "130", "what was interrupted decides how the shell ends");
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn attaching_waits_for_the_end_of_the_container() {
    let place = Place::new().await;
    let mut attached = place.enter("one/attach?stdout=1&stderr=1", V5).await;
    let mut running = place.enter("one/exec?command=sleep&command=infinity&stdout=1", V5).await;
    assert_eq!(attached.next().await, Some((1, String::new())));
    let (channel, note) = attached.next().await.unwrap();
    assert!(channel == 2 && note.contains("simulated and prints nothing"), "{note}");
    assert_eq!(running.next().await, Some((1, String::new())));
    let pods: Api<Pod> = api(&place.client());
    pods.delete("one", &DeleteParams::default().grace_period(0)).await.unwrap();
    assert_eq!(attached.output().await.status, success());
    assert_eq!(code(&running.output().await), "137");
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_entered_says_why() {
    let place = Place::new().await;
    let waiting = json!({"metadata": {"name": "waiting", "annotations": {"windlass.dev/simulate": "image-pull-error"}},
        "spec": {"containers": [{"name": "app", "image": "x"}]}});
    create(&place.client(), &decode::<Pod>(waiting)).await;
    let assigned = |pod: Option<&Pod>| pod.is_some_and(|pod| pod.spec.as_ref().unwrap().node_name.is_some());
    wait(api::<Pod>(&place.client()), "waiting", "on a node", assigned).await;
    let websocket = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                     Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    let v5 = &format!("{websocket}Sec-WebSocket-Protocol: {V5}\r\n");
    let spdy = "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n";
    for (path, headers, status, why) in [
        ("missing/exec?command=a&stdout=1", &**v5, 404, "pods \\\"missing\\\" not found"),
        ("one/exec?command=a&stdout=1&container=x", v5, 400, "container x is not valid for pod one"),
        ("waiting/exec?command=a&stdout=1", v5, 500, "container not found (\"app\")"),
        ("waiting/attach?stdout=1", v5, 500, "container app not found in pod waiting_default"),
        ("one/exec?command=a", v5, 400, "you must specify at least 1 of stdin, stdout, stderr"),
        ("one/exec?command=a&stdout=1", "", 400, "Upgrade request required"),
        ("one/exec?command=a&stdout=1", spdy, 400, "does not speak SPDY/3.1"),
        ("one/exec?command=a&stdout=1", websocket, 403, "send one of v5.channel.k8s.io, v4.channel.k8s.io"),
    ] {
        let (mut stream, head, mut body) = place.ask(path, &format!("{headers}Connection: close\r\n")).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {head}");
        // The server ends the connection, with or without a word of TLS.
        let _ = stream.read_to_end(&mut body).await;
        let body = String::from_utf8(body).unwrap();
        assert!(body.contains(why), "{path}: {body}");
    }
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_client_without_a_socket_is_told_to_use_one() {
    let place = Place::new().await;
    let request = http::Request::get("/api/v1/namespaces/default/pods/one/exec?command=true&stdout=1")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", V5)
        .body(Vec::new())
        .unwrap();
    let error = place.client().request_text(request).await.unwrap_err();
    assert!(error.to_string().contains("send it over a socket, with HTTP/1.1"), "{error}");
    place.cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn a_session_ends_with_its_server() {
    let place = Place::new().await;
    let mut attached = place.enter("one/attach?stdin=1&stdout=1", V5).await;
    assert_eq!(attached.next().await, Some((1, String::new())));
    // What is typed to a container that does not read keeps nobody waiting.
    for _ in 0..100 {
        attached.send(b"\0typed").await;
    }
    place.cluster.shutdown().await.unwrap();
    let last = tokio::time::timeout(Duration::from_secs(30), attached.0.next()).await;
    assert!(!matches!(last.expect("the connection must be cut"), Some(Ok(Message::Binary(_)))));
}
