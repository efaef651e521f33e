//! Clients that say nothing, stop in the middle, say everything twice, or ask for what makes no sense.

use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{StreamExt, future::join_all, stream};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::super::{
    Stage,
    client::{APPLY, Api, JSON, MERGE, PATCH, Who},
    objects::{self, CONFIG_MAPS, PODS},
};

/// Many who connect and say nothing: some before the handshake, some after it. The administrator gets through.
pub(super) async fn silent(stage: &mut Stage) -> Result<String> {
    let api = stage.server.api().clone();
    let count = stage.scale(1000, 4096);
    let mut handshakes = Vec::new();
    for _ in 0..count / 8 {
        // A server that refuses more of them does what it should.
        match tokio::time::timeout(Duration::from_secs(5), api.stream(Who::Nobody, "http/1.1")).await {
            Ok(Ok(stream)) => handshakes.push(stream),
            _ => break,
        }
    }
    let mut sockets = Vec::new();
    for _ in 0..count {
        match tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(api.address)).await {
            Ok(Ok(stream)) => sockets.push(stream),
            _ => break,
        }
    }
    for _ in 0..5 {
        let mut admin = api.admin().await?;
        admin.get("/api/v1/namespaces/default").await?.succeed()?;
    }
    Ok(format!(
        "{} handshakes and {} sockets are open, the administrator is served",
        handshakes.len(),
        sockets.len()
    ))
}

/// One request of every verb, as bytes.
fn requests() -> Vec<Vec<u8>> {
    let map = objects::config_map("cut", "x").to_string();
    let with_body = |method: &str, path: &str, media: &str, body: &str| {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {media}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    };
    let bare = |method: &str, path: &str| {
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
    };
    let one = format!("{CONFIG_MAPS}/cut");
    vec![
        bare("GET", &one),
        bare("GET", CONFIG_MAPS),
        bare("GET", &format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1")),
        with_body("POST", CONFIG_MAPS, JSON, &map),
        with_body("PUT", &one, JSON, &map),
        with_body("PATCH", &one, MERGE, r#"{"data":{"a":"b"}}"#),
        with_body("PATCH", &format!("{one}?fieldManager=attack&force=true"), APPLY, &map),
        with_body("DELETE", &one, JSON, "{}"),
        with_body("DELETE", CONFIG_MAPS, JSON, "{}"),
        bare("HEAD", &one),
        with_body("PATCH", &one, PATCH, r#"[{"op":"add","path":"/data/c","value":"d"}]"#),
        with_body("PATCH", &one, "application/strategic-merge-patch+json", r#"{"data":{"e":"f"}}"#),
        with_body("PUT", &format!("{PODS}/none/status"), JSON, &objects::pod("none", 1).to_string()),
        with_body("POST", &format!("{PODS}/none/eviction"), JSON, r#"{"metadata":{"name":"none"}}"#),
        with_body(
            "POST",
            &format!("{PODS}/none/binding"),
            JSON,
            r#"{"metadata":{"name":"none"},"target":{"name":"node"}}"#,
        ),
        with_body(
            "PATCH",
            "/apis/apps/v1/namespaces/default/deployments/none/scale",
            MERGE,
            r#"{"spec":{"replicas":1}}"#,
        ),
        with_body("POST", "/api/v1/namespaces/default/serviceaccounts/default/token", JSON, r#"{"spec":{}}"#),
        with_body("PUT", "/api/v1/namespaces/none/finalize", JSON, r#"{"metadata":{"name":"none"}}"#),
        bare("GET", &format!("{PODS}/none/log?follow=true")),
        format!(
            "POST {PODS}/none/exec?command=sh&container=main&stdin=true HTTP/1.1\r\nHost: localhost\r\n\
             Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
        )
        .into_bytes(),
    ]
}

async fn cut_at(api: Api, request: Vec<u8>, length: usize) -> Result<()> {
    let mut stream = api.stream(Who::Admin, "http/1.1").await?;
    stream.write_all(&request[..length]).await?;
    stream.flush().await?;
    if length == request.len() {
        // The beginning of the answer, and no more of it.
        let _ = tokio::time::timeout(Duration::from_secs(5), stream.read(&mut [0; 16])).await?;
    }
    Ok(())
}

/// Every request, cut after so many bytes, for many such numbers: nothing of it is left.
pub(super) async fn cut(stage: &mut Stage) -> Result<String> {
    let api = stage.server.api().clone();
    let step = stage.scale(37, 5);
    let cuts = requests().into_iter().flat_map(|request| {
        let places: Vec<usize> = (0..request.len()).step_by(step).chain([request.len()]).collect();
        places.into_iter().map(move |place| (request.clone(), place))
    });
    let before = open_files(stage)?;
    let cuts: Vec<_> = cuts.map(|(request, length)| cut_at(api.clone(), request, length)).collect();
    let count = cuts.len();
    let outcomes: Vec<Result<()>> = stream::iter(cuts).buffer_unordered(16).collect().await;
    outcomes.into_iter().collect::<Result<()>>()?;
    at_rest(stage, before).await?;
    Ok(format!("{count} cuts; at rest afterwards"))
}

fn open_files(stage: &Stage) -> Result<usize> {
    Ok(fs_err::read_dir(format!("/proc/{}/fd", stage.server.pid()))?.count())
}

/// Nothing is left of what was asked: no connection, no work.
async fn at_rest(stage: &Stage, files: usize) -> Result<()> {
    let mut left = 0;
    for _ in 0..20 {
        left = open_files(stage)?;
        if left <= files + 4 && stage.server.is_idle().await? {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    ensure!(left <= files + 4, "{left} files are open, {files} were before");
    anyhow::bail!("the server still works half a minute later")
}

/// The same request on two connections at once: one of them is first, and nothing is done twice.
pub(super) async fn doubled(stage: &mut Stage) -> Result<String> {
    let api = stage.server.api().clone();
    let before = open_files(stage)?;
    for turn in 0..stage.scale(10, 50) {
        let name = format!("twin-{turn}");
        let map = objects::config_map(&name, "x");
        let path = format!("{CONFIG_MAPS}/{name}");
        let created = both(&api, "POST", CONFIG_MAPS, JSON, map.to_string()).await?;
        ensure!(created == [201, 409], "two creates got {created:?}");
        let mut there = api.admin().await?.get(&path).await?.succeed()?.value()?;
        there["data"]["value"] = json!("changed");
        let updated = both(&api, "PUT", &path, JSON, there.to_string()).await?;
        ensure!(updated == [200, 409], "two updates got {updated:?}");
        let patch = r#"[{"op":"test","path":"/data/value","value":"changed"},{"op":"replace","path":"/data/value","value":"again"}]"#;
        let patched = both(&api, "PATCH", &path, PATCH, patch.to_owned()).await?;
        ensure!(patched == [200, 422], "two patches that test got {patched:?}");
        let removed = both(&api, "DELETE", &path, JSON, String::new()).await?;
        ensure!(removed == [200, 404], "two deletes got {removed:?}");
    }
    at_rest(stage, before + 8).await?;
    Ok("one of two succeeds, every time".into())
}

async fn both(api: &Api, method: &str, path: &str, media: &str, body: String) -> Result<[u16; 2]> {
    let send = async || {
        let mut client = api.admin().await?;
        anyhow::Ok(client.send(method, path, media, body.clone()).await?.status)
    };
    let answers: Result<Vec<u16>> = join_all([send(), send()]).await.into_iter().collect();
    let mut answers = answers?;
    answers.sort_unstable();
    Ok([answers[0], answers[1]])
}

/// Every verb on paths and with bodies that belong elsewhere: a clear refusal, never a failure of the server.
pub(super) async fn misdirected(stage: &mut Stage) -> Result<String> {
    let paths = [
        "/",
        "/api",
        "/api/v1",
        "/api/v1/configmaps",
        CONFIG_MAPS,
        "/api/v1/namespaces/missing/configmaps",
        "/api/v1/namespaces/missing/configmaps/foo",
        "/api/v1/namespaces/default/configmaps/missing",
        "/api/v1/namespaces/default/configmaps/missing/status",
        "/api/v1/namespaces/default/pods/missing/exec",
        "/api/v1/namespaces/default/pods/missing/eviction",
        "/api/v1/namespaces/default/pods/missing/binding",
        "/api/v1/nodes/missing",
        "/api/v1/namespaces/missing/finalize",
        "/apis/apps/v1/namespaces/default/deployments/missing/scale",
        "/apis/apps/v1/namespaces/missing/deployments/foo",
        "/apis/none.example/v1/things",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/missing",
        "/healthz",
        "/version",
        "/openapi/v3",
        "/api/v1/namespaces/default/serviceaccounts/default/token",
        "/api/v1/namespaces/default/bindings",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests/missing/approval",
        "/apis/autoscaling/v1/namespaces/default/horizontalpodautoscalers/missing",
        "/api/v1/namespaces/default/pods/missing/log",
        "/api/v1/namespaces/default/pods/missing/attach",
        "/api/v1/namespaces/%2e%2e/configmaps/%00",
    ];
    let bodies: Vec<Value> = vec![
        objects::config_map("foo", "x"),
        objects::config_map("another-name", "x"),
        objects::pod("foo", 1),
        json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "foo", "namespace": "default"}}),
        json!({"kind": "ConfigMap", "apiVersion": "v9", "metadata": {"name": "foo", "namespace": "other"}}),
        json!([]),
        json!(null),
    ];
    let api = stage.server.api().clone();
    let before = open_files(stage)?;
    let mut sent = 0;
    for path in paths {
        // A connection that was closed with an answer is no use for the next one.
        let mut client = api.admin().await?;
        for (method, media) in [
            ("GET", JSON),
            ("HEAD", JSON),
            ("POST", JSON),
            ("PUT", JSON),
            ("PATCH", MERGE),
            ("PATCH", PATCH),
            ("PATCH", APPLY),
            ("PATCH", "text/plain"),
            ("DELETE", JSON),
            ("OPTIONS", JSON),
            ("BREW", JSON),
        ] {
            // Nothing is to be removed from under the bystander and the controllers.
            if method == "DELETE" && !path.contains("missing") {
                continue;
            }
            for body in bodies.iter().step_by(stage.scale(2, 1)) {
                let target = format!("{path}?fieldManager=attack&dryRun=All");
                let answer = client.send(method, &target, media, body.to_string()).await;
                sent += 1;
                match answer {
                    Ok(answer) => ensure!(
                        answer.status < 500 || answer.status == 504,
                        "{method} {path} with {body}: {} {}",
                        answer.status,
                        answer.message()
                    ),
                    Err(_) => client = api.admin().await?,
                }
            }
        }
    }
    at_rest(stage, before + 4).await?;
    Ok(format!("{sent} requests, no failure of the server"))
}
