//! A status that several controllers write, and one that cannot be written.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass::{
    Action, Context, Controller, Operator, Reconciler, conditions,
    kube::{
        CustomResourceExt,
        api::{Patch, PatchParams, PostParams},
    },
    testing::Running,
};

use crate::{
    fixture::{Cluster, eventually, quiet},
    gadget::Gadget,
};

/// Reports one condition, and whether the gadget is large.
#[derive(Clone)]
struct Reporters {
    condition: &'static str,
    runs: Arc<AtomicUsize>,
}

impl Reporters {
    fn controller(condition: &'static str) -> Controller<Self> {
        Controller::new(Self { condition, runs: Arc::default() }).name(condition.to_lowercase())
    }
}

impl Reconciler for Reporters {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let condition = json!({
            "type": self.condition, "status": "True", "reason": "Seen", "message": gadget.spec.image,
            "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": gadget.metadata.generation,
        });
        let conditions = if gadget.spec.replicas > 0 { vec![condition] } else { Vec::new() };
        ctx.apply_status(&json!({"conditions": conditions})).await?;
        Ok(Action::await_change())
    }
}

async fn start(cluster: &Cluster) -> Running {
    let operator =
        ["Alpha", "Beta"].into_iter().fold(Operator::new("report-operator"), |operator, condition| {
            operator.controller(Reporters::controller(condition).namespace(&cluster.namespace))
        });
    Running::start(operator, cluster.operator.clone(), &cluster.requests).await
}

async fn conditions_of(cluster: &Cluster) -> Vec<(String, String)> {
    let gadget = cluster.api::<Gadget>().get("one").await.unwrap();
    let conditions = gadget.status.unwrap_or_default().conditions;
    let mut seen: Vec<_> = conditions.into_iter().map(|one| (one.type_, one.message)).collect();
    seen.sort();
    seen
}

pub async fn two_controllers_of_one_status_lose_nothing(cluster: Cluster) {
    let running = start(&cluster).await;
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let both = |image: &str| ["Alpha", "Beta"].map(|name| (name.to_owned(), image.to_owned())).to_vec();
    eventually("both report", || async { conditions_of(&cluster).await == both("nginx:1.29") }).await;
    for image in ["nginx:2", "nginx:3", "nginx:4"] {
        let change = json!({"spec": {"image": image}});
        gadgets.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
        eventually("both report the change", || async { conditions_of(&cluster).await == both(image) }).await;
    }
    running.assert_second_reconcile_writes_nothing().await;

    // Somebody has the whole list replaced by their own.
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let drift = json!({"status": {"conditions": [theirs]}});
    gadgets.patch_status("one", &PatchParams::default(), &Patch::Merge(&drift)).await.unwrap();
    eventually("all three are there", || async { conditions_of(&cluster).await.len() == 3 }).await;
    running.settled().await;
    running.stop().await;

    cluster.requests.take_writes();
    let running = start(&cluster).await;
    running.settled().await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "a restart writes nothing: {writes:#?}");
    let change = json!({"spec": {"replicas": 0}});
    gadgets.patch("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    eventually("only theirs is left", || async {
        conditions_of(&cluster).await == [("Theirs".to_owned(), String::new())]
    })
    .await;
    running.stop().await;
}

/// Says that it has begun, waits until it may go on, and then writes a status that it derives from what it began with.
#[derive(Clone, Default)]
struct Thinkers {
    begun: Arc<Notify>,
    go_on: Arc<Notify>,
}

impl Reconciler for Thinkers {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let mut status = gadget.status.clone().unwrap_or_default();
        if status.ready_replicas == 0 {
            self.begun.notify_one();
            self.go_on.notified().await;
        }
        // Twice, as for a phase before the work and one after it; what it says meanwhile is taken back.
        status.observed_generation = Some(7);
        ctx.update_status(status.clone()).await?;
        let own = conditions::is_true("Own", "Seen", "");
        conditions::set(&mut status.conditions, own, &*gadget, ctx.now());
        (status.ready_replicas, status.observed_generation) = (1, None);
        ctx.update_status(status).await?;
        Ok(Action::await_change())
    }
}

pub async fn a_status_made_from_an_older_copy_takes_nothing_away(cluster: Cluster) {
    let thinkers = Thinkers::default();
    let controller = Controller::new(thinkers.clone()).namespace(&cluster.namespace);
    let operator = Operator::new("think-operator").controller(controller);
    let running = Running::start(operator, cluster.operator.clone(), &cluster.requests).await;
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    thinkers.begun.notified().await;
    let theirs = json!({"type": "Theirs", "status": "True", "reason": "R", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let change = json!({"status": {"conditions": [theirs]}});
    gadgets.patch_status("one", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    // Until the cache has it too.
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    thinkers.go_on.notify_one();
    let types = || async {
        let seen: Vec<String> = conditions_of(&cluster).await.into_iter().map(|(name, _)| name).collect();
        seen == ["Own", "Theirs"]
    };
    eventually("both conditions are there", types).await;
    running.settled().await;
    assert!(types().await);
    let status = gadgets.get("one").await.unwrap().status.unwrap();
    assert_eq!((status.ready_replicas, status.observed_generation), (1, None));
    let refused = cluster.requests.all().iter().any(|request| request.status == 409);
    assert!(!refused, "no write conflicts");
    running.stop().await;
}

pub async fn a_kind_without_a_status_subresource_is_told(cluster: Cluster) {
    let mut crd = serde_json::to_value(Gadget::crd()).unwrap();
    crd["spec"]["versions"][0].as_object_mut().unwrap().remove("subresources");
    let plain: Value = crd;
    cluster.install(serde_json::from_value(plain).unwrap(), Gadget::crd_name()).await;
    let gadgets = crate::gadget::Gadgets::default();
    let running = cluster.start(&gadgets);
    let api = cluster.api::<Gadget>();
    api.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let events = cluster.api::<windlass::k8s_openapi::api::events::v1::Event>();
    eventually("an event says what is missing", || async {
        let events = events.list(&windlass::kube::api::ListParams::default()).await.unwrap();
        events
            .iter()
            .filter_map(|event| event.note.as_deref())
            .any(|note| note.contains("no status subresource"))
    })
    .await;
    quiet(|| gadgets.runs()).await;
    running.stop().await;
}
