//! Deadlines and repetitions on a paused clock, against a server that does what each test says.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, WatchParams},
};
use serde_json::{Value, json};
use tower::Layer;

use super::*;
use crate::error::{Error, ReconcileError};

type Answer = Result<Response<Body>, BoxError>;

/// A client of a server that answers so, and the number of requests that reached it.
fn server(
    answer: impl Fn(usize, &Request<Body>) -> BoxFuture<'static, Answer> + Send + Sync + 'static,
) -> (Client, Arc<AtomicUsize>, Metrics) {
    let (seen, metrics) = (Arc::new(AtomicUsize::new(0)), Metrics::default());
    let count = seen.clone();
    let service = service_fn(move |request| answer(count.fetch_add(1, Ordering::SeqCst), &request));
    let service = metrics.client_layer().layer(service);
    (
        Timeouts::default().around(Client::new(service, "default"), metrics.clone(), Warnings::default()),
        seen,
        metrics,
    )
}

fn silent() -> (Client, Arc<AtomicUsize>, Metrics) {
    server(|_, _| Box::pin(std::future::pending()))
}

/// Turns the first requests away, then answers.
fn busy(times: usize, status: u16, retry_after: Option<&'static str>) -> (Client, Arc<AtomicUsize>, Metrics) {
    server(move |number, _| {
        let mut answer = Response::builder().status(if number < times { status } else { 200 });
        if let Some(seconds) = retry_after.filter(|_| number < times) {
            answer = answer.header(RETRY_AFTER, seconds);
        }
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
        let body = if number < times { "busy".to_owned() } else { body };
        let answer = answer.body(Body::from(body.into_bytes())).map_err(Into::into);
        Box::pin(async move { answer })
    })
}

fn maps(client: &Client) -> Api<ConfigMap> {
    Api::default_namespaced(client.clone())
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_answer_fails_in_time_and_says_so() {
    let (client, _, _) = silent();
    let started = Instant::now();
    let error = maps(&client).get("a").await.unwrap_err();
    assert_eq!(started.elapsed().as_secs(), 30);
    assert!(NoAnswer::is_cause_of(&error), "{error:?}");
    let error = Error::from(error);
    assert!(error.is_timeout() && error.retryable());
    assert_eq!(error.category(), "Timeout");
    let text = crate::error::chain(&error);
    assert!(text.contains("the API server has not answered in 30s"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn every_verb_has_a_deadline_and_a_list_a_later_one() {
    let (client, _, _) = silent();
    let maps = maps(&client);
    let (post, delete) = (PostParams::default(), DeleteParams::default());
    let patch = PatchParams::default();
    let requests: Vec<(u64, BoxFuture<'_, bool>)> = vec![
        (30, Box::pin(async { maps.create(&post, &ConfigMap::default()).await.is_err() })),
        (30, Box::pin(async { maps.replace("a", &post, &ConfigMap::default()).await.is_err() })),
        (30, Box::pin(async { maps.patch("a", &patch, &Patch::Merge(json!({}))).await.is_err() })),
        (30, Box::pin(async { maps.delete("a", &delete).await.is_err() })),
        (30, Box::pin(async { client.apiserver_version().await.is_err() })),
        (30, Box::pin(async { client.list_api_groups().await.is_err() })),
        (30, Box::pin(async { maps.watch(&WatchParams::default(), "0").await.is_err() })),
        (120, Box::pin(async { maps.list(&ListParams::default()).await.is_err() })),
        (120, Box::pin(async { maps.delete_collection(&delete, &ListParams::default()).await.is_err() })),
    ];
    for (seconds, request) in requests {
        let started = Instant::now();
        assert!(request.await);
        assert_eq!(started.elapsed().as_secs(), seconds);
    }
}

/// A body that begins and never ends.
struct Half(Option<&'static str>);

impl http_body::Body for Half {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.take().map_or(Poll::Pending, |text| Poll::Ready(Some(Ok(Frame::data(text.into())))))
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_stops_half_way_fails_too_and_a_watch_lasts_as_long_as_it_asked() {
    let service =
        service_fn(|_: Request<Body>| async { Ok::<_, BoxError>(Response::new(Half(Some("{\"kind\":")))) });
    let client =
        Timeouts::default().around(Client::new(service, "default"), Metrics::default(), Warnings::default());
    let started = Instant::now();
    let error = maps(&client).get("a").await.unwrap_err();
    assert!(NoAnswer::is_cause_of(&error), "{error:?}");
    assert_eq!(started.elapsed().as_secs(), 30);
    let request = |path: &str| Request::get(path).body(Vec::new()).unwrap();
    let started = Instant::now();
    let body =
        client.send(request("/api/v1/pods?watch=true&timeoutSeconds=290").map(Body::from)).await.unwrap();
    assert!(body.into_body().collect_bytes().await.is_err());
    assert_eq!(started.elapsed().as_secs(), 350);
    let log =
        client.send(request("/api/v1/namespaces/a/pods/p/log?follow=true").map(Body::from)).await.unwrap();
    let day = Duration::from_hours(24);
    assert!(tokio::time::timeout(day, log.into_body().collect_bytes()).await.is_err(), "a log may last");
}

#[tokio::test(start_paused = true)]
async fn a_read_that_was_turned_away_is_made_again_and_every_try_is_counted() {
    let (client, seen, metrics) = busy(3, 429, None);
    maps(&client).get("a").await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 4);
    let page = metrics.encode().unwrap();
    let line = r#"rest_client_request_retries_total{code="429",verb="GET",host=""} 3"#;
    assert!(page.contains(line), "{page}");
    for line in [r#"{code="429",method="GET",host=""} 3"#, r#"{code="200",method="GET",host=""} 1"#] {
        assert!(page.contains(&format!("rest_client_requests_total{line}")), "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stays_busy_holds_nobody_for_long() {
    for (retry_after, most) in [(None, 20), (Some("1"), 12), (Some("3600"), 1), (Some("nonsense"), 20)] {
        let (client, seen, _) = busy(usize::MAX, 503, retry_after);
        let started = Instant::now();
        let error = maps(&client).get("a").await.unwrap_err();
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 503), "{error}");
        assert!(started.elapsed() <= Duration::from_secs(10), "{:?}", started.elapsed());
        let seen = seen.load(Ordering::SeqCst);
        assert!((1..=most).contains(&seen), "{retry_after:?}: {seen}");
        assert_eq!(seen == 1, retry_after == Some("3600"), "{retry_after:?}: {seen}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_server_asks_for_is_waited_for() {
    let (client, _, _) = busy(1, 429, Some("7"));
    let started = Instant::now();
    maps(&client).get("a").await.unwrap();
    assert_eq!(started.elapsed().as_secs(), 7);
}

/// Makes a request to a server that turns the first try away. Returns whether there was a second.
async fn repeated<F: Future<Output = ()>>(request: impl FnOnce(Api<ConfigMap>) -> F) -> bool {
    let (client, seen, _) = busy(1, 503, None);
    request(maps(&client)).await;
    seen.load(Ordering::SeqCst) == 2
}

#[tokio::test(start_paused = true)]
async fn only_what_may_happen_twice_is_made_again() {
    let map = |body: Value| -> ConfigMap { serde_json::from_value(body).unwrap() };
    let (named, versioned) =
        (json!({"metadata": {"name": "a"}}), json!({"metadata": {"name": "a", "resourceVersion": "5"}}));
    let generated = json!({"metadata": {"generateName": "a-"}});
    for body in [&named, &generated] {
        let body = map(body.clone());
        assert!(
            !repeated(|maps| async move { drop(maps.create(&PostParams::default(), &body).await) }).await
        );
    }
    for (body, safe) in [(&named, false), (&versioned, true)] {
        let body = map(body.clone());
        let put =
            repeated(|maps| async move { drop(maps.replace("a", &PostParams::default(), &body).await) })
                .await;
        assert_eq!(put, safe);
    }
    let step = |path: &str| json!([{"op": "test", "path": path, "value": "5"}, {"op": "add", "path": "/data/a", "value": "b"}]);
    let merge = |body: &Value| Patch::Merge(body.clone());
    let json_patch = |body: Value| Patch::<Value>::Json(serde_json::from_value(body).unwrap());
    let patches = [
        (Patch::Apply(named.clone()), true),
        (merge(&named), false),
        (merge(&versioned), true),
        (Patch::Strategic(versioned.clone()), true),
        (json_patch(step("/metadata/resourceVersion")), true),
        (json_patch(step("/data/a")), false),
    ];
    for (patch, safe) in patches {
        let params = PatchParams { field_manager: Some("m".into()), ..PatchParams::default() };
        let made = repeated(|maps| async move { drop(maps.patch("a", &params, &patch).await) }).await;
        assert_eq!(made, safe);
    }
    let preconditions = Preconditions { uid: Some("u".into()), resource_version: None };
    for (params, safe) in
        [(DeleteParams::default(), false), (DeleteParams::default().preconditions(preconditions), true)]
    {
        let made = repeated(|maps| async move { drop(maps.delete("a", &params).await) }).await;
        assert_eq!(made, safe);
    }
}

#[test]
fn a_collection_is_known_by_its_path() {
    for path in
        ["/api/v1/pods", "/api/v1/namespaces/a/pods", "/apis/apps/v1/deployments", "/api/v1/namespaces"]
    {
        assert!(is_collection(path), "{path}");
    }
    for path in [
        "/api/v1/namespaces/a",
        "/api/v1/namespaces/a/pods/p",
        "/apis",
        "/version",
        "/apis/apps/v1",
        "/api/v1/nodes/n",
    ] {
        assert!(!is_collection(path), "{path}");
    }
}

/// A listener that takes connections and never says a word, as behind a firewall that drops packets.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_taken_and_never_answered_is_an_error() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let taken = Arc::new(Mutex::new(Vec::new()));
    let kept = taken.clone();
    let hole = tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            kept.lock().unwrap().push(connection);
        }
    });
    let config = kube::Config::new(format!("http://{address}").parse().unwrap());
    let client = Timeouts::default().around(
        Client::try_from(config).unwrap(),
        Metrics::default(),
        Warnings::default(),
    );
    let error = Api::<Pod>::default_namespaced(client).get("a").await.unwrap_err();
    assert!(NoAnswer::is_cause_of(&error), "{error:?}");
    hole.abort();
}

#[tokio::test(start_paused = true)]
async fn who_is_debugging_waits_for_an_answer_for_hours() {
    let slow = service_fn(|_: Request<Body>| async {
        tokio::time::sleep(Duration::from_hours(3)).await;
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
        Ok::<_, BoxError>(Response::new(Body::from(body.into_bytes())))
    });
    let get = |endless: bool| {
        let patience = Timeouts { endless, ..Timeouts::default() };
        let client = patience.around(Client::new(slow, "default"), Metrics::default(), Warnings::default());
        async move { Api::<ConfigMap>::default_namespaced(client).get("a").await }
    };
    assert!(get(true).await.is_ok());
    assert!(get(false).await.is_err());
}

/// The lines of a log.
#[derive(Clone, Default)]
struct Log(Arc<std::sync::Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(line)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn what_the_server_warns_of_is_logged_once() {
    let (client, seen, _) = server(|_, _| {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
        let answer = Response::builder().header("warning", r#"299 - "unknown field \"spec.a\"""#);
        let answer = answer.body(Body::from(body.into_bytes())).map_err(Into::into);
        Box::pin(async move { answer })
    });
    let log = Log::default();
    let lines = log.clone();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || lines.clone()).finish();
    let guard = tracing::subscriber::set_default(subscriber);
    maps(&client).get("a").await.unwrap();
    maps(&client).get("a").await.unwrap();
    drop(guard);
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    let log = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert_eq!(log.matches(r#"unknown field "spec.a""#).count(), 1, "{log}");
    assert!(log.contains("WARN"), "{log}");
}
