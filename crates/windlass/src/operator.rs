//! The operator: controllers that share caches, started in order, stopped together, every task joined.

use std::{fmt, future::Future, process::ExitCode, sync::Arc, time::Duration};

use k8s_openapi::{
    api::rbac::v1::PolicyRule,
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{Client, CustomResourceExt};

use crate::{
    clock::{Clock, SystemClock},
    controller::{Controller, Runnable},
    leader::LeaderElection,
    metrics::Metrics,
    rbac::Rules,
    reconciler::Reconciler,
};

mod cli;
mod manifests;
mod probes;
mod run;
mod server;
mod tasks;

pub use manifests::{InstallError, Placement};
pub use probes::{Check, Probes};
pub use run::RunError;

/// A set of controllers that run as one.
pub struct Operator {
    name: String,
    controllers: Vec<Box<dyn Runnable>>,
    crds: Vec<CustomResourceDefinition>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    field_manager: Option<String>,
    drain: Duration,
    sync_timeout: Duration,
    leader: Option<LeaderElection>,
    probes: Probes,
    /// Give up on the first refusal of a list rather than at the timeout.
    impatient: bool,
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
            crds: Vec::new(),
            clock: Arc::new(SystemClock),
            metrics: Metrics::default(),
            field_manager: None,
            drain: Duration::from_secs(30),
            sync_timeout: Duration::from_mins(2),
            leader: None,
            probes: Probes::default(),
            impatient: false,
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

    /// Adds a custom kind to what is installed for the operator.
    pub fn crd<K: CustomResourceExt>(mut self) -> Self {
        self.crds.push(K::crd());
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

    /// Works only while holding a lease: of several replicas, one works. Off unless set.
    pub fn leader_election(mut self, election: LeaderElection) -> Self {
        self.leader = Some(election);
        self
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
        let mut rules = Rules::default();
        for controller in &self.controllers {
            let (access, permits) = controller.access();
            for access in access {
                rules.access(access);
            }
            rules.permit(permits);
        }
        rules.grant("events.k8s.io", "events", &["create", "patch"]);
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
        run::run(self, client, shutdown).await
    }

    /// The `main` of an operator's binary: parses the command line, and runs, prints, installs or removes.
    ///
    /// Subcommands are `run` (the default), `manifests`, `crds`, `rbac`, `install` and `uninstall`.
    pub fn main(self) -> ExitCode {
        cli::main(self)
    }
}
