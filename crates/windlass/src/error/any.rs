//! An error that takes every other, for reconcilers that need no error type of their own.

use std::{error::Error as StdError, fmt};

use super::{AsError, Error, FAILED, ReconcileError, category_of};

/// The error of a reconciler that takes anything: `?` turns every error into one, boxed ones and
/// `anyhow`'s too.
///
/// What comes from a [`Context`](crate::Context) or from kube keeps its category and whether it is retried. Everything
/// else has the category `ReconcileFailed` and is retried, unless [`with_category`](Self::with_category) or
/// [`terminal`](Self::terminal) say otherwise.
///
/// ```
/// use std::sync::Arc;
/// use windlass::{Action, AnyError, Context, Reconciler, k8s_openapi::api::core::v1::ConfigMap};
///
/// struct Ports;
///
/// impl Reconciler for Ports {
///     type Resource = ConfigMap;
///     type Error = AnyError;
///
///     async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> Result<Action, AnyError> {
///         let text = map.data.as_ref().and_then(|data| data.get("port")).ok_or("the map has no port")?;
///         // Only another text helps.
///         let port: u16 = text.parse().map_err(|error| AnyError::terminal(error).with_category("BadPort"))?;
///         ctx.event(windlass::Event::normal("Seen", format!("port {port}")));
///         Ok(Action::await_change())
///     }
/// }
/// ```
pub struct AnyError {
    source: Box<dyn StdError + Send + Sync>,
    category: Option<&'static str>,
    retryable: Option<bool>,
}

impl AnyError {
    /// An error that trying again does not help against: the next change of the object is waited for.
    pub fn terminal(error: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Self { source: error.into(), category: None, retryable: Some(false) }
    }

    /// The same with this category: a constant in PascalCase, the reason of the Warning event.
    pub fn with_category(self, category: &'static str) -> Self {
        Self { category: Some(category), ..self }
    }

    /// The same, with what was being done before it.
    pub fn context(self, doing: impl Into<String>) -> Self {
        let (category, retryable) = (self.category(), self.retryable());
        let source = Box::new(Doing { doing: doing.into(), source: self.source });
        Self { source, category: Some(category), retryable: Some(retryable) }
    }

    /// The category and whether to retry, if the error says so itself.
    fn own(&self) -> Option<(&'static str, bool)> {
        let own = self.source.downcast_ref::<Error>().map(|own| (own.category(), own.retryable()));
        own.or_else(|| self.source.downcast_ref::<kube::Error>().map(|kube| (category_of(kube), true)))
    }
}

/// An error and what was being done.
#[derive(Debug, thiserror::Error)]
#[error("{doing}")]
struct Doing {
    doing: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl<E: Into<Box<dyn StdError + Send + Sync>>> From<E> for AnyError {
    fn from(error: E) -> Self {
        Self { source: error.into(), category: None, retryable: None }
    }
}

impl AsError for AnyError {
    fn as_error(&self) -> &(dyn StdError + 'static) {
        &*self.source
    }
}

impl ReconcileError for AnyError {
    fn category(&self) -> &'static str {
        self.category.or(self.own().map(|(category, _)| category)).unwrap_or(FAILED)
    }

    fn retryable(&self) -> bool {
        self.retryable.or(self.own().map(|(_, retryable)| retryable)).unwrap_or(true)
    }
}

impl fmt::Display for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl fmt::Debug for AnyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyError")
            .field("source", &self.source)
            .field("category", &self.category())
            .field("retryable", &self.retryable())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectKey;

    fn everything(which: u32) -> Result<(), AnyError> {
        match which {
            0 => Err("text")?,
            1 => Err(String::from("text"))?,
            2 => Err(Box::<dyn StdError + Send + Sync>::from("boxed"))?,
            3 => drop("x".parse::<u8>()?),
            4 => Err(Error::NoObject { operation: "x", key: ObjectKey::new(None, "a") })?,
            5 => Err(kube::Error::TlsRequired)?,
            _ => return Ok(()),
        }
        Ok(())
    }

    #[test]
    fn every_error_becomes_one_and_those_of_the_sdk_keep_what_they_know() {
        let seen: Vec<(&str, bool)> = (0..6)
            .map(|which| everything(which).unwrap_err())
            .map(|e| (e.category(), e.retryable()))
            .collect();
        let plain = (FAILED, true);
        assert_eq!(seen, [plain, plain, plain, plain, ("ObjectGone", false), ("RequestFailed", true)]);
        assert!(everything(9).is_ok());
        let told = AnyError::terminal("bad").with_category("Bad").context("failed to read the port");
        assert_eq!((told.category(), told.retryable()), ("Bad", false));
        assert_eq!(crate::error::chain(told.as_error()), "failed to read the port: bad");
    }
}
