//! Scenarios on a real control plane with KWOK's nodes, for the recordings.

use std::{path::Path, sync::Mutex, time::Duration};

use futures::StreamExt;
use serde_json::json;
use windlass::{
    k8s_openapi::api::core::v1::{Namespace, Node},
    kube::{
        Api, Client, Config,
        api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
};

use super::{
    account::Account,
    compare, kinds,
    ours::{namespace, witnessed},
    play::global,
    scenario::Scenario,
};

/// How many scenarios are played at once.
const AT_ONCE: usize = 8;
/// How often each is played: what is not alike every time is not compared.
const PLAYS: usize = 2;

/// What is done with a play.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Then {
    Write,
    Compare,
}

/// Plays scenarios on the cluster of a kubeconfig, and writes down what happened, or compares it with what is written.
pub(crate) fn play(kubeconfig: &Path, scenarios: Vec<Scenario>, then: Then) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
        let mut config =
            Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        // A refusal is an answer.
        config.default_retry = false;
        let client = Client::try_from(config).unwrap();
        let plays = std::env::var("WINDLASS_SCENARIOS_PLAYS").ok().and_then(|text| text.parse().ok());
        let plays = plays.unwrap_or(if then == Then::Write { PLAYS } else { 1 });
        let (alone, together): (Vec<_>, Vec<_>) = scenarios.into_iter().partition(|scenario| scenario.alone);
        node(&client, 1).await;
        let failed: Mutex<Vec<String>> = Mutex::default();
        let played = futures::stream::iter(together).map(|scenario| {
            let (client, failed) = (client.clone(), &failed);
            async move { several(&scenario, &client, (plays, then), failed).await }
        });
        played.buffer_unordered(AT_ONCE).collect::<()>().await;
        for scenario in alone {
            several(&scenario, &client, (plays, then), &failed).await;
        }
        let failed = failed.into_inner().unwrap();
        assert!(failed.is_empty(), "these did not get to their end:\n{}", failed.join("\n"));
    });
}

async fn several(
    scenario: &Scenario,
    client: &Client,
    (plays, then): (usize, Then),
    failed: &Mutex<Vec<String>>,
) {
    let mut accounts: Vec<Account> = Vec::new();
    for _ in 0..plays {
        if scenario.alone {
            renew(client, scenario.nodes).await;
        }
        let account = Box::pin(witnessed(scenario, client)).await;
        clean(scenario, client).await;
        let stuck =
            account.get("steps").into_iter().flatten().filter(|(note, _)| note.contains("did not get there"));
        failed.lock().unwrap().extend(stuck.map(|(note, _)| format!("{}: {note}", scenario.name)));
        accounts.push(account);
    }
    if scenario.alone {
        renew(client, 1).await;
    }
    if then == Then::Compare {
        let differences = accounts.iter().flat_map(|account| compare::differences(scenario, account));
        failed.lock().unwrap().extend(differences.map(|line| format!("{}: {line}", scenario.name)));
        return;
    }
    let again = std::env::var_os("WINDLASS_SCENARIOS_AGAIN").is_some();
    compare::write(&scenario.name, &accounts, again);
    println!("recorded {}", scenario.name);
}

/// Removes what a scenario has left, and waits until its namespace is gone.
async fn clean(scenario: &Scenario, client: &Client) {
    let namespace = namespace(scenario);
    for (kind, name) in global(scenario) {
        let name = name.replace("$NAMESPACE", &namespace);
        // It may be gone already.
        let _ = kind.api(client, &namespace).delete(&name, &DeleteParams::default()).await;
    }
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let _ = namespaces.delete(&namespace, &DeleteParams::default()).await;
    for number in 0..300 {
        if namespaces.get_opt(&namespace).await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        // Finalizers of the scenario's own would keep it for ever, and the Job of a Pod may be gone before it has let go.
        if number % 50 == 49 {
            for kind in ["Pod", "ConfigMap"] {
                release(&kinds::named(kind).api(client, &namespace)).await;
            }
        }
    }
    println!("warning: namespace {namespace} does not end");
}

/// Takes all finalizers away.
async fn release(api: &Api<DynamicObject>) {
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    for object in api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default() {
        if object.metadata.finalizers.is_some() {
            // It may be gone by now.
            let _ =
                api.patch(&object.metadata.name.unwrap_or_default(), &PatchParams::default(), &free).await;
        }
    }
}

/// Deletes all nodes, and makes some anew.
async fn renew(client: &Client, count: usize) {
    let nodes: Api<Node> = Api::all(client.clone());
    let all = nodes.list(&ListParams::default()).await.unwrap();
    for node in all {
        let name = node.metadata.name.unwrap_or_default();
        let _ = nodes.delete(&name, &DeleteParams::default()).await;
    }
    for number in 1..=count {
        node(client, number).await;
    }
    // The scheduler and the controllers see it.
    tokio::time::sleep(Duration::from_secs(2)).await;
}

/// A node like those of the embedded cluster, for KWOK to play.
async fn node(client: &Client, number: usize) {
    let nodes: Api<Node> = Api::all(client.clone());
    let name = format!("windlass-{number}");
    if nodes.get_opt(&name).await.unwrap().is_some() {
        return;
    }
    let amounts = json!({"cpu": "64", "memory": "256Gi", "pods": "10000"});
    let object = json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
                "windlass.dev/simulated": "true",
            },
            "annotations": {"kwok.x-k8s.io/node": "fake"},
        },
        "status": {"capacity": amounts, "allocatable": amounts},
    });
    let object = serde_json::from_value(object).unwrap();
    nodes.create(&PostParams::default(), &object).await.unwrap();
    for _ in 0..300 {
        let node = nodes.get(&name).await.unwrap();
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let ready = conditions.iter().any(|one| one.type_ == "Ready" && one.status == "True");
        if ready && node.spec.and_then(|spec| spec.taints).is_none() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("node {name} does not become ready: is KWOK running?");
}
