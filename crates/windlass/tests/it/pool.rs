//! An imperative operator to test with: a Pool creates and deletes ConfigMaps with generated names until it has
//! as many as it wants, as a ReplicaSet does with Pods, and gives up its finalizer only after a cleanup.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Context, Controller, ReconcileError, Reconciler,
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

/// Why a Pool is not as it should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Request(#[from] windlass::Error),
    #[error("not cleaned up yet")]
    Unclean,
}

impl ReconcileError for Error {
    fn category(&self) -> &'static str {
        match self {
            Self::Request(source) => source.category(),
            Self::Unclean => "Unclean",
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Request(source) => source.retryable(),
            Self::Unclean => true,
        }
    }
}

impl Reconciler for Pools {
    type Resource = Pool;
    type Error = Error;

    async fn reconcile(&self, pool: Arc<Pool>, ctx: &Context<Pool>) -> Result<Action, Error> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let cleanup = async || self.clean.load(Ordering::SeqCst).then_some(()).ok_or(Error::Unclean);
        if ctx.finalize(FINALIZER, cleanup).await?.is_finished() {
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
