//! Which controllers a cluster runs, and running them with any client.
//!
//! A [`Controllers`] enters with a client; tasks that run until they are told to stop leave.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use tokio_util::sync::CancellationToken;
use windlass::{
    Clock, Operator, RunError,
    kube::{Client, runtime::watcher},
};

use crate::{
    autoscaler, cron_job, daemon_set, deployment, disruption, endpoint_slice, garbage, job,
    namespace::{self, defaults, tokens},
    node::{self, Nodes, Timing},
    pod_gc, quota, replica_set, replication_controller,
    restarts::Restarts,
    scheduler, stateful_set, taint_eviction, volume,
};

/// The built-in controllers: all of them unless some are left out.
#[derive(Clone, Debug)]
pub struct Controllers {
    /// Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs, CronJobs and PodDisruptionBudgets.
    pub workloads: bool,
    /// The garbage collector.
    pub garbage: bool,
    /// The deletion of namespaces with all that is in them, their ServiceAccounts and their quotas, and the Service
    /// of the API.
    pub namespaces: bool,
    /// The EndpointSlices of Services.
    pub endpoints: bool,
    /// PersistentVolumes and their claims, with a storage class to begin with.
    pub volumes: bool,
    /// The CA certificate (PEM) that is published in every namespace; none with `None`.
    pub root_ca: Option<String>,
    /// The scheduler.
    pub scheduler: bool,
    /// How many simulated nodes there are.
    pub nodes: usize,
    /// How many Pods a node takes.
    pub max_pods: u32,
    /// How long Pods take to start, become ready, and stop.
    pub timing: Timing,
    /// How often the nodes renew their Leases; never with `None`.
    pub heartbeat: Option<Duration>,
}

impl Default for Controllers {
    fn default() -> Self {
        Self {
            workloads: true,
            garbage: true,
            namespaces: true,
            endpoints: true,
            volumes: true,
            root_ca: None,
            scheduler: true,
            nodes: 1,
            max_pods: 10_000,
            timing: Timing::default(),
            heartbeat: Some(Duration::from_secs(10)),
        }
    }
}

impl Controllers {
    /// Runs the controllers until the token is cancelled, and returns when every task of theirs has ended.
    pub async fn run(
        self,
        client: Client,
        clock: impl Clock,
        stop: CancellationToken,
    ) -> Result<(), RunError> {
        self.running(client, Arc::new(clock), stop, false, Restarts::default()).await
    }

    /// Boxed, and for any clock: so the controllers are compiled here, once, and not again by every crate that starts a
    /// cluster. `in_process`: the API server is in this process.
    pub(crate) fn running(
        self,
        client: Client,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        in_process: bool,
        restarts: Restarts,
    ) -> BoxFuture<'static, Result<(), RunError>> {
        Box::pin(self.run_until(client, clock, stop, in_process, restarts))
    }

    async fn run_until(
        self,
        client: Client,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
        in_process: bool,
        restarts: Restarts,
    ) -> Result<(), RunError> {
        let (collecting, watching) = if in_process {
            // Zero: silence is no fault.
            (windlass::in_process(client.clone()), watcher::Config::default().timeout(0))
        } else {
            (client.clone(), watcher::Config::default())
        };
        let nodes = Nodes { count: self.nodes, heartbeat: self.heartbeat, max_pods: self.max_pods };
        let collector = restarts.keep("garbage collector", &stop, || async {
            if self.garbage {
                garbage::run(collecting.clone(), watching.clone(), stop.clone()).await;
            } else {
                stop.cancelled().await;
            }
            Ok(())
        });
        let operator = async {
            let run = || async {
                let operator = self.operator(clock.clone());
                let operator = if in_process { operator.server_in_process() } else { operator };
                restarts.watch(operator.probes(), operator.handle());
                match operator.run(client.clone(), stop.clone().cancelled_owned()).await {
                    // Some task of theirs died, which says nothing about the next.
                    Err(error @ RunError::TaskEnded { .. }) if !stop.is_cancelled() => Err(error.to_string()),
                    result => Ok(result),
                }
            };
            // The operator may have failed by itself: then the others have nothing to go on with.
            let result = restarts.keep("controllers", &stop, run).await;
            stop.cancel();
            result.unwrap_or(Ok(()))
        };
        let volumes = self.volumes;
        // Registering and heartbeats never end by themselves.
        let nodes = async {
            if volumes && let Err(error) = volume::class::create(&client).await {
                tracing::error!(%error, "failed to create the default storage class");
            }
            let run = || async {
                tokio::select! {
                    biased;
                    () = node::run(nodes.clone(), client.clone(), clock.clone()) => {}
                    () = stop.cancelled() => {}
                }
                Ok(())
            };
            restarts.keep("nodes", &stop, run).await
        };
        // Who is stopped while it is being restarted has ended too.
        let (result, _, _): (_, Result<(), String>, Result<(), String>) =
            tokio::join!(operator, collector, nodes);
        result
    }

    fn operator(&self, clock: Arc<dyn Clock>) -> Operator {
        let mut operator = Operator::new("kube-controller-manager").clock(clock);
        // Its own use of Endpoints is deprecated, and nobody who reads the log can change that.
        operator = operator.api_warnings(false);
        if self.workloads {
            operator = operator
                .controller(replica_set::controller())
                .controller(replication_controller::controller())
                .controller(deployment::controller())
                .controller(stateful_set::controller())
                .controller(daemon_set::controller())
                .controller(cron_job::controller())
                .controller(job::controller())
                .controller(job::orphan::controller())
                .controller(job::ttl::controller())
                .controller(disruption::controller())
                .controller(autoscaler::controller());
        }
        if self.namespaces {
            operator = operator.controller(quota::controller());
            operator = operator
                .controller(namespace::controller())
                .controller(defaults::accounts())
                .controller(tokens::controller())
                .controller(defaults::api_service());
        }
        if let Some(authority) = &self.root_ca {
            operator = operator.controller(defaults::certificates(authority.clone()));
        }
        if self.endpoints {
            operator = operator
                .controller(endpoint_slice::controller())
                .controller(endpoint_slice::mirroring::controller());
        }
        if self.volumes {
            operator = operator
                .controller(volume::claims::controller())
                .controller(volume::volumes::controller())
                .controller(volume::ephemeral::controller());
        }
        if self.scheduler {
            operator = operator.controller(scheduler::controller());
        }
        if self.nodes > 0 {
            operator = operator
                .controller(node::kubelet::controller(self.timing))
                .controller(node::health::controller(self.timing))
                .controller(taint_eviction::controller())
                .controller(pod_gc::controller());
        }
        operator
    }
}
