//! The failure of a request that was not answered in time.

use std::time::Duration;

/// A request that was not answered in time.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the API server has not answered in {limit:?}")]
pub(crate) struct NoAnswer {
    pub(crate) limit: Duration,
}

impl NoAnswer {
    /// Whether this is why a request failed.
    pub(crate) fn is_cause_of(error: &kube::Error) -> bool {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = cause {
            if error.is::<Self>() {
                return true;
            }
            cause = match error.downcast_ref::<kube::Error>() {
                Some(kube::Error::Service(inner)) => Some(&**inner),
                _ => error.source(),
            };
        }
        false
    }
}
