//! The promise of `apply`: nothing is sent if and only if nothing would change.

use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use windlass::{
    Kind, Operator,
    kube::{
        Api, ResourceExt,
        api::{Patch, PatchParams, PostParams},
        core::DynamicObject,
    },
    owner,
    testing::Running,
};

use crate::{
    appliers::Appliers,
    fixture::Cluster,
    gadget::Gadget,
    intents::{Base, bases, mutate, shapes},
};

const MANAGER: &str = "apply-operator";

/// A cluster, an operator that applies what it is told, and the object that owns the children.
struct Bench {
    cluster: Cluster,
    appliers: Appliers,
    owner: Gadget,
    running: Running,
    random: StdRng,
    /// How many intents the server took.
    taken: usize,
    /// How many were found to be in place.
    checked: usize,
}

impl Bench {
    async fn new(cluster: Cluster, seed: u64) -> Self {
        cluster.install(shapes(), "shapes.it.windlass.dev").await;
        let gadgets = cluster.api::<Gadget>();
        let owner = gadgets.create(&PostParams::default(), &Gadget::test("owner")).await.unwrap();
        let appliers = Appliers::default();
        let running = start(&cluster, &appliers).await;
        let random = StdRng::seed_from_u64(seed);
        Self { cluster, appliers, owner, running, random, taken: 0, checked: 0 }
    }

    async fn restart(self) -> Self {
        self.running.stop().await;
        self.appliers.clear();
        let running = start(&self.cluster, &self.appliers).await;
        Self { running, ..self }
    }

    /// Has an intent applied, and waits until nothing happens any more. Returns whether the server took it.
    async fn apply(&mut self, kind: &Kind, intent: &Value) -> bool {
        self.appliers.set(kind, intent);
        self.running.handle().requeue_all();
        self.running.settled().await;
        match self.appliers.outcome().expect("the intent must have been tried") {
            Ok(_) => self.taken += 1,
            Err(error) => assert!(!error.contains("conflict"), "{error}"),
        }
        self.appliers.outcome().is_some_and(|outcome| outcome.is_ok())
    }

    /// One more run sends nothing, and neither would a real apply change anything.
    async fn check(&mut self, kind: &Kind, intent: &Value, story: &str) {
        self.appliers.set(kind, intent);
        self.running.handle().requeue_all();
        self.running.settled().await;
        let outcome = self.appliers.outcome();
        assert_eq!(outcome, Some(Ok(0)), "a second apply needs no request\n{story}");
        let api = self.children(kind);
        let name = intent["metadata"]["name"].as_str().unwrap();
        let live = api.get(name).await.unwrap();
        let params = PatchParams { dry_run: true, force: true, ..PatchParams::apply(MANAGER) };
        let real = api.patch(name, &params, &Patch::Apply(self.body(kind, intent, &live))).await.unwrap();
        let (live, real) = (comparable(&live), comparable(&real));
        assert_eq!(live, real, "nothing was sent, but an apply would change something\n{story}");
        self.checked += 1;
    }

    /// What the operator sends for an intent.
    fn body(&self, kind: &Kind, intent: &Value, live: &DynamicObject) -> Value {
        let mut body = intent.clone();
        body["apiVersion"] = kind.api_version().into();
        body["kind"] = kind.kind.clone().into();
        let meta = &mut body["metadata"];
        meta["ownerReferences"] = json!([owner::controller_reference(&self.owner).unwrap()]);
        if let Some((name, mark)) =
            live.annotations().iter().find(|(name, _)| name.starts_with("applied.windlass.dev/"))
        {
            meta["annotations"][name] = mark.as_str().into();
        }
        body
    }

    /// Somebody else changes the object, if the server lets them.
    async fn drift(&mut self, kind: &Kind, name: &str) -> Option<Value> {
        let api = self.children(kind);
        let mut object = serde_json::to_value(api.get(name).await.unwrap()).unwrap();
        let meta = object["metadata"].take();
        mutate(&mut self.random, &mut object, 2);
        object["metadata"] = meta;
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        let drifted: DynamicObject = serde_json::from_value(object.clone()).ok()?;
        let params = PostParams { field_manager: Some("somebody".into()), ..PostParams::default() };
        api.replace(name, &params, &drifted).await.ok()?;
        self.running.settled().await;
        Some(object)
    }

    fn children(&self, kind: &Kind) -> Api<DynamicObject> {
        Api::namespaced_with(self.cluster.user.clone(), &self.cluster.namespace, &kind.api_resource())
    }

    fn mutant(&mut self, base: &Base, name: &str) -> Value {
        let mut intent = base.object.clone();
        let times = self.random.random_range(0..8);
        mutate(&mut self.random, &mut intent, times);
        intent["metadata"]["name"] = name.into();
        intent
    }
}

async fn start(cluster: &Cluster, appliers: &Appliers) -> Running {
    let controller =
        appliers.controller(bases().into_iter().map(|base| base.kind)).namespace(&cluster.namespace);
    let operator = Operator::new(MANAGER).controller(controller);
    Running::start(operator, cluster.operator.clone(), &cluster.requests).await
}

/// An object without what changes by itself.
fn comparable(object: &DynamicObject) -> Value {
    let mut value = serde_json::to_value(object).unwrap();
    let meta = value["metadata"].as_object_mut().unwrap();
    meta.remove("resourceVersion");
    for entry in meta.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
        entry.as_object_mut().unwrap().remove("time");
    }
    value.as_object_mut().unwrap().remove("status");
    value
}

pub async fn nothing_is_sent_only_when_nothing_would_change(cluster: Cluster) {
    // A slice by default; `APPLY_CASES=200 APPLY_SEED=7` for a long walk on another path.
    let setting = |name| std::env::var(name).ok().and_then(|value: String| value.parse().ok());
    let cases = setting("APPLY_CASES").unwrap_or(if cluster.is_real() { 4 } else { 12 });
    walk(cluster, setting("APPLY_SEED").unwrap_or(1), cases as usize).await;
}

/// For each kind: A, somebody else's change, B, a restart. After each nothing is left to do, and that is true.
async fn walk(cluster: Cluster, seed: u64, cases: usize) {
    let mut bench = Bench::new(cluster, seed).await;
    for base in bases() {
        for case in 0..cases {
            let name = format!("case-{case}");
            let (a, b) = (bench.mutant(&base, &name), bench.mutant(&base, &name));
            let story = format!("seed {seed} {} {name}\nA {a}\nB {b}", base.kind);
            if !bench.apply(&base.kind, &a).await {
                continue;
            }
            bench.check(&base.kind, &a, &format!("A alone: {story}")).await;
            if let Some(drift) = bench.drift(&base.kind, &name).await {
                bench.check(&base.kind, &a, &format!("after drift {drift}\n{story}")).await;
            }
            if bench.apply(&base.kind, &b).await {
                bench.check(&base.kind, &b, &format!("A then B: {story}")).await;
                if case % 3 == 0 {
                    bench = bench.restart().await;
                    bench.check(&base.kind, &b, &format!("after a restart: {story}")).await;
                }
            }
        }
    }
    let possible = bases().len() * cases * 2;
    assert!(bench.taken * 2 > possible, "the server took {} of {possible} intents", bench.taken);
    assert!(bench.checked >= bench.taken);
    bench.running.stop().await;
}
