//! Children without an owner reference: in other namespaces and without any.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use serde_json::json;
use windlass::{
    Action, Children, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::{
        core::v1::{ConfigMap, Namespace},
        rbac::v1::ClusterRoleBinding,
    },
    kube::{
        Api, ResourceExt,
        api::{DeleteParams, Patch, PatchParams, PostParams},
    },
    owner,
};

use crate::{
    fixture::{Cluster, eventually, quiet},
    gadget::Gadget,
};

/// Gives every gadget a ConfigMap in another namespace and a ClusterRoleBinding.
#[derive(Clone)]
struct Granters {
    elsewhere: String,
    binds: Arc<AtomicBool>,
    runs: Arc<AtomicUsize>,
}

impl Granters {
    fn name(&self) -> String {
        format!("{}-granted", self.elsewhere)
    }
}

impl Reconciler for Granters {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if gadget.metadata.deletion_timestamp.is_some() {
            return Ok(Action::await_change());
        }
        let map = json!({"metadata": {"name": "granted", "namespace": self.elsewhere}, "data": {"a": "b"}});
        let map: ConfigMap = serde_json::from_value(map).unwrap();
        let mut children = Children::new().with_detached(map);
        if self.binds.load(Ordering::SeqCst) {
            let binding = json!({"metadata": {"name": self.name()},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}});
            children = children.with_detached(serde_json::from_value::<ClusterRoleBinding>(binding).unwrap());
        }
        ctx.apply(children).await?;
        Ok(Action::await_change())
    }
}

pub async fn a_child_without_a_reference_is_repaired_pruned_and_deleted_with_its_owner(cluster: Cluster) {
    let elsewhere = format!("{}-elsewhere", cluster.namespace);
    let namespaces = Api::<Namespace>::all(cluster.user.clone());
    let body = serde_json::from_value(json!({"metadata": {"name": elsewhere}})).unwrap();
    namespaces.create(&PostParams::default(), &body).await.unwrap();
    let granters =
        Granters { elsewhere: elsewhere.clone(), binds: Arc::new(true.into()), runs: Arc::default() };
    let controller = Controller::new(granters.clone()).owns::<ConfigMap>().owns::<ClusterRoleBinding>();
    let running = cluster.run(Operator::new("grant-operator").controller(controller));
    let gadgets = cluster.api::<Gadget>();
    gadgets.create(&PostParams::default(), &Gadget::test("one")).await.unwrap();
    let maps = Api::<ConfigMap>::namespaced(cluster.user.clone(), &elsewhere);
    let bindings = Api::<ClusterRoleBinding>::all(cluster.user.clone());
    let bound = async || bindings.get_opt(&granters.name()).await.unwrap().is_some();
    eventually("both are there", || async {
        maps.get_opt("granted").await.unwrap().is_some() && bound().await
    })
    .await;
    let map = maps.get("granted").await.unwrap();
    assert!(map.owner_references().is_empty(), "a collector would delete what has an owner elsewhere");
    let owner = gadgets.get("one").await.unwrap();
    assert_eq!(map.labels().get(owner::OWNER_UID), owner.uid().as_ref());
    assert!(owner.finalizers().iter().any(|name| name == owner::DETACHED_CHILDREN));

    maps.delete("granted", &DeleteParams::default()).await.unwrap();
    eventually("it comes back", || async { maps.get_opt("granted").await.unwrap().is_some() }).await;
    let drift = json!({"data": {"a": "z"}});
    maps.patch("granted", &PatchParams::default(), &Patch::Merge(&drift)).await.unwrap();
    eventually("its data is repaired", || async {
        maps.get("granted").await.unwrap().data.is_some_and(|data| data["a"] == "b")
    })
    .await;

    granters.binds.store(false, Ordering::SeqCst);
    let poke = json!({"metadata": {"annotations": {"poke": "1"}}});
    gadgets.patch("one", &PatchParams::default(), &Patch::Merge(&poke)).await.unwrap();
    eventually("what is not wanted any more is gone", || async { !bound().await }).await;
    quiet(|| granters.runs.load(Ordering::SeqCst)).await;

    // A label alone makes nobody's object a child.
    let mut stray = ConfigMap::default();
    stray.metadata.name = Some("stray".into());
    stray.metadata.labels = Some([(owner::OWNER_UID.to_owned(), owner.uid().unwrap())].into());
    maps.create(&PostParams::default(), &stray).await.unwrap();
    gadgets.delete("one", &DeleteParams::default()).await.unwrap();
    eventually("the owner is gone", || async { gadgets.get_opt("one").await.unwrap().is_none() }).await;
    assert!(maps.get_opt("granted").await.unwrap().is_none(), "the child went before its owner");
    assert!(maps.get_opt("stray").await.unwrap().is_some());
    running.stop().await;
    namespaces.delete(&elsewhere, &DeleteParams::default()).await.unwrap();
}
