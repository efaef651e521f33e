//! Finalizers: cleaning up outside the cluster before an object may go.

use std::future::Future;

use super::Context;
use crate::{
    error::{Error, Result},
    object::{AnyObject, uid},
    owner::DETACHED_CHILDREN,
};

/// Where the reconciled object is in its life, as far as a finalizer cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a run that goes on for an object that is being deleted makes again what was cleaned up"]
pub enum Finalization {
    /// The object lives and has the finalizer: go on.
    Active,
    /// The object is being deleted, and nothing is left to do for this run: end it.
    Finished,
}

impl Finalization {
    /// Whether the object is on its way out, so that this run must end.
    pub fn is_finished(self) -> bool {
        self == Self::Finished
    }
}

impl<R: AnyObject> Context<R> {
    /// Guards the reconciled object with a finalizer.
    ///
    /// # Guarantees
    ///
    /// - The finalizer is on the object before this returns [`Finalization::Active`].
    /// - `cleanup` runs when the object is being deleted and has the finalizer, again and again until it
    ///   succeeds; only then is the finalizer removed.
    /// - `cleanup` may run more than once, also after a success: make it idempotent.
    ///
    /// ```no_run
    /// # use windlass::{Context, k8s_openapi::api::core::v1::ConfigMap};
    /// # async fn cleanup() -> Result<(), windlass::Error> { Ok(()) }
    /// # async fn example(ctx: &Context<ConfigMap>) -> Result<(), windlass::Error> {
    /// if ctx.finalize("example.com/cleanup", cleanup).await?.is_finished() {
    ///     return Ok(());
    /// }
    /// # Ok(()) }
    /// ```
    pub async fn finalize<F, Fut, E>(&self, finalizer: &str, cleanup: F) -> Result<Finalization, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<(), E>>,
        E: From<Error>,
    {
        let object = self.newest("finalize")?;
        let meta = object.meta();
        let guarded = meta.finalizers.iter().flatten().any(|name| name == finalizer);
        match (meta.deletion_timestamp.is_some(), guarded) {
            (false, _) => {
                self.add(&object, finalizer).await?;
                Ok(Finalization::Active)
            }
            (true, false) => Ok(Finalization::Finished),
            (true, true) => {
                cleanup().await?;
                self.release(finalizer).await?;
                Ok(Finalization::Finished)
            }
        }
    }

    /// Puts a finalizer on the reconciled object, for a cleanup that takes several runs: [`Context::release`] takes it
    /// off again. A cleanup that one run can do is better given to [`Context::finalize`].
    ///
    /// Of an object that is being deleted nothing is changed: it may have been deleted after this run began, and the
    /// run that its deletion asks for will see it so. End this one.
    pub async fn guard(&self, finalizer: &str) -> Result<Finalization> {
        let object = self.newest("guard")?;
        if object.meta().deletion_timestamp.is_some() {
            return Ok(Finalization::Finished);
        }
        self.add(&object, finalizer).await?;
        Ok(Finalization::Active)
    }

    async fn add(&self, object: &R, finalizer: &str) -> Result<()> {
        if object.meta().finalizers.iter().flatten().any(|name| name == finalizer) {
            return Ok(());
        }
        self.modify_as(self.watches.kind(), object, |object| {
            object.meta_mut().finalizers.get_or_insert_default().push(finalizer.to_owned());
        })
        .await?;
        Ok(())
    }

    /// Removes a finalizer from the reconciled object.
    pub async fn release(&self, finalizer: &str) -> Result<()> {
        let object = self.newest("release")?;
        let released = self
            .modify_as(self.watches.kind(), &*object, |object| {
                object.meta_mut().finalizers.get_or_insert_default().retain(|name| name != finalizer);
            })
            .await;
        match released {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes sure that detached children do not outlive the reconciled object.
    pub(super) async fn guard_detached(&self) -> Result<()> {
        match self.guard(DETACHED_CHILDREN).await? {
            Finalization::Active => Ok(()),
            Finalization::Finished => Err(Error::Deleting { key: self.key.clone() }),
        }
    }

    /// Deletes the detached children of an object that is being deleted, and lets it go when they are gone.
    pub(crate) async fn release_detached(&self) -> Result<()> {
        let object = self.newest("release")?;
        let meta = object.meta();
        let guarded = meta.finalizers.iter().flatten().any(|name| name == DETACHED_CHILDREN);
        if meta.deletion_timestamp.is_none() || !guarded {
            return Ok(());
        }
        let mut left = 0;
        for kind in self.shared.owned.all() {
            left += kind.delete_detached(&self.shared, uid(&*object)).await?;
        }
        // The deletion of the last one is a change of its own, and runs this again.
        if left > 0 { Ok(()) } else { self.release(DETACHED_CHILDREN).await }
    }
}
