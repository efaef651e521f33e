//! An operator under test on a cluster of its own: what `envtest` is to Go, with nothing to download.
//!
//! An [`Environment`] starts a [`Cluster`](crate::Cluster) and runs an operator on it as its manifests would: with its
//! CRDs, as its service account, with the permissions that follow from its code and no others, with its webhooks, which
//! the API server really calls. It shares the cluster's clock, records the operator's requests, and fails the test with
//! every run of a reconciler that failed, unless the test said that it expects it.
//!
//! ```
//! use std::sync::Arc;
//!
//! use windlass::{
//!     Action, Children, Context, Controller, Operator, Reconciler,
//!     k8s_openapi::api::core::v1::{ConfigMap, Secret},
//!     kube::ResourceExt,
//! };
//! use windlass_cluster::testing::Environment;
//!
//! /// Keeps an empty Secret beside every ConfigMap.
//! struct Secrets;
//!
//! impl Reconciler for Secrets {
//!     type Resource = ConfigMap;
//!     type Error = windlass::Error;
//!
//!     async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
//!         let mut secret = Secret::default();
//!         secret.metadata.name = Some(map.name_any());
//!         ctx.apply(Children::new().with(secret)).await?;
//!         Ok(Action::await_change())
//!     }
//! }
//!
//! fn operator() -> Operator {
//!     Operator::new("secret-operator")
//!         .controller(Controller::new(Secrets).owns::<Secret>())
//!         .namespaces(["default"])
//! }
//!
//! # fn main() {
//! # let paused = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
//! # paused.block_on(async {
//! let env = Environment::start(operator).await;
//! env.apply_yaml("{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}").await;
//! env.settled().await;
//! assert!(env.api::<Secret>().get_opt("one").await.unwrap().is_some());
//! env.assert_second_reconcile_writes_nothing().await;
//! env.stop().await;
//! # });
//! # }
//! ```
//!
//! [`crash_at_every_write`] kills the operator at every write in turn, and checks that it always ends alike.
//!
//! The guide of `windlass` has a chapter about it.

mod apply;
mod crash;
mod environment;
mod standing;

pub use apply::{apply, delete, documents};
pub use crash::{CrashTest, User, crash_at_every_write};
pub use environment::Environment;
pub use standing::{Normalise, standing};
