//! One account that sends all it can: lists of everything, the most expensive requests that are accepted, all at once.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::future::join_all;
use serde_json::{Value, json};

use super::{
    super::{
        Stage,
        client::{Api, Connection, JSON, MERGE, PATCH},
        objects::{self, CONFIG_MAPS, PODS, SERVICES},
    },
    work::fill,
};

const TABLE: &[u8] = b"application/json;as=Table;v=v1;g=meta.k8s.io";

/// What became of the requests of one connection.
#[derive(Debug, Default, Clone, Copy)]
struct Tally {
    answered: usize,
    refused: usize,
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            answered: sum.answered + one.answered,
            refused: sum.refused + one.refused,
        })
    }
}

/// Lists and Tables of 100,000 objects, several at once: what is read is written at once and not kept.
pub(super) async fn rows(stage: &mut Stage) -> Result<String> {
    let count = stage.scale(2000, 100_000);
    fill(stage, count).await?;
    stage.stored()?;
    let api = stage.server.api().clone();
    let ask = async |accept: &'static [u8]| {
        let mut client = api.user(super::super::ATTACKER).await?;
        client.header("accept", accept)?;
        let answer = client.get(CONFIG_MAPS).await?;
        anyhow::Ok((answer.status, answer.body.len()))
    };
    let accepts: [&'static [u8]; 8] = [
        TABLE,
        TABLE,
        TABLE,
        TABLE,
        b"application/json",
        b"application/json",
        b"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        b"application/json",
    ];
    let answers = join_all(accepts.into_iter().map(&ask)).await.into_iter().collect::<Result<Vec<_>>>()?;
    let served = answers.iter().filter(|(status, _)| *status == 200).count();
    let refused = answers.iter().filter(|(status, _)| *status == 429).count();
    ensure!(served > 0 && served + refused == answers.len(), "they got {answers:?}");
    let largest = answers.iter().map(|(_, length)| *length).max().unwrap_or(0);
    let grown = stage.server.peak()? - stage.before;
    Ok(format!("{served} answers of up to {} MB, {refused} refused, {grown:.0} MB", largest / 1_000_000))
}

/// As many requests as connections can carry, of one account: it has its share, the rest is told to come again.
pub(super) async fn endless(stage: &mut Stage) -> Result<String> {
    fill(stage, stage.scale(500, 2000)).await?;
    stage.stored()?;
    let (api, end) =
        (stage.server.api().clone(), Instant::now() + Duration::from_secs(stage.scale(3, 15) as u64));
    let connections = (0..stage.scale(16, 48)).map(|_| tokio::spawn(ask_until(api.clone(), end)));
    let mut total = Vec::new();
    for connection in join_all(connections).await {
        total.push(connection??);
    }
    let total: Tally = total.into_iter().sum();
    ensure!(total.answered > 0, "nobody was answered");
    Ok(format!("{} lists answered, {} told to come again", total.answered, total.refused))
}

async fn ask_until(api: Api, end: Instant) -> Result<Tally> {
    let mut tally = Tally::default();
    let mut client: Option<Connection> = None;
    while Instant::now() < end {
        let asked = async {
            if client.is_none() {
                client = Some(api.user(super::super::ATTACKER).await?);
            }
            match &mut client {
                Some(client) => client.get(&format!("{CONFIG_MAPS}?limit=250")).await,
                None => anyhow::bail!("no connection"),
            }
        };
        // A server that closes a connection in place of an answer refuses too.
        match asked.await {
            Ok(answer) if answer.status == 200 => tally.answered += 1,
            Ok(answer) if answer.status == 429 => tally.refused += 1,
            Ok(answer) => anyhow::bail!("a list got {}: {}", answer.status, answer.message()),
            Err(_) => (client, tally.refused) = (None, tally.refused + 1),
        }
    }
    Ok(tally)
}

/// A request that is small to send and long to answer.
struct Worst {
    method: &'static str,
    path: String,
    media: &'static str,
    accept: &'static [u8],
    body: String,
}

fn worst_requests(size: usize) -> Vec<Worst> {
    let json = |method, path: String, body: &Value| Worst {
        method,
        path,
        media: JSON,
        accept: b"application/json",
        body: body.to_string(),
    };
    let dry = |path: &str| format!("{path}?dryRun=All");
    let values: Vec<String> = (0..6000).map(|index| format!("v{index}")).collect();
    let selector = format!("{CONFIG_MAPS}?limit=1&labelSelector=app%20notin%20({})", values.join(","));
    let operations = vec![json!({"op": "add", "path": "/spec/items/0", "value": 1}); size / 2];
    let list = |prefix: &str| (0..100).map(|index| format!("{prefix}{index}")).collect::<Vec<_>>();
    let role = json!({"kind": "Role", "apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "long"},
        "rules": [{"apiGroups": list("g"), "resources": list("r"), "verbs": list("v"), "resourceNames": list("n")}]});
    vec![
        json("POST", dry(PODS), &objects::pod("long", size)),
        json("POST", dry(SERVICES), &objects::service("long", size)),
        json("POST", dry("/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"), &role),
        Worst { path: selector, ..json("GET", String::new(), &Value::Null) },
        Worst { accept: TABLE, ..json("GET", CONFIG_MAPS.to_owned(), &Value::Null) },
        Worst {
            media: PATCH,
            ..json(
                "PATCH",
                dry("/apis/example.com/v1/namespaces/default/things/long"),
                &Value::Array(operations),
            )
        },
        Worst {
            media: MERGE,
            ..json(
                "PATCH",
                dry(&format!("{CONFIG_MAPS}/large")),
                &json!({"data": {"other": "x".repeat(100_000)}}),
            )
        },
    ]
}

/// The worst of everything that is accepted, over several connections, again and again.
pub(super) async fn worst(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    let spec =
        json!({"type": "object", "properties": {"items": {"type": "array", "items": {"type": "integer"}}}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    client.post(definitions, &objects::definition(&spec)).await?.succeed()?;
    let thing = json!({"kind": "Thing", "apiVersion": "example.com/v1", "metadata": {"name": "long"},
        "spec": {"items": vec![1; 200_000]}});
    client.post("/apis/example.com/v1/namespaces/default/things", &thing).await?.succeed()?;
    client.post(CONFIG_MAPS, &objects::config_map("large", &"x".repeat(900_000))).await?.succeed()?;
    fill(stage, stage.scale(500, 10_000)).await?;
    stage.stored()?;
    let end = Instant::now() + Duration::from_secs(stage.scale(4, 20) as u64);
    let size = stage.scale(5000, 20_000);
    let api = stage.server.api().clone();
    let connections = (0..16).map(|number| tokio::spawn(send_until(api.clone(), number, size, end)));
    let mut total = Vec::new();
    for connection in join_all(connections).await {
        total.push(connection??);
    }
    let total: Tally = total.into_iter().sum();
    ensure!(total.answered > 0, "nobody was answered");
    Ok(format!("{} requests answered, {} told to come again", total.answered, total.refused))
}

async fn send_until(api: Api, number: usize, size: usize, end: Instant) -> Result<Tally> {
    let requests = worst_requests(size);
    let mut tally = Tally::default();
    for turn in number.. {
        if Instant::now() >= end {
            break;
        }
        let Worst { method, path, media, accept, body } = &requests[turn % requests.len()];
        let mut client: Connection = api.user(super::super::ATTACKER).await?;
        client.header("accept", accept)?;
        let answer = client.send(method, path, media, body.clone()).await?;
        match answer.status {
            429 => tally.refused += 1,
            status if status < 500 => tally.answered += 1,
            status => anyhow::bail!("{method} {path} got {status}: {}", answer.message()),
        }
    }
    Ok(tally)
}

/// Many evictions at once, and one disruption that may be: one Pod goes.
pub(super) async fn evictions(stage: &mut Stage) -> Result<String> {
    let mut client = stage.attacker().await?;
    // Nobody makes new ones of these, so what the budget allows never comes back.
    for index in 0..8 {
        let mut pod = objects::pod(&format!("guarded-{index}"), 0);
        pod["metadata"]["labels"] = json!({"app": "guarded"});
        client.post(PODS, &pod).await?.succeed()?;
    }
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"kind": "PodDisruptionBudget", "apiVersion": "policy/v1", "metadata": {"name": "guard"},
        "spec": {"minAvailable": 7, "selector": {"matchLabels": {"app": "guarded"}}}});
    client.post(budgets, &budget).await?.succeed()?;
    for turn in 0.. {
        let found = client.get(&format!("{budgets}/guard")).await?.succeed()?.value()?;
        if found["status"]["disruptionsAllowed"] == json!(1) {
            break;
        }
        ensure!(turn < 300, "the budget allows nothing after 30 s: {}", found["status"]);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let pods = client.get(&format!("{PODS}?labelSelector=app%3Dguarded")).await?.succeed()?.value()?;
    let pods: Vec<String> = pods["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pod| pod["metadata"]["name"].as_str().map(str::to_owned))
        .collect();
    // The connections are there before the race begins.
    let mut racers = Vec::new();
    for pod in &pods {
        racers.push((stage.attacker().await?, pod));
    }
    let answers = racers.into_iter().map(|(mut client, pod)| async move {
        let eviction = json!({"kind": "Eviction", "apiVersion": "policy/v1", "metadata": {"name": pod}});
        anyhow::Ok(client.post(&format!("{PODS}/{pod}/eviction"), &eviction).await?.status)
    });
    let answers = join_all(answers).await.into_iter().collect::<Result<Vec<u16>>>()?;
    let evicted = answers.iter().filter(|status| **status == 201).count();
    let others = answers.iter().filter(|status| **status != 201 && **status != 429).count();
    ensure!(evicted == 1 && others == 0, "a budget of one disruption: {answers:?}");
    Ok(format!("1 of {} evictions went through", pods.len()))
}
