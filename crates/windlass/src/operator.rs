//! The operator: controllers that share caches, started in order, stopped together, every task joined.

use std::{ffi::OsString, fmt, future::Future, process::ExitCode, sync::Arc, time::Duration};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{Client, Config, CustomResourceExt, client::ClientBuilder};

use crate::{
    cache::Transforms,
    client::{Timeouts, Warnings},
    clock::{Clock, SystemClock},
    controller::{Controller, Runnable},
    handle::Handle,
    leader::LeaderElection,
    metrics::Metrics,
    object::AnyObject,
    rbac::{Access, Call, Declared, Permit},
    reconciler::Reconciler,
    tls::Connections,
    webhook::{self, Conversion, Webhooks},
};

mod cli;
mod config;
mod debugging;
mod guard;
mod install;
mod logging;
mod manifests;
mod permissions;
mod probes;
mod run;
mod server;
mod settings;
mod task;
mod tasks;
#[cfg(feature = "otlp")]
mod traces;
mod webhooks;

pub use config::{ConfigChanges, ConfigError, ConfigFile, ConfigTree};
pub use install::InstallError;
pub use manifests::{CertificateSource, MetricsEndpoint, Placement};
pub use permissions::{ExplainedRule, Reason};
pub use probes::{Check, Probes};
pub use run::{NotSynced, RunError};
pub use task::{Task, TaskContext};

/// A set of controllers that run as one.
pub struct Operator {
    name: String,
    controllers: Vec<Box<dyn Runnable>>,
    namespaces: Vec<String>,
    crds: Vec<CustomResourceDefinition>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    field_manager: Option<String>,
    former_field_managers: Vec<String>,
    drain: Duration,
    /// How long webhooks are answered after the end was asked for.
    shutdown_delay: Duration,
    /// How long the first lists may take; what is usual for a library or a program unless set.
    sync_timeout: Option<Duration>,
    timeouts: Timeouts,
    warnings: Warnings,
    leader: Option<LeaderElection>,
    probes: Probes,
    handle: Handle,
    webhooks: Webhooks,
    webhook_server: Option<webhook::Server>,
    /// A program of its own: it waits for an API server that is away, and gives up at once when it is refused.
    alone: bool,
    setups: Vec<task::Setup>,
    permits: Vec<(Permit, Call)>,
    /// Which calls have added webhooks.
    hook_calls: Vec<Call>,
    tasks: Vec<Task>,
    /// Where connections to the webhooks come from, if not from a socket.
    webhook_connections: Option<Connections>,
    dry_run: bool,
    debugging: bool,
    in_process: bool,
    transforms: Transforms,
    /// What the Deployment passes to the program beside what it passes to every operator.
    arguments: Vec<String>,
    /// The oldest minor version of Kubernetes that it works with.
    kubernetes: Option<u32>,
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let controllers: Vec<&str> = self.controllers.iter().map(|c| c.name()).collect();
        f.debug_struct("Operator")
            .field("name", &self.name)
            .field("controllers", &controllers)
            .finish_non_exhaustive()
    }
}

impl Operator {
    /// An operator without controllers. The name is its field manager, and names what is installed for it.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            controllers: Vec::new(),
            namespaces: Vec::new(),
            crds: Vec::new(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::default(),
            field_manager: None,
            former_field_managers: Vec::new(),
            drain: Duration::from_secs(30),
            shutdown_delay: Duration::ZERO,
            sync_timeout: None,
            timeouts: Timeouts::default(),
            warnings: Warnings::default(),
            leader: None,
            probes: Probes::default(),
            handle: Handle::default(),
            webhooks: Webhooks::default(),
            webhook_server: None,
            alone: false,
            setups: Vec::new(),
            permits: Vec::new(),
            hook_calls: Vec::new(),
            tasks: Vec::new(),
            webhook_connections: None,
            dry_run: false,
            debugging: false,
            in_process: false,
            transforms: Transforms::default(),
            arguments: Vec::new(),
            kubernetes: None,
        }
    }

    /// The operator's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds a controller.
    pub fn controller<C: Reconciler>(mut self, controller: Controller<C>) -> Self {
        self.controllers.push(Box::new(controller));
        self
    }

    /// Has the program started with this argument in a cluster: one of [`main_with`](Self::main_with) that decides what
    /// the operator is.
    pub fn argument(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Leaves a kind alone, by the name of its CRD: its controllers do not run, and it is not installed. Returns whether
    /// the operator has it.
    pub(crate) fn disable_kind(&mut self, crd: &str) -> bool {
        let of = |declared: &Declared| match &declared.access {
            Access::Reconciles(kind) => format!("{}.{}", kind.plural, kind.group) == crd,
            _ => false,
        };
        let before = self.crds.len() + self.controllers.len();
        self.controllers.retain(|controller| !controller.access().0.iter().any(of));
        self.crds.retain(|known| known.metadata.name.as_deref() != Some(crd));
        self.crds.len() + self.controllers.len() < before
    }

    /// Has the API server ask nothing about a kind that is not installed. A run serves the webhooks all the same: the kind
    /// may still be there, with objects that must be converted.
    pub(crate) fn drop_webhooks(&mut self, crd: &str) {
        self.webhooks.admission.retain(|webhook| !webhook.is_about(crd));
        let of =
            |conversion: &Conversion| format!("{}.{}", conversion.kind().plural, conversion.kind().group);
        self.webhooks.conversions.retain(|conversion| of(conversion) != crd);
    }

    /// Adds a custom kind to what is installed for the operator. Several versions of one kind become one
    /// definition; the first is stored, or the hub of its [conversion](Self::converts).
    pub fn crd<K: CustomResourceExt>(mut self) -> Self {
        let mut crd = K::crd();
        match self.crds.iter_mut().find(|known| known.metadata.name == crd.metadata.name) {
            None => self.crds.push(crd),
            Some(known) => {
                crd.spec.versions.iter_mut().for_each(|version| version.storage = false);
                known.spec.versions.append(&mut crd.spec.versions);
            }
        }
        self.store_hubs();
        self
    }

    /// Where timestamps come from: the system clock unless set.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// The field manager of every write: the operator's name unless set.
    pub fn field_manager(mut self, manager: impl Into<String>) -> Self {
        self.field_manager = Some(manager.into());
        self
    }

    /// Field managers whose fields on children become this operator's: the name under which an older version wrote, a
    /// Go operator that this one replaces (`manager`), or `kubectl-client-side-apply`.
    ///
    /// Without this, what they have set and the children no longer want stays for ever: a server-side apply takes
    /// away only what its own manager has set. It costs one request for each child, once.
    pub fn former_field_managers<M: Into<String>>(mut self, managers: impl IntoIterator<Item = M>) -> Self {
        self.former_field_managers.extend(managers.into_iter().map(Into::into));
        self
    }

    /// The oldest Kubernetes that this operator works with, by its minor version: 30 for 1.30.
    ///
    /// On an older one it does not start, and `install` does not install it: each says so. Without this call nothing is
    /// asked.
    pub fn kubernetes_at_least(mut self, minor: u32) -> Self {
        self.kubernetes = Some(minor);
        self
    }

    /// How long running reconciles may take to finish after a shutdown was asked for: 30 s unless set.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// How long the first lists may take: two minutes unless set, and without a limit in [`main`](Self::main),
    /// which waits for an API server that is away.
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = Some(limit);
        self
    }

    /// How long a request may take: 30 s unless set, lists two minutes or this, whatever is longer. Watches end a
    /// minute after the time that they asked for.
    ///
    /// A request without an answer is an [error](crate::Error::is_timeout), and a reconcile that fails with it is
    /// retried. This holds for every request of the operator, also for those that a reconciler makes with
    /// [`Context::client`](crate::Context::client).
    pub fn request_timeout(mut self, limit: Duration) -> Self {
        self.timeouts.request = limit;
        self
    }

    /// How long a request is made again that an overloaded API server turned away (429, 502, 503, 504): for ten
    /// seconds after the first try unless set, and never with zero.
    ///
    /// Only what may happen twice is repeated: reads, server-side apply, and writes and deletions that name a
    /// version or a uid. `Retry-After` is honoured as far as it fits; what does not fit fails, so that the worker
    /// is free, and is retried as a reconcile. A [`Client`] that was made by kube repeats everything by itself
    /// unless its `Config` says `default_retry: false`, which is how [`connect`](Self::connect) makes it.
    pub fn request_retry_limit(mut self, limit: Duration) -> Self {
        self.timeouts.retries = limit;
        self
    }

    /// Whether what the API server warns of is logged: a deprecated version, a field that the schema does not have, a
    /// policy. It is unless set, each text once.
    pub fn api_warnings(mut self, logged: bool) -> Self {
        self.warnings = if logged { Warnings::default() } else { Warnings::silent() };
        self
    }

    /// A client for [`run`](Self::run) whose requests are counted in the operator's metrics, and which leaves
    /// repetitions to the operator.
    ///
    /// # Errors
    ///
    /// When the configuration does not lead to a client: a certificate that cannot be read, for instance.
    pub fn connect(&self, mut config: Config) -> Result<Client, kube::Error> {
        let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
        self.metrics.set_host(&host);
        config.default_retry = false;
        let builder = ClientBuilder::try_from(config)?;
        Ok(builder.with_layer(&self.metrics.client_layer().host(host)).build())
    }

    /// The client as everything in the operator uses it.
    fn patient(&self, client: Client) -> Client {
        let timeouts = Timeouts { endless: self.debugging, ..self.timeouts };
        timeouts.around(client, self.metrics.clone(), self.warnings.clone())
    }

    /// Logs what the controllers would write, and writes nothing: no object, no status, no event and no lease.
    ///
    /// A reconciler sees each write as if it had succeeded, and sees it undone on its next run.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
        self
    }

    /// Nothing runs out of time, so that a debugger can hold the process as long as somebody looks: no reconcile, no
    /// request, no silent watch, no first list and no shutdown; a lease lasts an hour. Not for production.
    pub fn debugging(mut self, debugging: bool) -> Self {
        self.debugging = debugging;
        self
    }

    /// The API server is in this process: its watches last a month and bring no bookmarks, since one that is silent has
    /// nothing to tell. An operator with nothing to do then does nothing at all.
    pub fn server_in_process(mut self) -> Self {
        self.in_process = true;
        self
    }

    /// Changes objects of a kind before they are cached, for instance to drop what no controller reads.
    ///
    /// Managed fields are dropped in any case. What is dropped from a kind that a controller owns can not be
    /// compared with its intent, and is then sent again on every run.
    pub fn transform<K: AnyObject>(mut self, transform: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.transforms.set::<K>(Arc::new(transform));
        self
    }

    /// Watches these namespaces only, in every controller that names none itself.
    pub fn namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.namespaces.extend(namespaces.into_iter().map(Into::into));
        self
    }

    /// Works only while holding a lease: of several replicas, one works. Off unless set.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.leader = Some(election);
        self
    }

    /// Does something once, before anything is watched or reconciled: with the client, on every replica, and in the
    /// order of the calls. A failure ends the operator. A dry run leaves it out, since it may write.
    ///
    /// ```no_run
    /// use windlass::{Operator, k8s_openapi::api::core::v1::Namespace, kube::{Api, api::{Patch, PatchParams}}};
    ///
    /// let operator = Operator::new("my-operator").setup(|client| async move {
    ///     let namespace = windlass::serde_json::json!({"apiVersion": "v1", "kind": "Namespace"});
    ///     let params = PatchParams::apply("my-operator");
    ///     Api::<Namespace>::all(client).patch("shared", &params, &Patch::Apply(namespace)).await.map(drop)
    /// });
    /// ```
    ///
    /// What it does needs permissions of its own: [`permits`](Self::permits).
    pub fn setup<F, E>(mut self, setup: impl FnOnce(Client) -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<(), E>> + Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        self.setups.push(Box::new(move |client| {
            let run = setup(client);
            Box::pin(async move { run.await.map_err(Into::into) })
        }));
        self
    }

    /// Permissions of what is no controller's: of [`setup`](Self::setup), of [tasks](Self::task) and of webhooks. As
    /// [`Controller::permits`].
    #[track_caller]
    pub fn permits<P: Into<Permit>>(mut self, rules: impl IntoIterator<Item = P>) -> Self {
        let call = Call::here("Operator::permits");
        self.permits.extend(rules.into_iter().map(|rule| (rule.into(), call)));
        self
    }

    /// Runs a background task beside the controllers. A dry run leaves it out, since it may write.
    pub fn task(mut self, task: Task) -> Self {
        self.tasks.push(task);
        self
    }

    /// Adds a readiness check of your own: the operator is ready while it returns `Ok`. It is called for every
    /// probe, so it must be quick; what takes time belongs into a [`Task`] that leaves its result behind.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicBool, Ordering};
    /// use windlass::Operator;
    ///
    /// static LICENSED: AtomicBool = AtomicBool::new(false);
    /// let operator = Operator::new("my-operator")
    ///     .check("license", || if LICENSED.load(Ordering::Relaxed) { Ok(()) } else { Err("no license yet") });
    /// assert!(!operator.probes().is_ready());
    /// ```
    pub fn check<E: fmt::Display>(
        self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.probes.add(name, move || check().err().map(|reason| reason.to_string()));
        self
    }

    /// A hold on the operator for whoever embeds it: when it is ready, and whether it has work.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Resolves when the caches are filled. Take it before [`run`](Self::run), which consumes the operator.
    ///
    /// ```no_run
    /// # async fn example(operator: windlass::Operator, client: windlass::kube::Client) {
    /// let ready = operator.ready();
    /// let running = tokio::spawn(operator.run(client, std::future::pending()));
    /// ready.await;
    /// # }
    /// ```
    pub fn ready(&self) -> impl Future<Output = ()> + Send + use<> {
        let handle = self.handle.clone();
        async move { handle.ready().await }
    }

    /// Liveness and readiness, also while the operator runs.
    pub fn probes(&self) -> Probes {
        self.probes.clone()
    }

    /// The operator's metrics: to register your own, or to read them when embedded.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The custom kinds that were added with [`crd`](Self::crd).
    pub fn crds(&self) -> &[CustomResourceDefinition] {
        &self.crds
    }

    /// Runs the controllers until `shutdown` resolves: caches are filled first, then work begins; at the end
    /// running reconciles finish within the drain limit, and every task is joined.
    ///
    /// # Errors
    ///
    /// When the caches cannot be filled in time, or when a task ends that should not.
    pub async fn run(
        self,
        client: Client,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), RunError> {
        let client = self.patient(client);
        run::run(self, client, Box::pin(shutdown)).await
    }

    /// The `main` of an operator's binary: parses the command line, and runs, prints, installs or removes.
    ///
    /// Subcommands are `run` (the default), `manifests`, `crds`, `rbac`, `explain-rbac`, `install`, `uninstall` and
    /// `check`.
    pub fn main(self) -> ExitCode {
        cli::main(self, std::env::args_os())
    }

    /// The command line of every operator's binary, for the reference of commands.
    #[doc(hidden)]
    pub fn command_line() -> clap::Command {
        cli::command_line()
    }

    /// [`main`](Self::main) for an operator that has arguments of its own beside those of every operator. They are
    /// [`clap`](https://docs.rs/clap)'s, and go with every subcommand: what `manifests` prints may depend on them.
    ///
    /// ```no_run
    /// use std::process::ExitCode;
    /// use windlass::Operator;
    ///
    /// #[derive(clap::Args)]
    /// struct Args {
    ///     /// Where the licenses are
    ///     #[arg(long, env = "LICENSE_SERVER")]
    ///     license_server: String,
    /// }
    ///
    /// fn main() -> ExitCode {
    ///     Operator::main_with(|args: Args| {
    ///         Operator::new("my-operator").check("licenses", move || match args.license_server.is_empty() {
    ///             true => Err("--license-server is empty"),
    ///             false => Ok(()),
    ///         })
    ///     })
    /// }
    /// ```
    pub fn main_with<A: clap::Args>(build: impl FnOnce(A) -> Self) -> ExitCode {
        cli::main_with(std::env::args_os(), build)
    }

    /// The same with a command line of your own, of which the first word is the program's name.
    pub fn main_from(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        cli::main(self, args)
    }
}
