//! An SDK for Kubernetes operators: what controller-runtime is to Go, on kube-rs.
//!
//! An operator is three things: a kind, a [`Reconciler`] that brings the world in line with one object of that
//! kind, and an [`Operator`] that runs it. Windlass brings the rest: a shared cache, a queue, server-side apply
//! that knows when nothing needs to be sent, status and conditions, events, finalizers, leader election, metrics,
//! probes, RBAC rules that follow from the code, and the command line.
//!
//! ```no_run
//! use std::{process::ExitCode, sync::Arc};
//!
//! use schemars::JsonSchema;
//! use serde::{Deserialize, Serialize};
//! use windlass::{
//!     Action, Children, Context, Controller, Operator, Reconciler,
//!     k8s_openapi::api::core::v1::ConfigMap,
//!     kube::{CustomResource, ResourceExt},
//! };
//!
//! /// The kind: a greeting that is kept in a ConfigMap.
//! #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
//! #[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
//! #[kube(crates(
//!     kube_core = "windlass::kube::core",
//!     k8s_openapi = "windlass::k8s_openapi",
//!     serde_json = "windlass::serde_json"
//! ))]
//! struct GreetingSpec {
//!     text: String,
//! }
//!
//! #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
//! struct GreetingStatus {
//!     length: usize,
//! }
//!
//! /// Pure: what should exist for a greeting.
//! fn children(greeting: &Greeting) -> Children {
//!     let mut map = ConfigMap::default();
//!     map.metadata.name = Some(greeting.name_any());
//!     map.data = Some([("text".to_owned(), greeting.spec.text.clone())].into());
//!     Children::new().with(map)
//! }
//!
//! struct Greetings;
//!
//! impl Reconciler for Greetings {
//!     type Resource = Greeting;
//!     type Error = windlass::Error;
//!
//!     async fn reconcile(&self, greeting: Arc<Greeting>, ctx: &Context<Greeting>) -> windlass::Result<Action> {
//!         ctx.apply(children(&greeting)).await?;
//!         ctx.update_status(GreetingStatus { length: greeting.spec.text.len() }).await?;
//!         Ok(Action::await_change())
//!     }
//! }
//!
//! fn main() -> ExitCode {
//!     Operator::new("greeting-operator")
//!         .crd::<Greeting>()
//!         .controller(Controller::new(Greetings).owns::<ConfigMap>())
//!         .main()
//! }
//! ```
//!
//! These are all the dependencies that it needs; kube and k8s-openapi come with Windlass, in the versions that fit, and
//! `#[kube(crates(..))]` tells the derive macro where they are:
//!
//! ```toml
//! [dependencies]
//! schemars = "1"
//! serde = { version = "1", features = ["derive"] }
//! windlass = { path = "../windlass/crates/windlass" }
//! ```
//!
//! Try it: `cargo run -- manifests` prints what runs it in a cluster; the [guide](guide#testing) tests it without one.
//!
//! # The flow
//!
//! ```text
//! watch event -> cache -> queue -> reconcile -> apply children -> status, event
//!      ^------------------- only through the API server -------------------'
//! ```
//!
//! A reconciler sees an object and the cache, never an event or a reason. It reads from the cache, builds its
//! children in a pure function, writes them with one [`Context::apply`], and derives its status from what was
//! applied. Run again with nothing changed, it **makes no request at all**.
//!
//! # For those who come from Go
//!
//! | controller-runtime | here |
//! |---|---|
//! | `Reconcile(ctx, req)` | [`Reconciler::reconcile`], with the object; [`Reconciler::deleted`] when it is gone |
//! | `ctrl.Result{RequeueAfter: d}` | [`Action::requeue`] |
//! | `reconcile.TerminalError(err)` | [`ReconcileError::retryable`] is `false` |
//! | `For`, `Owns`, `Watches`, `WithEventFilter` | [`Controller::new`], [`owns`](Controller::owns), [`watches`](Controller::watches), [`filter`](Controller::filter) |
//! | `client.Get`, `client.List`, field indexers | [`Context::get`], [`Context::list`], [`Controller::index`] |
//! | `CreateOrUpdate`, `client.Apply` | [`Context::apply`] |
//! | `SetControllerReference` | done by [`Context::apply`] and [`Context::create_child`] |
//! | `Status().Patch` | [`Context::update_status`], [`Context::patch_status`] |
//! | expectations | not needed: own writes are in the cache before the call returns |
//! | `controllerutil.AddFinalizer` | [`Context::finalize`]; for a cleanup of several runs [`Context::guard`] and [`Context::release`] |
//! | `EventRecorder` | [`Context::event`] |
//! | `meta.SetStatusCondition` | [`conditions::set`] |
//! | `// +kubebuilder:rbac` markers | [`Operator::rbac`], computed |
//! | `Manager` | [`Operator`] |
//! | `mgr.Add(Runnable)`, `AddReadyzCheck`, flags in `main` | [`Operator::task`], [`Operator::check`], [`Operator::main_with`] |
//! | `webhook.CustomValidator`, `CustomDefaulter`, `admission.Handler` | [`webhook::Validator`], [`webhook::Defaulter`], [`webhook::Webhook::raw`] |
//! | `conversion.Hub`, `Convertible` | [`webhook::Conversion`], [`webhook::Spoke`] |
//! | `cache.Options{DefaultNamespaces: ..}` | [`Operator::namespaces`], `--watch-namespaces` |
//! | `client.NewDryRunClient` | [`Operator::dry_run`], `--dry-run` |
//! | `EnableWarmup` | always: caches and queues are filled before the lease is waited for |
//!
//! The [`guide`] says more about each.
//!
//! # Features
//!
//! `otlp`, off by default, sends the spans of reconciles to an OpenTelemetry collector; see the [`guide`].
//!
//! # Many in one process
//!
//! Nothing here is global: [`Operator::run`] takes a client and a shutdown, and any number of operators run in
//! one process, with or without sockets. Delays follow tokio's clock and timestamps a [`Clock`], so that a test
//! on the paused clock runs in no time and the same way every time.

#![deny(missing_docs)]

pub mod clock;
#[cfg(debug_assertions)]
#[doc(hidden)]
pub mod common;
pub mod conditions;
pub mod events;
#[doc = include_str!("docs/guide.md")]
pub mod guide {}
pub mod leader;
pub mod metrics;
pub mod owner;
pub mod pods;
pub mod queue;
pub mod rbac;
pub mod runs;
pub mod testing;
pub mod webhook;

mod apply;
mod cache;
mod changes;
mod client;
mod context;
mod controller;
mod error;
mod handle;
mod in_process;
mod isolation;
mod merge;
mod object;
mod operator;
mod platform;
mod predicate;
mod reconciler;
mod request;
mod tls;
mod watches;
mod wire;

pub use apply::{Applied, Attempt, Children};
pub use cache::{Change, Reader};
pub use clock::Clock;
pub use context::{Context, Dynamic, Finalization};
pub use controller::{Controller, PAUSED};
pub use error::{AnyError, AsError, Error, Problem, ReconcileError, Result};
pub use events::Event;
pub use handle::{Failure, Handle, Run};
pub use in_process::in_process;
pub use leader::LeaderElection;
pub use metrics::Metrics;
pub use object::{AnyObject, Kind, Object, ObjectKey};
pub use operator::{
    CertificateSource, Check, ConfigChanges, ConfigError, ConfigFile, ConfigTree, ExplainedRule,
    InstallError, MetricsEndpoint, NotSynced, Operator, Placement, Probes, Reason, RunError, Task,
    TaskContext,
};
pub use predicate::Predicate;
pub use reconciler::{Action, Reconciler};
pub use watches::{Watch, Watches};
pub use wire::from_value;

pub use windlass_apimachinery::{self as apimachinery, Quantity};

pub use {clap, jiff, k8s_openapi, kube, schemars, serde, serde_json};
