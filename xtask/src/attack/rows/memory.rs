//! Requests that take memory: bodies of strangers, large objects, long histories, answers that nobody reads.

use std::time::Duration;

use anyhow::{Result, ensure};
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt, StreamBody};
use hyper::{body::Frame, client::conn::http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::{
    Stage,
    client::{Api, MERGE, Who},
    objects::{self, CONFIG_MAPS},
};

/// Almost three megabytes that never end.
async fn unfinished(
    mut sender: http2::SendRequest<http_body_util::combinators::UnsyncBoxBody<Bytes, std::io::Error>>,
    piece: Bytes,
) {
    let pieces = futures::stream::unfold(0_usize, move |sent| {
        let piece = piece.clone();
        async move {
            if sent >= 45 {
                // The last byte never comes.
                std::future::pending::<()>().await;
            }
            Some((Ok::<_, std::io::Error>(Frame::data(piece)), sent + 1))
        }
    });
    let request = Request::post("https://localhost/api/v1/namespaces/default/configmaps")
        .header("content-type", "application/json")
        .body(StreamBody::new(pieces).boxed_unsync());
    if let Ok(request) = request {
        // Whatever the server says, early or late, is fine.
        let _ = sender.send_request(request).await;
    }
}

/// A thousand bodies at once from somebody whom nobody knows.
pub(super) async fn bodies(stage: &mut Stage) -> Result<String> {
    let stream = stage.server.api().stream(Who::Nobody, "h2").await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(1 << 20)
        .handshake(TokioIo::new(stream))
        .await?;
    tokio::spawn(connection);
    let piece = Bytes::from(vec![b' '; 64 * 1024]);
    let count = stage.scale(300, 1000);
    let requests: Vec<_> =
        (0..count).map(|_| tokio::spawn(unfinished(sender.clone(), piece.clone()))).collect();
    tokio::time::sleep(Duration::from_secs(stage.scale(5, 12) as u64)).await;
    for request in requests {
        request.abort();
    }
    let mut admin = stage.server.api().admin().await?;
    admin.get("/version").await?.succeed()?;
    Ok(format!("{count} streams of 2.9 MB"))
}

/// Small patches of a large object: the history keeps every version of it.
pub(super) async fn history(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let large = "x".repeat(1_000_000);
    client.post(CONFIG_MAPS, &objects::config_map("large", &large)).await?.succeed()?;
    let count = stage.scale(300, 1500);
    let path = format!("{CONFIG_MAPS}/large");
    for index in 0..count {
        let patch = json!({"metadata": {"labels": {"turn": index.to_string()}}}).to_string();
        client.patch(&path, MERGE, patch).await?.succeed()?;
        if stage.server.resident()? > 1500.0 {
            anyhow::bail!("more than 1.5 GB after {index} patches");
        }
    }
    client.delete(&path).await?.succeed()?;
    Ok(format!("{count} patches of 1 MB, {:.0} MB at the end", stage.server.resident()?))
}

/// Kubernetes' limits: 1 MiB of ConfigMap, 256 KiB of annotations, 1.5 MiB of anything.
pub(super) async fn oversized(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let refused = |status: u16, what: &str| {
        ensure!((400..500).contains(&status), "{what} got {status}");
        Ok(())
    };
    let map = objects::config_map("large", &"x".repeat(1_500_000));
    refused(client.post(CONFIG_MAPS, &map).await?.status, "a ConfigMap of 1.5 MB")?;
    let mut map = objects::config_map("annotated", "x");
    map["metadata"]["annotations"] = json!({"a": "x".repeat(2_900_000)});
    refused(client.post(CONFIG_MAPS, &map).await?.status, "annotations of 2.9 MB")?;
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let spec = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    client.post(definitions, &objects::definition(&spec)).await?.succeed()?;
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing =
        json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "growing"}, "spec": {}});
    client.post(things, &thing).await?.succeed()?;
    for index in 0..30 {
        let patch = json!({"spec": {format!("part{index}"): "x".repeat(900_000)}}).to_string();
        let status = client.patch(&format!("{things}/growing"), MERGE, patch).await?.status;
        if status >= 400 {
            return Ok(format!("refused; grown by patches to {index} parts of 0.9 MB, then {status}"));
        }
    }
    anyhow::bail!("an object was grown to 27 MB")
}

/// A short body whose items each get a long default.
pub(super) async fn defaults(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let item = json!({"type": "object", "properties": {
        "a": {"type": "string", "default": "x".repeat(1000)}, "b": {"type": "string", "default": "y".repeat(1000)}}});
    let spec = json!({"type": "object", "properties": {"items": {"type": "array", "items": item}}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(definitions, &objects::definition(&spec)).await?.succeed()?;
    let count = stage.scale(100_000, 500_000);
    let thing = json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "bomb"},
        "spec": {"items": vec![json!({}); count]}});
    let answer = client.post("/apis/example.com/v1/namespaces/default/things", &thing).await?;
    ensure!((400..500).contains(&answer.status), "{count} items of 2 KB got {}", answer.status);
    Ok(format!("{}: {}", answer.status, answer.message().chars().take(60).collect::<String>()))
}

/// As many warnings as fields that nobody knows: what is sent back stays small.
pub(super) async fn warnings(stage: &mut Stage) -> Result<String> {
    let fields: Vec<String> = (0..200_000).map(|index| format!("\"u{index}\":1")).collect();
    let body = format!(
        "{{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{{\"name\":\"unknown\"}},{}}}",
        fields.join(",")
    );
    let mut stream = stage.server.api().stream(Who::Admin, "http/1.1").await?;
    let head = format!(
        "POST {CONFIG_MAPS}?fieldValidation=Warn HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let (mut answer, mut piece) = (Vec::new(), vec![0; 64 * 1024]);
    let read = async {
        while !answer.windows(4).any(|window| window == b"\r\n\r\n") {
            let length = stream.read(&mut piece).await?;
            ensure!(length > 0, "the connection was closed");
            answer.extend_from_slice(&piece[..length]);
            ensure!(answer.len() < 1 << 20, "the head of the answer is longer than 1 MB");
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_mins(1), read).await??;
    let status = String::from_utf8_lossy(&answer[..12]).into_owned();
    let count = String::from_utf8_lossy(&answer).to_lowercase().matches("\nwarning:").count();
    Ok(format!("{status}, {count} Warning headers"))
}

async fn ask_and_wait(api: Api, path: &str) -> Result<()> {
    let mut stream = api.stream(Who::Admin, "http/1.1").await?;
    let user = super::super::ATTACKER;
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nImpersonate-User: {user}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    stream.flush().await?;
    tokio::time::sleep(Duration::from_secs(10)).await;
    Ok(())
}

/// Answers that are asked for and never read.
pub(super) async fn unread(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    for index in 0..80 {
        let map = objects::config_map(&format!("large-{index}"), &"x".repeat(900_000));
        client.post(CONFIG_MAPS, &map).await?.succeed()?;
    }
    stage.stored()?;
    let api = stage.server.api().clone();
    join_all((0..40).map(|_| ask_and_wait(api.clone(), CONFIG_MAPS))).await;
    Ok(format!("40 lists of 72 MB, {:.0} MB", stage.server.peak()? - stage.before))
}
