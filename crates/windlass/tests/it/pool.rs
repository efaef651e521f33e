//! An imperative operator to test with: a Pool creates and deletes ConfigMaps with generated names until it has
//! as many as it wants, as a ReplicaSet does with Pods, and gives up its finalizer only after a cleanup.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Context, Controller, Reconciler,
    k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta},
    kube::CustomResource,
};

pub const FINALIZER: &str = "it.windlass.dev/pool";

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "it.windlass.dev", version = "v1", kind = "Pool", namespaced)]
pub struct PoolSpec {
    pub size: usize,
}

#[derive(Clone, Default)]
pub struct Pools {
    pub runs: Arc<AtomicUsize>,
    pub created: Arc<AtomicUsize>,
    /// Whether the cleanup succeeds.
    pub clean: Arc<AtomicBool>,
}

impl Pools {
    pub fn controller(&self) -> Controller<Self> {
        Controller::new(self.clone()).owns::<ConfigMap>()
    }
}

impl Reconciler for Pools {
    type Resource = Pool;
    type Error = windlass::Error;

    async fn reconcile(&self, pool: Arc<Pool>, ctx: &Context<Pool>) -> windlass::Result<Action> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        if pool.metadata.deletion_timestamp.is_some() && !self.clean.load(Ordering::SeqCst) {
            return Ok(Action::requeue(Duration::from_millis(50)));
        }
        if ctx.finalize(FINALIZER, async || Ok::<_, windlass::Error>(())).await?.is_finished() {
            return Ok(Action::await_change());
        }
        let members = ctx.owned::<ConfigMap>()?;
        for _ in members.len()..pool.spec.size {
            let metadata = ObjectMeta { generate_name: Some("member-".into()), ..ObjectMeta::default() };
            ctx.create_child(ConfigMap { metadata, ..ConfigMap::default() }).await?;
            self.created.fetch_add(1, Ordering::SeqCst);
        }
        for member in members.iter().skip(pool.spec.size) {
            ctx.delete(&**member).await?;
        }
        Ok(Action::await_change())
    }
}
