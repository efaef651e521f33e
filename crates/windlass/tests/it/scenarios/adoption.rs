//! Whose children are whose: pruning, former field managers, and objects of others.

use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use windlass::{
    Operator,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        Client, ResourceExt,
        api::{Patch, PatchParams, PostParams},
        client::Body,
    },
    owner,
};

use crate::{
    fixture::{Cluster, eventually, quiet},
    gadget::Gadget,
    keepers::{Data, Keepers},
};

async fn data(cluster: &Cluster, name: &str) -> Option<Data> {
    let map = cluster.api::<ConfigMap>().get_opt(name).await.unwrap()?;
    Some(map.data.unwrap_or_default())
}

fn operator(cluster: &Cluster, name: &str, keepers: &Keepers) -> Operator {
    Operator::new(name).controller(keepers.controller("keeper").namespace(&cluster.namespace))
}

pub async fn pruning_deletes_only_what_was_applied(cluster: Cluster) {
    let one = Keepers { created: Some("created".into()), ..Keepers::applying(&["a", "b"]) };
    let two = Keepers::applying(&["c"]);
    let operator = Operator::new("keep-operator")
        .controller(one.controller("one").namespace(&cluster.namespace))
        .controller(two.controller("two").namespace(&cluster.namespace));
    let running = cluster.run(operator);
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("owner")).await.unwrap();
    eventually("all are there", || async {
        let mut there = true;
        for name in ["a", "b", "c", "created"] {
            there &= data(&cluster, name).await.is_some();
        }
        there
    })
    .await;
    quiet(|| one.runs() + two.runs()).await;

    one.applied.lock().unwrap().remove("b");
    let poke = json!({"metadata": {"annotations": {"poke": "1"}}});
    gadgets.patch("owner", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
    eventually("what is not applied any more is gone", || async { data(&cluster, "b").await.is_none() })
        .await;
    quiet(|| one.runs() + two.runs()).await;
    for name in ["a", "c", "created"] {
        assert!(data(&cluster, name).await.is_some(), "{name} was not applied by the controller that pruned");
    }
    running.stop().await;
}

pub async fn what_a_former_manager_has_set_goes_when_it_is_not_wanted(cluster: Cluster) {
    let gadgets = cluster.api::<Gadget>();
    let owner = gadgets.create(&PostParams::default(), &Gadget::test("owner")).await.unwrap();
    // As a Go operator with CreateOrUpdate leaves it.
    let mut updated = ConfigMap { data: Some([("old".into(), "1".into())].into()), ..ConfigMap::default() };
    updated.metadata.name = Some("updated".into());
    updated.metadata.owner_references = Some(vec![owner::controller_reference(&owner).unwrap()]);
    let by = PostParams { field_manager: Some("manager".into()), ..PostParams::default() };
    cluster.api::<ConfigMap>().create(&by, &updated).await.unwrap();
    // As an older version of this operator leaves it, which wrote under another name.
    let older = Keepers::default();
    older.want("applied", &[("old", "1"), ("kept", "1")]);
    older.want("updated", &[("kept", "1")]);
    let running = cluster.run(operator(&cluster, "old-operator", &older));
    let kept = || async { data(&cluster, "updated").await.is_some_and(|data| data.contains_key("kept")) };
    eventually("the older version has applied", kept).await;
    quiet(|| older.runs()).await;
    assert_eq!(data(&cluster, "updated").await.unwrap().len(), 2, "nobody is known to follow the manager");
    running.stop().await;

    let newer = Keepers::default();
    for name in ["applied", "updated"] {
        newer.want(name, &[("kept", "2")]);
    }
    let successor =
        operator(&cluster, "new-operator", &newer).former_field_managers(["manager", "old-operator"]);
    let running = cluster.run(successor);
    for name in ["applied", "updated"] {
        eventually("only what is wanted is left", || async {
            data(&cluster, name).await == Some([("kept".to_owned(), "2".to_owned())].into())
        })
        .await;
    }
    quiet(|| newer.runs()).await;
    cluster.requests.take_writes();
    let runs = newer.runs();
    let poke = json!({"metadata": {"annotations": {"poke": "1"}}});
    gadgets.patch("owner", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
    eventually("another run", || async { newer.runs() > runs }).await;
    quiet(|| newer.runs()).await;
    let writes = cluster.requests.take_writes();
    assert!(writes.is_empty(), "fields are taken over once: {writes:#?}");
    running.stop().await;
}

/// A client whose first apply of a ConfigMap comes too late: somebody has just created it.
fn racing(cluster: &Cluster) -> Client {
    let (inner, user) = (cluster.operator.clone(), cluster.api::<ConfigMap>());
    let raced = std::sync::Arc::new(AtomicBool::new(false));
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let (inner, user, raced) = (inner.clone(), user.clone(), raced.clone());
        async move {
            let applies =
                request.method() == http::Method::PATCH && request.uri().path().ends_with("/contested");
            if applies && !raced.swap(true, Ordering::SeqCst) {
                let mut foreign =
                    ConfigMap { data: Some([("theirs".into(), "1".into())].into()), ..Default::default() };
                foreign.metadata.name = Some("contested".into());
                user.create(&PostParams::default(), &foreign).await.unwrap();
            }
            inner.send(request).await
        }
    });
    Client::new(service, "default")
}

pub async fn an_object_that_somebody_has_just_made_is_not_adopted(cluster: Cluster) {
    let keepers = Keepers::applying(&["contested"]);
    let racing = cluster.with_operator(racing(&cluster));
    let running = racing.run(operator(&cluster, "keep-operator", &keepers));
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("owner")).await.unwrap();
    eventually("it is told", || async {
        keepers.failures.lock().unwrap().iter().any(|failure| failure.contains("contested"))
    })
    .await;
    quiet(|| keepers.runs()).await;
    let map = cluster.api::<ConfigMap>().get("contested").await.unwrap();
    assert!(map.owner_references().is_empty(), "{map:?}");
    assert!(map.annotations().is_empty(), "{map:?}");
    assert_eq!(map.data.unwrap(), [("theirs".to_owned(), "1".to_owned())].into());
    running.stop().await;
}

pub async fn a_child_that_only_the_cache_misses_is_not_taken_for_foreign(cluster: Cluster) {
    let keepers = Keepers::applying(&["mine"]);
    let running = cluster.run(operator(&cluster, "keep-operator", &keepers));
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("owner")).await.unwrap();
    eventually("it is there", || async { data(&cluster, "mine").await.is_some() }).await;
    let maps = cluster.api::<ConfigMap>();
    let part = json!({"data": {"theirs": "1"}});
    maps.patch("mine", &PatchParams::default(), &Patch::Merge(&part)).await.unwrap();
    running.stop().await;
    let forgetful = forgetful(&cluster);
    keepers.want("mine", &[("key", "other")]);
    let running = forgetful.run(operator(&cluster, "keep-operator", &keepers));
    eventually("it is changed", || async {
        data(&cluster, "mine").await.is_some_and(|data| data.get("key").is_some_and(|value| value == "other"))
    })
    .await;
    quiet(|| keepers.runs()).await;
    assert_eq!(*keepers.failures.lock().unwrap(), Vec::<String>::new());
    assert!(data(&cluster, "mine").await.unwrap().contains_key("theirs"));
    running.stop().await;
}

/// A cluster whose lists of ConfigMaps are empty for the operator, as if they came from a server that lags behind.
fn forgetful(cluster: &Cluster) -> Cluster {
    let inner = cluster.operator.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let inner = inner.clone();
        async move {
            let (parts, body) = request.into_parts();
            let uri = parts.uri.to_string();
            let mut request = http::Request::from_parts(parts, body);
            let whole = uri.contains("/configmaps?") && !uri.contains("metadata.name");
            if whole && !uri.contains("watch=true") {
                let narrowed = format!("{uri}&labelSelector=never%3Dmatches");
                *request.uri_mut() = narrowed.parse().unwrap();
            }
            inner.send(request).await
        }
    });
    cluster.with_operator(Client::new(service, "default"))
}
