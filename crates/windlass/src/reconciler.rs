//! What a user writes: one reconciler per kind.

use std::{future::Future, sync::Arc, time::Duration};

use crate::{
    context::Context,
    error::ReconcileError,
    object::{AnyObject, ObjectKey},
};

/// Brings the world in line with one object of a kind.
///
/// ```no_run
/// # use std::sync::Arc;
/// # use windlass::{Action, Context, Reconciler, k8s_openapi::api::core::v1::ConfigMap};
/// struct Mirror;
///
/// impl Reconciler for Mirror {
///     type Resource = ConfigMap;
///     type Error = windlass::Error;
///
///     async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> Result<Action, Self::Error> {
///         tracing::info!(entries = map.data.as_ref().map_or(0, |data| data.len()), "seen");
///         Ok(Action::await_change())
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a reconciler",
    note = "write `impl Reconciler for {Self}` with `type Resource`, `type Error` and `async fn reconcile`"
)]
pub trait Reconciler: Send + Sync + 'static {
    /// The kind that is reconciled; [`DynamicObject`](kube::core::DynamicObject) for a kind that is known only
    /// when the program runs.
    type Resource: AnyObject;
    /// What can go wrong.
    type Error: ReconcileError;

    /// Called with the newest known copy of an object whenever it, or something it depends on, may have changed.
    ///
    /// The copy is never older than the controller's own last write. An object that is being deleted and still
    /// has finalizers comes here too. A call must not depend on why it was made, and must not hold state that a
    /// restart would lose.
    fn reconcile(
        &self,
        object: Arc<Self::Resource>,
        ctx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<Action, Self::Error>> + Send;

    /// Called when the object of a key is gone.
    ///
    /// A deletion that happens while the process is down is not seen: what must be cleaned up needs a
    /// [finalizer](crate::Context::finalize). Use this for state in memory.
    fn deleted(
        &self,
        key: &ObjectKey,
        ctx: &Context<Self::Resource>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send {
        let _ = (key, ctx);
        async { Ok(()) }
    }
}

/// What happens next to a key that was reconciled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    requeue_after: Option<Duration>,
}

impl Action {
    /// Wait for the next event.
    pub const fn await_change() -> Self {
        Self { requeue_after: None }
    }

    /// Reconcile again after `delay`, or at the next event if that comes first.
    pub const fn requeue(delay: Duration) -> Self {
        Self { requeue_after: Some(delay) }
    }

    /// The delay, if one was asked for.
    pub const fn requeue_after(&self) -> Option<Duration> {
        self.requeue_after
    }
}
