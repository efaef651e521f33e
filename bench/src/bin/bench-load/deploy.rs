//! Deployments for a whole cluster: how long until all of them are available.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::{
    connection::{Error, Target},
    phases::{CONNECTIONS, JSON, connections},
};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const REPLICAS: u64 = 3;

fn deployment(number: u64) -> String {
    let labels = json!({"app": format!("web-{number}")});
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": format!("web-{number}")},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx:1.29"}]}}}})
    .to_string()
}

/// Creates `count` Deployments of three replicas and waits until every one is available.
pub(crate) async fn deploy(target: &Target, count: u64) -> Result<Value, Error> {
    let begin = Instant::now();
    let watch = tokio::spawn(available(target.clone(), count));
    let work = connections(target, CONNECTIONS).await?.into_iter().zip(0..).map(|(mut connection, first)| {
        tokio::spawn(async move {
            for number in (first..count).step_by(usize::try_from(CONNECTIONS)?) {
                connection.call("POST", DEPLOYMENTS, JSON, &deployment(number)).await?;
            }
            Ok::<_, Error>(())
        })
    });
    for done in try_join_all(work).await? {
        done?;
    }
    let created = begin.elapsed();
    tokio::time::timeout(Duration::from_mins(9), watch)
        .await
        .map_err(|_| "not all became available")???;
    Ok(json!({"phase": "deploy", "count": count, "created_seconds": created.as_secs_f64(),
        "available_seconds": begin.elapsed().as_secs_f64()}))
}

/// Follows the Deployments until `count` of them have all their replicas.
async fn available(target: Target, count: u64) -> Result<(), Error> {
    let mut connection = target.connect().await?;
    let path = format!("{DEPLOYMENTS}?watch=1");
    connection.send("GET", &path, JSON, "").await?;
    let (mut rest, mut ready) = (Vec::new(), BTreeSet::new());
    while (ready.len() as u64) < count {
        rest.extend_from_slice(connection.piece().await?.ok_or("the watch ended too early")?);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let event: Value = serde_json::from_slice(&rest[..end])?;
            rest.drain(..=end);
            let (object, name) = (&event["object"], event["object"]["metadata"]["name"].to_string());
            if object["status"]["availableReplicas"].as_u64() == Some(REPLICAS) {
                ready.insert(name);
            }
        }
    }
    Ok(())
}

/// The server's revision: two equal ones mean that nothing was written in between.
pub(crate) async fn revision(target: &Target) -> Result<Value, Error> {
    let mut connection = target.connect().await?;
    let path = format!("{DEPLOYMENTS}?limit=1");
    connection.send("GET", &path, JSON, "").await?;
    let mut answer = Vec::new();
    while let Some(piece) = connection.piece().await? {
        answer.extend_from_slice(piece);
    }
    let list: Value = serde_json::from_slice(&answer)?;
    let revision: u64 = list["metadata"]["resourceVersion"].as_str().unwrap_or_default().parse()?;
    Ok(json!({"phase": "revision", "revision": revision}))
}
