//! Time and its ends: deadlines of centuries, watches for ever, revisions of the future, requests that never end.

use std::time::Duration;

use anyhow::{Result, ensure};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::super::{
    Stage,
    client::{APPLY, Api, Who},
    objects::{self, CONFIG_MAPS},
};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn job(name: &str, deadline: i64) -> Value {
    json!({"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": name}, "spec": {
        "activeDeadlineSeconds": deadline, "ttlSecondsAfterFinished": i32::MAX, "backoffLimit": i32::MAX,
        "template": {"spec": {"restartPolicy": "Never", "terminationGracePeriodSeconds": i64::MAX,
            "activeDeadlineSeconds": 4_294_967_295_i64,
            "containers": [{"name": "main", "image": "busybox", "command": ["sleep", "1"]}]}}}})
}

/// A Deployment that gets its Pods: the controllers work.
async fn controllers_work(api: &Api, name: &str) -> Result<()> {
    let mut client = api.admin().await?;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    client.post(path, &objects::deployment(name, 1)).await?.succeed()?;
    for _ in 0..200 {
        let found = client.get(&format!("{path}/{name}")).await?.succeed()?.value()?;
        if found["status"]["readyReplicas"] == json!(1) {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("a Deployment has no Pod after 20 s: the controllers do not work")
}

/// The Job is harmless, and so is a start on a data directory that holds it.
pub(super) async fn endless_job(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    for (name, deadline) in [("first", i64::MAX), ("second", i64::MAX - 1), ("third", 1 << 40)] {
        let status = client.post(JOBS, &job(name, deadline)).await?.status;
        ensure!(status == 201 || status == 422, "the Job got {status}");
    }
    controllers_work(stage.server.api(), "before").await?;
    stage.server.restart(false)?;
    controllers_work(stage.server.api(), "after").await?;
    stage.server.restart(true)?;
    controllers_work(stage.server.api(), "again").await?;
    ensure!(stage.server.is_alive(), "the process has ended");
    Ok("the controllers work, also after two restarts".into())
}

/// A watch with the longest timeout is a watch, not a failure.
pub(super) async fn endless_watch(stage: &mut Stage) -> Result<String> {
    for seconds in [i64::MAX, i64::MAX - 1, i64::MIN, 1 << 62] {
        let mut stream = stage.server.api().stream(Who::Admin, "http/1.1").await?;
        let request = format!(
            "GET {CONFIG_MAPS}?watch=true&timeoutSeconds={seconds} HTTP/1.1\r\nHost: localhost\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut head = [0; 15];
        tokio::time::timeout(Duration::from_secs(20), stream.read_exact(&mut head)).await??;
        let head = String::from_utf8_lossy(&head).into_owned();
        ensure!(head.contains(" 200 "), "timeoutSeconds={seconds}: {head}");
    }
    Ok("200 each".into())
}

/// A token that says that it comes from the future is refused.
pub(super) async fn forged_continue(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    for index in 0..3 {
        client.post(CONFIG_MAPS, &objects::config_map(&format!("map-{index}"), "x")).await?.succeed()?;
    }
    let list = client.get(&format!("{CONFIG_MAPS}?limit=1")).await?.succeed()?.value()?;
    let token = list["metadata"]["continue"].as_str().unwrap_or_default();
    ensure!(!token.is_empty(), "a list of one has no continue token");
    let plain = URL_SAFE_NO_PAD.decode(token.trim_end_matches('=')).or_else(|_| STANDARD.decode(token))?;
    let mut known: Value = serde_json::from_slice(&plain)?;
    let revision = known["rv"].as_u64();
    ensure!(revision.is_some(), "the token has no revision: {known}");
    let mut seen = Vec::new();
    for (what, rv) in
        [("the future", json!(u64::MAX / 4)), ("before time", json!(-7)), ("no number", json!("x"))]
    {
        known["rv"] = rv;
        let forged = URL_SAFE_NO_PAD.encode(known.to_string());
        let status = client.get(&format!("{CONFIG_MAPS}?limit=1&continue={forged}")).await?.status;
        // 504 is Kubernetes' own answer to a revision that it has not reached.
        ensure!(matches!(status, 400 | 410 | 504), "a token of {what} got {status}");
        seen.push(status.to_string());
    }
    let garbage = client.get(&format!("{CONFIG_MAPS}?limit=1&continue=%00%ff")).await?.status;
    ensure!(garbage == 400 || garbage == 410, "garbage got {garbage}");
    Ok(seen.join(", "))
}

/// An ordinary mistake: the request ends, nothing spins, and SIGTERM ends the process.
pub(super) async fn missing_namespace(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    let path = "/api/v1/namespaces/foo/configmaps/foo?fieldManager=attack";
    let answer = client.patch(path, APPLY, objects::config_map("foo", "x").to_string()).await?;
    ensure!(answer.status == 404, "{}: {}", answer.status, answer.message());
    ensure!(stage.server.is_idle().await?, "a core spins after the answer");
    let took = stage.server.terminate()?;
    ensure!(took < Duration::from_secs(15), "SIGTERM took {} s", took.as_secs());
    Ok(format!("404; ended {:.1} s after SIGTERM", took.as_secs_f64()))
}
