//! Leader election between two operators, on a real cluster.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use windlass::{
    LeaderElection, Operator,
    k8s_openapi::api::coordination::v1::Lease,
    kube::{
        Api, Client,
        api::{Patch, PatchParams, PostParams},
    },
};

use crate::{
    gadget::{Gadget, Gadgets},
    real::{Cluster, Running, eventually, observed},
};

fn replica(cluster: &Cluster, client: Client, identity: &str, gadgets: &Gadgets) -> Running {
    let stop = CancellationToken::new();
    let election = LeaderElection {
        duration: Duration::from_secs(3),
        renew_deadline: Duration::from_secs(2),
        retry_period: Duration::from_millis(250),
        ..LeaderElection::new("gadgets", &cluster.namespace, identity)
    };
    let operator = Operator::new("gadget-operator")
        .controller(gadgets.controller().namespace(&cluster.namespace))
        .leader_election(election);
    let task = tokio::spawn(operator.run(client, stop.clone().cancelled_owned()));
    Running { stop, task }
}

async fn holder(leases: &Api<Lease>) -> Option<String> {
    leases.get_opt("gadgets").await.unwrap()?.spec?.holder_identity
}

#[tokio::test]
#[ignore = "needs a real cluster"]
async fn a_standby_follows_at_once_after_a_release_and_in_time_after_a_death() {
    Cluster::with("lead", |cluster| async move {
        let leases = cluster.api::<Lease>();
        let api = cluster.api::<Gadget>();
        let (one, two, three) = (Gadgets::default(), Gadgets::default(), Gadgets::default());
        let first = replica(&cluster, cluster.operator.clone(), "one", &one);
        eventually("the first leads", || async { holder(&leases).await.as_deref() == Some("one") }).await;
        let second = replica(&cluster, cluster.operator.clone(), "two", &two);
        api.create(&PostParams::default(), &Gadget::test("a")).await.unwrap();
        observed(&api, "a").await;
        assert_eq!(two.runs(), 0, "a standby does not work");

        let stopped = Instant::now();
        first.stop().await;
        eventually("the second leads", || async { two.runs() > 0 }).await;
        assert!(stopped.elapsed() < Duration::from_secs(2), "{:?}", stopped.elapsed());

        let third = replica(&cluster, cluster.operator.clone(), "three", &three);
        second.task.abort();
        let died = Instant::now();
        eventually("the third leads", || async { three.runs() > 0 }).await;
        assert!(died.elapsed() < Duration::from_secs(5), "{:?}", died.elapsed());

        let theft = json!({"spec": {"holderIdentity": "thief", "leaseDurationSeconds": 60}});
        leases.patch("gadgets", &PatchParams::default(), &Patch::Merge(&theft)).await.unwrap();
        let error = tokio::time::timeout(Duration::from_secs(3), third.task).await;
        let error = error.expect("the loss must end the run").unwrap().unwrap_err();
        assert!(error.to_string().contains("failed to keep the lease"), "{error}");
    })
    .await;
}
