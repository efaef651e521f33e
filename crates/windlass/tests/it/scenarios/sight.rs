//! What a controller declares to watch, and what it can see of its children by that.

use std::time::Duration;

use serde_json::json;
use windlass::{
    Controller, Operator,
    k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret},
    kube::{
        Api,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
};

use crate::{
    fixture::{Cluster, eventually},
    gadget::Gadget,
    scoped::{Declaration, Keepsakes, Outcome, Outposts, Scope, Verb},
};

/// Every way to own, alone and with every other declaration, in both orders.
fn combinations() -> Vec<Vec<Declaration>> {
    let all = |verbs: &'static [Verb]| {
        verbs.iter().flat_map(|verb| Scope::EVERY.map(|scope| Declaration { verb: *verb, scope }))
    };
    let mut combinations = Vec::new();
    for owns in all(&[Verb::Owns, Verb::OwnsMetadata]) {
        combinations.push(vec![owns]);
        for other in all(&[Verb::Owns, Verb::OwnsMetadata, Verb::Watches, Verb::Reads]) {
            combinations.push(vec![owns, other]);
            if !matches!(other.verb, Verb::Owns | Verb::OwnsMetadata) {
                combinations.push(vec![other, owns]);
            }
        }
    }
    combinations
}

/// Waits for something for a time that is short on a real cluster.
async fn soon<T>(mut look: impl AsyncFnMut() -> Option<T>) -> Option<T> {
    for _ in 0..200 {
        if let Some(found) = look().await {
            return Some(found);
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    None
}

/// Whether an `owns` watches the child, and what a run must then see of it.
fn expected(declarations: &[Declaration]) -> (bool, Outcome) {
    let any = |which: &dyn Fn(&Declaration) -> bool| declarations.iter().any(which);
    let seen = any(&|one| matches!(one.verb, Verb::Owns | Verb::OwnsMetadata) && one.scope.has_child());
    let found = any(&|one| one.verb != Verb::OwnsMetadata && one.scope.has_child());
    // Where whole objects are owned, those are the children.
    let owned = if any(&|one| one.verb == Verb::Owns) {
        any(&|one| one.verb == Verb::Owns && one.scope.has_child())
    } else {
        found
    };
    (seen, Outcome::Applied { found, listed: usize::from(found), owned: usize::from(owned) })
}

/// What is wrong with the first runs.
async fn flaw_of_runs(
    cluster: &Cluster,
    keepsakes: &Keepsakes,
    seen: bool,
    expected: Outcome,
) -> Option<String> {
    let gadgets = cluster.api::<Gadget>();
    match soon(async || keepsakes.outcome()).await {
        None => return Some("the gadget is not reconciled".to_owned()),
        Some(Outcome::Failed(text)) if seen => return Some(format!("it failed: {text}")),
        Some(Outcome::Failed(text)) if text.contains("would not notice") => return None,
        Some(Outcome::Failed(text)) => return Some(format!("it failed for another reason: {text}")),
        Some(Outcome::Applied { .. }) if !seen => return Some("nobody says that it is not seen".to_owned()),
        Some(Outcome::Applied { .. }) => {}
    }
    // Of a scope that only the server can judge, a store knows what the watch has delivered.
    let mut touches = 0;
    let matched = soon(async || {
        if keepsakes.outcome() == Some(expected.clone()) {
            return Some(());
        }
        touches += 1;
        let touch = json!({"metadata": {"annotations": {"touched": touches.to_string()}}});
        gadgets.patch("one", &PatchParams::default(), &Patch::Merge(&touch)).await.unwrap();
        None
    });
    matched.await.is_none().then(|| format!("{:?} instead of {expected:?}", keepsakes.outcome()))
}

/// What is wrong with a controller that declares this.
async fn flaw(cluster: &Cluster, declarations: &[Declaration], narrow: bool) -> Option<String> {
    let (gadgets, secrets) = (cluster.api::<Gadget>(), cluster.api::<Secret>());
    let keepsakes = Keepsakes::default();
    let mut controller = keepsakes.controller(declarations);
    if narrow {
        controller = controller.namespaces([cluster.namespace.as_str(), "default"]);
    }
    let running = cluster.run(Operator::new("keepsakes").controller(controller));
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let (seen, outcome) = expected(declarations);
    let mut flaw = flaw_of_runs(cluster, &keepsakes, seen, outcome).await;
    if flaw.is_none() && seen {
        secrets.delete("one", &DeleteParams::default()).await.unwrap();
        let back = soon(async || secrets.get_opt("one").await.unwrap()).await;
        flaw = back.is_none().then(|| "a child that was deleted by hand does not come back".to_owned());
    }
    running.stop().await;
    gadgets.delete("one", &DeleteParams::default()).await.unwrap();
    let _ = secrets.delete("one", &DeleteParams::default()).await;
    soon(async || {
        let left = (gadgets.get_opt("one").await.unwrap(), secrets.get_opt("one").await.unwrap());
        (left.0.is_none() && left.1.is_none()).then_some(())
    })
    .await
    .expect("the gadget and its secret must go");
    flaw
}

pub async fn a_child_comes_back_or_its_author_is_told(cluster: Cluster) {
    // A real cluster takes a while for each: a part of them is tried, another one for every scope.
    let every = if cluster.is_real() { 23 } else { 1 };
    let mut flaws = Vec::new();
    for (at, declarations) in combinations().iter().enumerate().step_by(every) {
        for narrow in [false, true] {
            if let Some(flaw) = flaw(&cluster, declarations, narrow).await {
                flaws.push(format!("{at} {declarations:?}, namespaces: {narrow}: {flaw}"));
            }
        }
    }
    assert!(flaws.is_empty(), "{} flaws: {flaws:#?}", flaws.len());
}

pub async fn a_child_in_a_namespace_that_is_not_watched_is_an_error(cluster: Cluster) {
    let namespaces = Api::<Namespace>::all(cluster.user.clone());
    let owner = format!("{}-owner", cluster.namespace);
    let body = json!({"metadata": {"name": owner, "labels": {"it.windlass.dev/owner": cluster.namespace}}});
    namespaces.create(&PostParams::default(), &serde_json::from_value(body).unwrap()).await.unwrap();
    for (watched, target, fine) in
        [(&cluster.namespace, &cluster.namespace, true), (&owner, &cluster.namespace, false)]
    {
        let outposts = Outposts { target: target.clone(), outcome: std::sync::Arc::default() };
        let controller = Controller::new(outposts.clone())
            .owns::<ConfigMap>()
            .selector(format!("it.windlass.dev/owner={}", cluster.namespace))
            .namespace(watched);
        let running = cluster.run(Operator::new("outposts").controller(controller));
        let outcome = || outposts.outcome.lock().unwrap().clone();
        eventually("a run", || async { outcome().is_some() }).await;
        let maps = cluster.api::<ConfigMap>();
        assert_eq!(outcome().unwrap().is_ok(), fine, "{:?}", outcome());
        assert_eq!(maps.get_opt("outpost").await.unwrap().is_some(), fine, "what is not seen is not made");
        if fine {
            maps.delete("outpost", &DeleteParams::default()).await.unwrap();
            eventually("it is back", || async { maps.get_opt("outpost").await.unwrap().is_some() }).await;
        }
        running.stop().await;
        let _ = maps.delete("outpost", &DeleteParams::default()).await;
    }
    namespaces.delete(&owner, &DeleteParams::default()).await.unwrap();
}
