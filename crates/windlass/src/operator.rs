//! The operator: controllers that share caches, started in order, stopped together, every task joined.

use std::{ffi::OsString, fmt, future::Future, process::ExitCode, sync::Arc, time::Duration};

use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Client, CustomResourceExt};

use crate::{
    cache::Transforms,
    clock::{Clock, SystemClock},
    controller::{Controller, Runnable},
    leader::LeaderElection,
    metrics::Metrics,
    object::{AnyObject, Kind},
    rbac::{Access, Rules},
    reconciler::Reconciler,
    tls::{Connections, Connector, NOWHERE, connections},
    webhook::{self, Conversion, Defaulter, Validator, Webhook, Webhooks},
};

mod cli;
mod guard;
mod handle;
mod logging;
mod manifests;
mod probes;
mod run;
mod server;
mod settings;
mod tasks;
#[cfg(feature = "otlp")]
mod traces;

pub use handle::{Failure, Handle, Run};
pub use manifests::{CertificateSource, InstallError, Placement};
pub use probes::{Check, Probes};
pub use run::RunError;

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
    sync_timeout: Duration,
    leader: Option<LeaderElection>,
    probes: Probes,
    handle: Handle,
    webhooks: Webhooks,
    webhook_server: Option<webhook::Server>,
    /// Where connections to the webhooks come from, if not from a socket.
    webhook_connections: Option<Connections>,
    /// Give up on the first refusal of a list rather than at the timeout.
    impatient: bool,
    dry_run: bool,
    in_process: bool,
    transforms: Transforms,
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
            sync_timeout: Duration::from_mins(2),
            leader: None,
            probes: Probes::default(),
            handle: Handle::default(),
            webhooks: Webhooks::default(),
            webhook_server: None,
            webhook_connections: None,
            impatient: false,
            dry_run: false,
            in_process: false,
            transforms: Transforms::default(),
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

    /// What is stored must be what every version can become: the hub.
    fn store_hubs(&mut self) {
        for conversion in &self.webhooks.conversions {
            let hub = conversion.kind();
            let same = |crd: &&mut CustomResourceDefinition| {
                crd.spec.group == hub.group && crd.spec.names.kind == hub.kind
            };
            for version in self.crds.iter_mut().filter(same).flat_map(|crd| &mut crd.spec.versions) {
                version.storage = version.name == hub.version;
            }
        }
    }

    /// Asks a validator about creations and updates of its kind.
    pub fn validates<V: Validator>(self, validator: V) -> Self {
        self.webhook(Webhook::validating(validator))
    }

    /// Lets a defaulter fill in creations and updates of its kind.
    pub fn defaults<D: Defaulter>(self, defaulter: D) -> Self {
        self.webhook(Webhook::defaulting(defaulter))
    }

    /// Adds a validating or defaulting webhook with settings of its own.
    pub fn webhook(mut self, webhook: Webhook) -> Self {
        self.webhooks.admission.push(webhook);
        self
    }

    /// Converts between the versions of a kind, whose CRD must have been [added](Self::crd).
    pub fn converts(mut self, conversion: Conversion) -> Self {
        self.webhooks.conversions.push(conversion);
        self.store_hubs();
        self
    }

    /// Serves the webhooks on a socket. Without this, a [`run`](Self::run) serves none; `main` does it itself.
    pub fn serve_webhooks(mut self, server: webhook::Server) -> Self {
        self.webhook_server = Some(server);
        self
    }

    /// Whether a run serves webhooks.
    pub(crate) fn serves_webhooks(&self) -> bool {
        self.webhook_server.is_some() && !self.webhooks.is_empty() && !self.dry_run
    }

    /// Serves the webhooks to an API server in the same process, as the [manifests](Self::manifests) for this namespace
    /// announce them. `None` if there are none.
    pub(crate) fn serve_webhooks_in_process(&mut self, namespace: &str) -> Option<Connector> {
        if self.webhooks.is_empty() || self.dry_run {
            return None;
        }
        let reach = manifests::service(&self.name, namespace);
        let webhook::Reach::Service { name: service, .. } = &reach else { return None };
        let (connector, connections) = connections(service.clone());
        self.webhook_server = Some(webhook::Server {
            address: NOWHERE,
            reach,
            certificates: webhook::Certificates::Issued {
                namespace: namespace.to_owned(),
                secret: manifests::secret_name(&self.name),
            },
            http2: false,
        });
        self.webhook_connections = Some(connections);
        Some(connector)
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

    /// How long running reconciles may take to finish after a shutdown was asked for: 30 s unless set.
    pub fn drain_limit(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// How long the first lists may take: two minutes unless set.
    pub fn sync_timeout(mut self, limit: Duration) -> Self {
        self.sync_timeout = limit;
        self
    }

    /// Logs what the controllers would write, and writes nothing: no object, no status, no event and no lease.
    ///
    /// A reconciler sees each write as if it had succeeded, and sees it undone on its next run.
    pub fn dry_run(mut self, dry_run: bool) -> Self {
        self.dry_run = dry_run;
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

    /// The permissions that the controllers need, computed from what they declare.
    pub fn rbac(&self) -> Vec<PolicyRule> {
        self.rules(|_| true, true)
    }

    /// The permissions for the kinds that are chosen, and with the `rest` those that no kind implies.
    fn rules(&self, chosen: impl Fn(&Kind) -> bool, rest: bool) -> Vec<PolicyRule> {
        let mut rules = Rules::default();
        let mut about = rest;
        for controller in &self.controllers {
            let (access, permits) = controller.access();
            for access in access.iter().filter(|access| chosen(access.kind())) {
                rules.access(access);
                about |= matches!(access, Access::Reconciles(_));
            }
            if rest {
                rules.permit(permits);
            }
        }
        // Every object that is reconciled may have events.
        if about {
            rules.grant("events.k8s.io", "events", &["create", "patch"]);
        }
        rules.finish()
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
        run::run(self, client, Box::pin(shutdown)).await
    }

    /// The `main` of an operator's binary: parses the command line, and runs, prints, installs or removes.
    ///
    /// Subcommands are `run` (the default), `manifests`, `crds`, `rbac`, `install` and `uninstall`.
    pub fn main(self) -> ExitCode {
        cli::main(self, std::env::args_os())
    }

    /// The same with a command line of your own, of which the first word is the program's name.
    pub fn main_from(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        cli::main(self, args)
    }
}
