//! Webhooks: what the API server asks an operator before it stores an object, and when it serves another version.
//!
//! Enters: an object, or an `AdmissionReview` or `ConversionReview`. Leaves: a verdict, a changed object, a
//! converted object, or the review that says so. A [`Validator`] judges, a [`Defaulter`] fills in, a
//! [`Conversion`] translates between the versions of a kind through one of them, the hub. All of it is plain
//! code that a test calls without a server. The [`Request`] that each is given leads to the client and, for kinds
//! that the webhook [reads](Webhook::reads), to the cache. Kinds that are known only when the program runs have
//! [`Webhook::validating_dynamic`] and [`Webhook::defaulting_dynamic`], and everything else [`Webhook::raw`]:
//!
//! ```
//! # use windlass::k8s_openapi::api::core::v1::ConfigMap;
//! use windlass::webhook::{Request, Validator, Verdict};
//!
//! struct NotTooMany;
//!
//! impl Validator for NotTooMany {
//!     type Resource = ConfigMap;
//!
//!     async fn validate_create(&self, map: &ConfigMap, _: &Request) -> Verdict {
//!         let mut verdict = Verdict::allow();
//!         let entries = map.data.as_ref().map_or(0, |data| data.len());
//!         if entries > 100 {
//!             verdict.invalid("data", entries, "must have at most 100 entries");
//!         }
//!         verdict
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let verdict = NotTooMany.validate_create(&ConfigMap::default(), &Request::create()).await;
//! assert!(verdict.is_allowed());
//! # });
//! ```

mod admission;
pub(crate) mod certificates;
mod configuration;
mod conversion;
mod hook;
mod inject;
mod keeper;
mod patch;
mod request;
mod router;
mod server;
mod tools;
mod verdict;

#[cfg(test)]
mod tests;

pub use admission::{Defaulter, Validator};
pub use configuration::Reach;
pub use conversion::{Conversion, ConversionError, Spoke, keep, kept};
pub use hook::{FailurePolicy, Mode, Webhook};
pub use kube::core::{
    admission::{AdmissionReview, Operation},
    conversion::ConversionReview,
};
pub use request::Request;
pub use server::{Certificates, ServeError, Server};
pub use verdict::{Cause, Path, Verdict};

pub(crate) use {
    router::Webhooks,
    server::{Serving, Surroundings},
};
