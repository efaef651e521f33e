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

/// How far Deployments are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Their Pods are there: as far as a cluster without a node comes.
    Made,
    Available,
}

/// Creates `count` Deployments of three replicas and waits until every one has come so far.
pub(crate) async fn deploy(target: &Target, count: u64, until: Until) -> Result<Value, Error> {
    let begin = Instant::now();
    let watch = tokio::spawn(follow(target.clone(), count, until, begin));
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
    let limit = tokio::time::timeout(Duration::from_mins(9), watch);
    let (made, available) = limit.await.map_err(|_| "not all Deployments came so far")???;
    Ok(json!({"phase": "deploy", "count": count, "created_seconds": created.as_secs_f64(),
        "made_seconds": made, "available_seconds": available}))
}

/// Follows the Deployments until `count` of them have come so far. Returns after how many seconds the last one had its
/// Pods, and after how many these were available.
async fn follow(
    target: Target,
    count: u64,
    until: Until,
    begin: Instant,
) -> Result<(Option<f64>, Option<f64>), Error> {
    let mut connection = target.connect().await?;
    let path = format!("{DEPLOYMENTS}?watch=1");
    connection.send("GET", &path, JSON, "").await?;
    let mut rest = Vec::new();
    let (mut made, mut available) = (Milestone::default(), Milestone::default());
    while (if until == Until::Made { &made } else { &available }).after.is_none() {
        rest.extend_from_slice(connection.piece().await?.ok_or("the watch ended too early")?);
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let event: Value = serde_json::from_slice(&rest[..end])?;
            rest.drain(..=end);
            let (name, status) = (&event["object"]["metadata"]["name"], &event["object"]["status"]);
            made.pass(&status["replicas"], name, count, begin);
            available.pass(&status["availableReplicas"], name, count, begin);
        }
    }
    Ok((made.after, available.after))
}

/// Who has come to a point, and after how many seconds all had.
#[derive(Default)]
struct Milestone {
    names: BTreeSet<String>,
    after: Option<f64>,
}

impl Milestone {
    fn pass(&mut self, replicas: &Value, name: &Value, count: u64, begin: Instant) {
        if self.after.is_none() && replicas.as_u64() == Some(REPLICAS) {
            self.names.insert(name.to_string());
            self.after = (self.names.len() as u64 >= count).then(|| begin.elapsed().as_secs_f64());
        }
    }
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
