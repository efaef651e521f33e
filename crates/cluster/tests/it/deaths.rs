//! A worker that dies: what gets past the isolation of a reconcile costs one run, and nobody else notices for long.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::json;
use windlass::{
    Action, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{Api, api::DeleteParams},
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode};

/// Hangs on one object, and dies when it is told to let go of it.
#[derive(Clone, Default)]
struct Fragile(Arc<Mutex<Vec<String>>>);

struct Deadly;

impl Drop for Deadly {
    fn drop(&mut self) {
        assert!(std::thread::panicking(), "the object is deadly");
    }
}

impl Reconciler for Fragile {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, map: Arc<ConfigMap>, _: &Context<ConfigMap>) -> Result<Action, Self::Error> {
        let name = map.metadata.name.clone().unwrap();
        if name == "deadly" {
            let _kept = Deadly;
            std::future::pending::<()>().await;
        }
        self.0.lock().unwrap().push(name);
        Ok(Action::await_change())
    }
}

fn map(name: &str) -> ConfigMap {
    decode(json!({"metadata": {"name": name}}))
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_dies_is_replaced_and_readiness_tells() {
    let cluster = Cluster::builder().without_controllers().start().await.unwrap();
    let client = cluster.client();
    let fragile = Fragile::default();
    let controller = Controller::new(fragile.clone()).name("fragile").timeout(Duration::from_secs(1));
    let operator = Operator::new("test").server_in_process().controller(controller);
    let probes = operator.probes();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let running = tokio::spawn(operator.run(client.clone(), async {
        let _ = stopped.await;
    }));
    create(&client, &map("deadly")).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let told = probes.dead_worker().expect("the readiness must tell of a dead worker");
    assert!(told.starts_with("a worker of controller fragile died (the object is deadly)"), "{told}");
    assert!(!probes.is_ready());
    create(&client, &map("other")).await;
    // The deadly one has its turns too, each a second longer than the last pause.
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert!(fragile.0.lock().unwrap().contains(&"other".to_owned()), "the others are served");
    let maps: Api<ConfigMap> = api(&client);
    maps.delete("deadly", &DeleteParams::default()).await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    assert_eq!(probes.dead_worker(), None, "who lives is well");
    assert!(probes.is_ready(), "{:?}", probes.checks());
    create(&client, &map("last")).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(fragile.0.lock().unwrap().contains(&"last".to_owned()));
    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    cluster.shutdown().await.unwrap();
}
