//! Requests that are small to send and long to answer.
//!
//! How long is measured in processor time, at one size and at ten times that: what grows by much more than ten times is
//! not linear, however fast the machine is.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::super::{
    Stage,
    client::{Answer, Connection, MERGE, PATCH},
    objects::{self, CONFIG_MAPS, PODS, SERVICES},
};

/// Ten times the size may cost so many times the processor time: linear work, a logarithm, and noise.
const LINEAR: f64 = 40.0;

/// Below this, in seconds, no ratio is worth looking at.
const NOISE: f64 = 1.0;

/// Compares the cost of a request with that of one ten times as large.
async fn grows<F>(stage: &Stage, large: usize, mut play: F) -> Result<String>
where
    F: AsyncFnMut(usize) -> Result<Answer>,
{
    let mut costs = Vec::new();
    let mut status = 0;
    for size in [large / 10, large] {
        let before = stage.server.processor_seconds()?;
        status = play(size).await?.status;
        costs.push(stage.server.processor_seconds()? - before);
    }
    let (one, ten) = (costs[0].max(0.01), costs[1]);
    ensure!(
        ten < NOISE || ten / one < LINEAR,
        "{large} cost {ten:.2} CPU-s, a tenth of that {one:.2}: it is not linear"
    );
    Ok(format!("{status}; {ten:.2} CPU-s for {large}, {one:.2} for a tenth"))
}

pub(super) async fn variables(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    grows(stage, 20_000, async |size| client.post(PODS, &objects::pod(&format!("pod-{size}"), size)).await)
        .await
}

pub(super) async fn ports(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let play = async |size| client.post(SERVICES, &objects::service(&format!("service-{size}"), size)).await;
    grows(stage, 20_000, play).await
}

/// The rights that a Role gives are compared with those of its author, without multiplying them out.
pub(super) async fn role_product(stage: &mut Stage) -> Result<String> {
    let mut admin = stage.server.api().admin().await?;
    let rules =
        json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]}]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    admin.post(roles, &objects::cluster_role("authors", &rules)).await?.succeed()?;
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    admin.post(bindings, &objects::binding("authors", "malcolm")).await?.succeed()?;
    let mut client = stage.server.api().user("malcolm").await?;
    let before = stage.server.processor_seconds()?;
    let mut answers = Vec::new();
    for length in [10, 30, stage.scale(60, 200)] {
        let list = |prefix: &str| (0..length).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>();
        let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1",
            "metadata": {"name": format!("role-{length}")}, "rules": [{"apiGroups": list("g"), "resources": list("r"),
                "verbs": list("v"), "resourceNames": list("n")}]});
        let path = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
        let answer = client.post(path, &role).await?;
        ensure!(matches!(answer.status, 403 | 422 | 413), "four lists of {length} got {}", answer.status);
        answers.push(answer.status.to_string());
    }
    let spent = stage.server.processor_seconds()? - before;
    ensure!(spent < 20.0, "three Roles cost {spent:.1} CPU-s");
    Ok(format!("{}; {spent:.2} CPU-s", answers.join(", ")))
}

pub(super) async fn insertions(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let spec =
        json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(definitions, &objects::definition(&spec)).await?.succeed()?;
    let things = "/apis/example.com/v1/namespaces/default/things";
    let thing = json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "long"},
        "spec": {"items": vec![1; 300_000]}});
    client.post(things, &thing).await?.succeed()?;
    let play = async |size: usize| {
        let operations = vec![json!({"op": "add", "path": "/spec/items/0", "value": 1}); size];
        client.patch(&format!("{things}/long"), PATCH, Value::Array(operations).to_string()).await
    };
    grows(stage, 10_000, play).await
}

/// Many ConfigMaps, over a few connections at once.
pub(super) async fn fill(stage: &Stage, count: usize) -> Result<()> {
    let mut writers = Vec::new();
    for writer in 0..8 {
        let mut client = stage.server.api().admin().await?;
        writers.push(tokio::spawn(async move {
            for index in (writer..count).step_by(8) {
                let map = objects::config_map(&format!("map-{index}"), "x");
                client.post(CONFIG_MAPS, &map).await?.succeed()?;
            }
            anyhow::Ok(())
        }));
    }
    for writer in writers {
        writer.await??;
    }
    Ok(())
}

pub(super) async fn selector(stage: &mut Stage) -> Result<String> {
    let count = stage.scale(1000, 10_000);
    fill(stage, count).await?;
    let mut client = stage.attacker().await?;
    let values: Vec<String> = (0..6000).map(|index| format!("v{index}")).collect();
    let set = format!("app%20notin%20({})", values.join(","));
    let equal: Vec<String> = (0..4000).map(|index| format!("l{index}!%3Dv")).collect();
    let mut worst: f64 = 0.0;
    for selector in [set, equal.join(",")] {
        let selector: String = selector.chars().take(62_000).collect();
        // A selector that was cut in the middle of a set is none.
        let open = selector.contains('(') && !selector.ends_with(')');
        let selector = if open { format!("{}x)", selector.trim_end_matches(',')) } else { selector };
        let before = stage.server.processor_seconds()?;
        let status = client.get(&format!("{CONFIG_MAPS}?limit=1&labelSelector={selector}")).await?.status;
        ensure!(matches!(status, 200 | 400 | 414 | 422 | 431), "the selector got {status}");
        worst = worst.max(stage.server.processor_seconds()? - before);
    }
    Ok(format!("{worst:.2} CPU-s over {count} objects"))
}

pub(super) async fn table(stage: &mut Stage) -> Result<String> {
    let count = stage.scale(1000, 10_000);
    fill(stage, count).await?;
    let mut client: Connection = stage.attacker().await?;
    client.header("accept", b"application/json;as=Table;v=v1;g=meta.k8s.io")?;
    let before = stage.server.processor_seconds()?;
    let answer = client.get(CONFIG_MAPS).await?.succeed()?;
    let rows = answer.value()?["rows"].as_array().map_or(0, Vec::len);
    ensure!(rows >= count, "the Table has {rows} rows of {count}");
    Ok(format!("{rows} rows, {:.2} CPU-s", stage.server.processor_seconds()? - before))
}

/// Whatever the order of victims is, it is an order.
pub(super) async fn scale_down(stage: &mut Stage) -> Result<String> {
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let mut client = stage.server.api().admin().await?;
    client.post(path, &objects::deployment("waves", 30)).await?.succeed()?;
    for (pause, replicas) in [(2, 60), (2, 5), (0, 40), (1, 3)] {
        tokio::time::sleep(Duration::from_secs(pause)).await;
        let body = json!({"spec": {"replicas": replicas}}).to_string();
        client.patch(&format!("{path}/waves"), MERGE, body).await?.succeed()?;
    }
    for _ in 0..600 {
        let found = client.get(&format!("{path}/waves")).await?.succeed()?.value()?;
        let pods = client.get(&format!("{PODS}?labelSelector=app%3Dwaves")).await?.succeed()?.value()?;
        let pods = pods["items"].as_array().map_or(0, Vec::len);
        if found["status"]["replicas"] == json!(3) && pods == 3 {
            return Ok("3 Pods of 60 are left".into());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the ReplicaSet has not come down to 3 Pods within a minute")
}
