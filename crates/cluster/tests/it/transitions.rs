//! What the controllers make of an object, beside what those of Kubernetes made of it.
//!
//! The files in `tests/recorded` were written by kube-controller-manager and kube-scheduler, over the same simulated
//! node: the conditions that each object went through, its last status, and the events about it. `record` writes them
//! anew when KUBECONFIG names a cluster without nodes (`cargo xtask kubernetes up --control-plane`).

use std::{path::PathBuf, time::Duration};

use tokio_util::sync::CancellationToken;
use windlass::{
    clock::SystemClock,
    k8s_openapi::api::core::v1::Namespace,
    kube::{
        Api, Client, Config,
        api::{DeleteParams, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
};
use windlass_cluster::{Cluster, Controllers, Timing};

mod scenarios;
mod witness;

use scenarios::Scenario;

/// Long enough for every step to be seen on its own.
const TIMING: Timing = Timing {
    start: Duration::from_secs(1),
    ready: Duration::from_secs(1),
    run: Duration::from_secs(2),
    stop: Duration::from_secs(1),
    unreachable: Duration::ZERO,
};

fn file(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "recorded", &format!("{name}.txt")].iter().collect()
}

async fn play(scenario: &Scenario, client: Client, namespace: &str) -> String {
    let witness = witness::Witness::watch(&client, namespace);
    (scenario.play)(client.clone(), namespace.to_owned()).await;
    witness.account(&client, namespace).await
}

async fn compare(name: &str) {
    let scenario = scenarios::all().into_iter().find(|scenario| scenario.name == name).unwrap();
    let cluster = Cluster::builder().timing(TIMING).heartbeat(None).start().await.unwrap();
    let seen = play(&scenario, cluster.client(), "default").await;
    let recorded = std::fs::read_to_string(file(name)).expect("the scenario must have been recorded");
    if seen != recorded {
        let changes: Vec<String> = difference(&recorded, &seen);
        panic!("{name} differs from Kubernetes (-) here (+):\n{}", changes.join("\n"));
    }
    cluster.shutdown().await.unwrap();
}

fn difference(old: &str, new: &str) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let gone = old.iter().filter(|line| !new.contains(line)).map(|line| format!("-{line}"));
    let come = new.iter().filter(|line| !old.contains(line)).map(|line| format!("+{line}"));
    gone.chain(come).collect()
}

macro_rules! compared {
    ($($name:ident),* $(,)?) => {
        $(
            #[tokio::test(start_paused = true)]
            async fn $name() {
                compare(stringify!($name)).await;
            }
        )*

        #[tokio::test(flavor = "multi_thread")]
        async fn every_scenario_is_compared() {
            // Names a kubeconfig when the recordings are to be made again.
            if let Some(kubeconfig) = std::env::var_os("WINDLASS_TRANSITIONS_RECORD") {
                record(kubeconfig.as_ref()).await;
            }
            let names: Vec<&str> = scenarios::all().iter().map(|scenario| scenario.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

compared!(
    a_deployment_rolls_out,
    a_deployment_gets_stuck,
    a_stateful_set_starts_and_updates,
    a_daemon_set_covers_the_node,
    a_job_completes,
    an_indexed_job_completes,
    a_job_fails,
    a_job_is_suspended_and_resumed,
    a_cron_job_runs,
    a_budget_counts,
);

/// Plays every scenario on a real control plane, over our node, and writes down what happened.
async fn record(kubeconfig: &std::path::Path) {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    let client = Client::try_from(config).unwrap();
    let node = Controllers {
        workloads: false,
        garbage: false,
        namespaces: false,
        endpoints: false,
        volumes: false,
        scheduler: false,
        timing: TIMING,
        ..Controllers::default()
    };
    let stop = CancellationToken::new();
    let running = tokio::spawn(node.run(client.clone(), SystemClock, stop.clone()));
    let namespaces: Api<Namespace> = Api::all(client.clone());
    for scenario in scenarios::all() {
        let namespace = format!("recording-{}", scenario.name.replace('_', "-"));
        let object = serde_json::from_value(serde_json::json!({"metadata": {"name": namespace}})).unwrap();
        namespaces.create(&PostParams::default(), &object).await.unwrap();
        let seen = play(&scenario, client.clone(), &namespace).await;
        std::fs::write(file(scenario.name), seen).unwrap();
        namespaces.delete(&namespace, &DeleteParams::default()).await.unwrap();
    }
    stop.cancel();
    running.await.unwrap().unwrap();
}
