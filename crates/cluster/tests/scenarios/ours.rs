//! A scenario on the embedded cluster, whose clock stands still: an hour passes at once.

use std::time::Duration;

use serde_json::Value;
use windlass::{
    k8s_openapi::api::core::v1::{Event, Namespace},
    kube::{
        Api, Client,
        api::{ListParams, PostParams},
    },
};
use windlass_cluster::{Cluster, Timing};

use super::{
    account::{self, Account, Scene},
    kinds,
    play::{self, Stage},
    scenario::Scenario,
    witness::{self, Witness},
};

/// Long enough for every step to be seen on its own; KWOK's stages have the same times.
pub(crate) const TIMING: Timing = Timing {
    start: Duration::from_secs(1),
    ready: Duration::from_secs(1),
    run: Duration::from_secs(2),
    stop: Duration::from_secs(1),
    unreachable: Duration::from_secs(40),
};

/// A runtime on which time passes when nobody has anything to do.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Plays a scenario on a cluster of its own.
pub(crate) fn play(scenario: &Scenario) -> Account {
    runtime().block_on(async {
        let builder = Cluster::builder().nodes(scenario.nodes).timing(TIMING).heartbeat(None);
        let cluster = builder.start().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let account = Box::pin(witnessed(scenario, &cluster.client())).await;
        cluster.shutdown().await.unwrap();
        account
    })
}

/// The namespace of a scenario.
pub(crate) fn namespace(scenario: &Scenario) -> String {
    format!("s-{}", scenario.name.replace('_', "-"))
}

/// Plays a scenario in a namespace of its own, and tells what happened.
pub(crate) async fn witnessed(scenario: &Scenario, client: &Client) -> Account {
    let namespace = namespace(scenario);
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let object = serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}})).unwrap();
    namespaces.create(&PostParams::default(), &object).await.unwrap();
    // The account is there before a Pod needs it.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let witness = Witness::watch(client, &namespace, &witness::kinds_of(scenario));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let stage = Stage { client: client.clone(), namespace: namespace.clone() };
    let notes = stage.play(scenario).await;
    // Pods that are stopping are gone by then.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let objects = witness.end();
    let events: Api<Event> = Api::namespaced(client.clone(), &namespace);
    let events = events.list(&ListParams::default()).await.unwrap().items;
    let events: Vec<Value> = events.iter().map(|event| serde_json::to_value(event).unwrap()).collect();
    let mut global = Vec::new();
    for name in &scenario.show {
        let (kind, object) = play::split(name);
        let object = object.replace("$NAMESPACE", &namespace);
        let found = kinds::named(kind).api(client, &namespace).get_opt(&object).await.unwrap();
        global.push((name.clone(), found.map(|object| serde_json::to_value(object).unwrap())));
    }
    let scene = Scene {
        namespace: &namespace,
        placement: scenario.placement,
        notes: &notes,
        global: &global,
        events: &events,
    };
    account::tell(&objects, &scene)
}
