//! Connections over TLS: who says nothing goes, who has too many is refused, and an administrator gets through.

use std::time::Duration;

use http::Method;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use windlass_apiserver::{
    authority::Authority, data_directory::DataDirectory, http::Limits as Requests, listener::Limits,
};

use crate::bed::{AT_LAST, Bed, closed, nothing, now, read, request};

const DEFAULT: &str = "/api/v1/namespaces/default";

/// Patience that a test can wait for.
fn short() -> Limits {
    let moment = Duration::from_millis(300);
    Limits { patience: moment, stranger_idle: moment, ..Limits::default() }
}

#[tokio::test]
async fn a_silent_connection_is_closed_before_the_handshake_after_it_and_within_a_head() {
    let bed = Bed::new(short(), Requests::default()).await;
    closed(TcpStream::connect(bed.address).await.unwrap(), "one that never shook hands").await;
    let mut half = TcpStream::connect(bed.address).await.unwrap();
    half.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
    closed(half, "half a handshake").await;
    for protocol in [&b"http/1.1"[..], b"h2"] {
        closed(bed.connect(None, protocol).await.unwrap(), "a stranger that says nothing").await;
    }
    let admin = bed.certificate("admin", &["system:masters"]);
    let mut slow = bed.connect(Some(&admin), b"http/1.1").await.unwrap();
    slow.write_all(b"GET /version HTTP/1.1\r\nHost: localhost\r\n").await.unwrap();
    closed(slow, "half a head").await;
    let mut drip = bed.connect(Some(&admin), b"http/1.1").await.unwrap();
    drip.write_all(b"GET /version HTTP/1.1\r\n").await.unwrap();
    let (read, mut write) = tokio::io::split(drip);
    let dripping = tokio::spawn(async move {
        while write.write_all(b"X-A: b\r\n").await.is_ok() && write.flush().await.is_ok() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    closed(read, "a head that drips").await;
    dripping.abort();
    bed.stop().await;
}

#[tokio::test]
async fn a_connection_that_was_idle_for_long_still_answers() {
    let bed = Bed::new(short(), Requests::default()).await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let (mut one, mut two) = (bed.http1(Some(&admin)).await, bed.http2(Some(&admin)).await);
    for _ in 0..3 {
        let answer = one.send_request(request(Method::GET, DEFAULT, nothing())).await.unwrap();
        assert_eq!(read(answer).await.0, 200);
        let answer = two.send_request(request(Method::GET, DEFAULT, nothing())).await.unwrap();
        assert_eq!(read(answer).await.0, 200);
        // Longer than a head may take, and than a stranger may wait.
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    bed.stop().await;
}

#[tokio::test]
async fn an_idle_connection_ends_at_last_and_a_watch_does_not() {
    let idle = Duration::from_millis(500);
    let bed = Bed::new(Limits { idle, ..short() }, Requests::default()).await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let path = "/api/v1/namespaces?watch=true&allowWatchBookmarks=true";
    let mut watch = bed.http1(Some(&admin)).await;
    let mut events = watch.send_request(request(Method::GET, path, nothing())).await.unwrap().into_body();
    http_body_util::BodyExt::frame(&mut events).await.unwrap().unwrap();
    closed(bed.connect(Some(&admin), b"http/1.1").await.unwrap(), "an idle connection").await;
    assert!(!watch.is_closed(), "a watch is not idle, however little happens");
    bed.stop().await;
}

#[tokio::test]
async fn an_administrator_gets_through_a_crowd_of_strangers() {
    let limits = Limits { strangers: 40, strangers_per_address: 30, ..Limits::default() };
    let bed = Bed::new(limits, Requests::default()).await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let mut crowd = Vec::new();
    // Some say nothing, others begin and never end.
    for said in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        for _ in 0..300 {
            let mut stream = TcpStream::connect(bed.address).await.unwrap();
            let _ = stream.write_all(said).await;
            crowd.push(stream);
        }
        let mut client = bed.http2(Some(&admin)).await;
        let answered = client.send_request(request(Method::GET, DEFAULT, nothing()));
        let answer = tokio::time::timeout(AT_LAST, answered).await.expect("an answer must come").unwrap();
        assert_eq!(read(answer).await.0, 200);
    }
    // The first of the crowd went long before it had to.
    closed(crowd.swap_remove(0), "the oldest stranger").await;
    bed.stop().await;
}

#[tokio::test]
async fn an_administrator_gets_through_when_users_have_all_connections() {
    let limits = Limits { connections: 6, connections_per_user: 4, ..Limits::default() };
    let bed = Bed::new(limits, Requests::default()).await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let mut first = bed.http1(Some(&admin)).await;
    let role = serde_json::json!({"metadata": {"name": "reader"}, "rules": [
        {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["watch", "get", "list"]}]});
    let binding = serde_json::json!({"metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"},
        "subjects": [{"kind": "Group", "name": "readers", "apiGroup": "rbac.authorization.k8s.io"}]});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let path = format!("/apis/rbac.authorization.k8s.io/v1/{plural}");
        let sent = request(Method::POST, &path, crate::bed::whole(object.to_string()));
        assert_eq!(read(first.send_request(sent).await.unwrap()).await.0, 201);
    }
    drop(first);
    let mut watches = Vec::new();
    for user in ["eve", "eve", "eve", "eve", "mary", "mary"] {
        let who = bed.certificate(user, &["readers"]);
        let mut client = bed.http1(Some(&who)).await;
        let watch = request(Method::GET, "/api/v1/namespaces?watch=true", nothing());
        let response = client.send_request(watch).await.unwrap();
        assert_eq!(response.status(), 200, "{user}");
        watches.push((client, response));
    }
    // All of them are busy: the next of a user is closed, whoever it is.
    for user in ["eve", "jane"] {
        let who = bed.certificate(user, &["readers"]);
        match bed.connect(Some(&who), b"http/1.1").await {
            Ok(stream) => closed(stream, "a connection beyond the limit").await,
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    let mut client = bed.http1(Some(&admin)).await;
    let answer = client.send_request(request(Method::GET, DEFAULT, nothing())).await.unwrap();
    assert_eq!(read(answer).await.0, 200);
    bed.stop().await;
}

#[tokio::test]
async fn an_expired_certificate_is_nobodys() {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    let authority = Authority::kept(&directory, now()).unwrap();
    let long_ago = now().saturating_sub(jiff::SignedDuration::from_hours(24 * 800)).unwrap();
    let expired = Authority::kept(&directory, long_ago).unwrap();
    let expired = expired.client("admin", &["system:masters"]).unwrap();
    let valid = authority.client("admin", &["system:masters"]).unwrap();
    let bed = Bed::of(authority, Limits::default(), Requests::default()).await;
    for (who, served) in [(&valid, true), (&expired, false)] {
        let answered = async {
            let stream = bed.connect(Some(who), b"http/1.1").await.ok()?;
            let (mut sender, connection) =
                hyper::client::conn::http1::handshake(hyper_util::rt::TokioIo::new(stream)).await.ok()?;
            tokio::spawn(connection);
            sender.send_request(request(Method::GET, DEFAULT, nothing())).await.ok()
        };
        assert_eq!(answered.await.is_some(), served);
    }
    bed.stop().await;
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let bed =
        Bed::new(Limits { unread: Duration::from_millis(300), ..Limits::default() }, Requests::default())
            .await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let mut client = bed.http1(Some(&admin)).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    for number in 0..24 {
        let object = serde_json::json!({"metadata": {"name": format!("large-{number}")},
            "data": {"text": "x".repeat(900 * 1024)}});
        let sent = request(Method::POST, maps, crate::bed::whole(object.to_string()));
        assert_eq!(read(client.send_request(sent).await.unwrap()).await.0, 201);
    }
    let mut stream = bed.connect(Some(&admin), b"http/1.1").await.unwrap();
    let head = format!("GET {maps} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    // What the system has taken in the meantime is still there; the rest never comes.
    let (mut received, mut buffer) = (0, vec![0; 64 * 1024]);
    let reading = async {
        while let Ok(read @ 1..) = stream.read(&mut buffer).await {
            received += read;
        }
    };
    tokio::time::timeout(AT_LAST, reading).await.expect("the connection must end");
    assert!(received < 20 * 1024 * 1024, "{received} bytes came");
    let answer = client.send_request(request(Method::GET, maps, nothing())).await.unwrap();
    assert_eq!(read(answer).await.1["items"].as_array().unwrap().len(), 24, "who reads gets all of it");
    bed.stop().await;
}
