//! What is asked of the server, and what is counted.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::future::try_join_all;
use serde_json::{Value, json};

use crate::connection::{Connection, Error, Target};

pub(crate) const CONNECTIONS: u64 = 32;
const WATCHERS: u64 = 100;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

/// A ConfigMap of about one kilobyte.
fn config_map(name: &str) -> String {
    let data = json!({"config.yaml": "key: value\n".repeat(50), "turn": "0"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "data": data,
        "metadata": {"name": name, "labels": {"app": "load", "part": name}}})
    .to_string()
}

fn path(number: u64) -> String {
    format!("{CONFIG_MAPS}/load-{number}")
}

pub(crate) async fn connections(target: &Target, count: u64) -> Result<Vec<Connection>, Error> {
    try_join_all((0..count).map(|_| target.connect())).await
}

fn rate(phase: &str, count: u64, since: Instant) -> Value {
    json!({"phase": phase, "count": count, "per_second": count as f64 / since.elapsed().as_secs_f64()})
}

/// Waits until the server says that it is ready and has its first namespace.
pub(crate) async fn ready(target: &Target) -> Result<Value, Error> {
    let deadline = Instant::now() + Duration::from_mins(2);
    loop {
        let attempt = async {
            let mut connection = target.connect().await?;
            connection.call("GET", "/readyz", JSON, "").await?;
            connection.call("GET", "/api/v1/namespaces/default", JSON, "").await
        };
        match attempt.await {
            Ok(_) => return Ok(json!({"phase": "ready"})),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    }
}

/// Creates `count` ConfigMaps, each connection its share.
pub(crate) async fn create(target: &Target, count: u64) -> Result<Value, Error> {
    let next = Arc::new(AtomicU64::new(0));
    let connections = connections(target, CONNECTIONS).await?;
    let begin = Instant::now();
    let work = connections.into_iter().map(|mut connection| {
        let next = Arc::clone(&next);
        tokio::spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= count {
                    return Ok::<_, Error>(());
                }
                let body = config_map(&format!("load-{number}"));
                connection.call("POST", CONFIG_MAPS, JSON, &body).await?;
            }
        })
    });
    for done in try_join_all(work).await? {
        done?;
    }
    Ok(rate("create", count, begin))
}

/// What a connection does again and again.
#[derive(Clone, Copy)]
enum Work {
    Get,
    Patch,
}

impl Work {
    /// Each connection has an object of its own, so that no two writers meet.
    async fn once(self, connection: &mut Connection, index: u64, turn: u64) -> Result<(), Error> {
        match self {
            Self::Get => connection.call("GET", &path(index), JSON, "").await?,
            Self::Patch => {
                let body = json!({"data": {"turn": turn.to_string()}}).to_string();
                connection.call("PATCH", &path(index), MERGE, &body).await?
            }
        };
        Ok(())
    }
}

async fn for_seconds(target: &Target, phase: &str, seconds: u64, work: Work) -> Result<Value, Error> {
    let connections = connections(target, CONNECTIONS).await?;
    let begin = Instant::now();
    let deadline = begin + Duration::from_secs(seconds);
    let tasks = connections.into_iter().zip(0..).map(|(mut connection, index)| {
        tokio::spawn(async move {
            let mut turn = 0;
            while Instant::now() < deadline {
                work.once(&mut connection, index, turn).await?;
                turn += 1;
            }
            Ok::<_, Error>(turn)
        })
    });
    let mut count = 0;
    for turns in try_join_all(tasks).await? {
        count += turns?;
    }
    Ok(rate(phase, count, begin))
}

/// Reads single objects for some seconds.
pub(crate) async fn get(target: &Target, seconds: u64) -> Result<Value, Error> {
    for_seconds(target, "get", seconds, Work::Get).await
}

/// Reads single objects for some seconds, as a service account that shows its token with every request.
pub(crate) async fn get_with_token(target: &Target, seconds: u64) -> Result<Value, Error> {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
    let mut admin = target.connect().await?;
    let name = json!({"name": "reader"});
    let rules = json!([{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]);
    let objects = [
        (ACCOUNTS.to_owned(), json!({"metadata": name})),
        (format!("{ROLES}/roles"), json!({"metadata": name, "rules": rules})),
        (
            format!("{ROLES}/rolebindings"),
            json!({"metadata": name,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": "reader"}]}),
        ),
    ];
    for (path, object) in objects {
        admin.call("POST", &path, JSON, &object.to_string()).await?;
    }
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let answer = admin.ask("POST", &format!("{ACCOUNTS}/reader/token"), &request.to_string()).await?;
    let answer: Value = serde_json::from_slice(&answer)?;
    let token = answer["status"]["token"].as_str().ok_or("the server gave out no token")?;
    for_seconds(&target.bearing(token), "token", seconds, Work::Get).await
}

/// Merge-patches single objects for some seconds.
pub(crate) async fn patch(target: &Target, seconds: u64) -> Result<Value, Error> {
    for_seconds(target, "patch", seconds, Work::Patch).await
}

/// Has 100 watchers follow `writes` changes, and counts the events that reach them until all have all.
pub(crate) async fn watch(target: &Target, writes: u64) -> Result<Value, Error> {
    let watchers = connections(target, WATCHERS).await?.into_iter().map(|mut connection| async move {
        let path = format!(
            "{CONFIG_MAPS}?watch=1&resourceVersion=0&sendInitialEvents=false&\
            resourceVersionMatch=NotOlderThan&labelSelector=app%3Dload"
        );
        connection.send("GET", &path, JSON, "").await?;
        let follow = tokio::spawn(async move { follow(connection, writes).await });
        Ok::<_, Error>(follow)
    });
    let watchers = try_join_all(watchers).await?;
    let begin = Instant::now();
    let next = Arc::new(AtomicU64::new(0));
    let writers =
        connections(target, CONNECTIONS).await?.into_iter().zip(0..).map(|(mut connection, index)| {
            let next = Arc::clone(&next);
            tokio::spawn(async move {
                loop {
                    let turn = next.fetch_add(1, Ordering::Relaxed);
                    if turn >= writes {
                        return Ok::<_, Error>(());
                    }
                    let body = json!({"data": {"turn": format!("w{turn}")}}).to_string();
                    connection.call("PATCH", &path(index), MERGE, &body).await?;
                }
            })
        });
    for done in try_join_all(writers).await? {
        done?;
    }
    let mut events = 0;
    for seen in try_join_all(watchers).await? {
        events += seen?;
    }
    Ok(rate("watch", events, begin))
}

/// Counts the lines of a watch until there are as many as wanted.
async fn follow(mut connection: Connection, wanted: u64) -> Result<u64, Error> {
    let mut seen = 0;
    while seen < wanted {
        let piece = connection.piece().await?.ok_or("a watch ended too early")?;
        seen += piece.split(|byte| *byte == b'\n').count() as u64 - 1;
    }
    Ok(seen)
}

/// Lists everything, some times.
pub(crate) async fn list(target: &Target, times: u64) -> Result<Value, Error> {
    let mut connection = target.connect().await?;
    let mut bytes = 0;
    let begin = Instant::now();
    for _ in 0..times {
        bytes = connection.call("GET", CONFIG_MAPS, JSON, "").await?;
    }
    let milliseconds = begin.elapsed().as_secs_f64() * 1000.0 / times as f64;
    Ok(json!({"phase": "list", "bytes": bytes, "milliseconds": milliseconds}))
}
