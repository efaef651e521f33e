//! Leader election on a Lease: one replica works, the others wait.
//!
//! # Guarantees
//!
//! - A lease that is held by another is taken only after it has been seen unchanged for its whole duration, by
//!   this process' own clock: clocks of different machines are never compared.
//! - A leader that cannot renew stops working at the renew deadline, which lies before the moment at which
//!   another may take the lease. It then stands by, and works again once it has the lease again.
//! - A leader that stops gives the lease back, and a waiting replica, which watches it, follows at once.

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use futures::{StreamExt, stream::BoxStream};
use jiff::Timestamp;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta},
};
use kube::{Api, Client, api::PostParams};
use tokio::time::Instant;

use crate::{changes::states_of, clock::Clock, error::chain, metrics::Metrics, queue::later::later};

/// How often it is told that the lease cannot be had.
const TELL: Duration = Duration::from_secs(30);

/// How leader election is done. The times are controller-runtime's.
#[derive(Clone, Debug)]
pub struct LeaderElection {
    /// The name of the lease.
    pub lease: String,
    /// The namespace of the lease.
    pub namespace: String,
    /// Who this replica is; unique among the replicas, as [`unique_identity`] is.
    pub identity: String,
    /// How long a lease lasts without being renewed.
    pub duration: Duration,
    /// How long a leader tries to renew before it gives up. Shorter than the duration.
    pub renew_deadline: Duration,
    /// How long to wait between tries.
    pub retry_period: Duration,
}

impl LeaderElection {
    /// Election for the lease `name` in `namespace`, under this identity.
    pub fn new(name: impl Into<String>, namespace: impl Into<String>, identity: impl Into<String>) -> Self {
        Self {
            lease: name.into(),
            namespace: namespace.into(),
            identity: identity.into(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }
}

impl LeaderElection {
    /// Refuses times with which two replicas could lead at once.
    pub(crate) fn check(&self) -> Result<(), LeaderError> {
        let refuse = |reason: String| Err(LeaderError::Times { reason });
        if self.duration <= self.renew_deadline {
            return refuse(format!(
                "the lease duration ({:?}) must be longer than the renew deadline ({:?})",
                self.duration, self.renew_deadline
            ));
        }
        if self.renew_deadline <= self.retry_period {
            return refuse(format!(
                "the renew deadline ({:?}) must be longer than the retry period ({:?})",
                self.renew_deadline, self.retry_period
            ));
        }
        if self.duration.subsec_nanos() != 0 || self.retry_period.is_zero() {
            return refuse("the lease duration must be whole seconds, and the retry period not zero".into());
        }
        Ok(())
    }
}

/// An identity that no other process has, however it is deployed: the Pod's or the machine's name, the process, and
/// chance. Name and process alone may be equal for two containers on the network of one host.
pub fn unique_identity() -> String {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    let host = host.as_deref().map(str::trim).filter(|host| !host.is_empty()).unwrap_or("unknown");
    // Keyed anew by the operating system's chance each time.
    let chance = RandomState::new().hash_one(0_u8) as u32;
    format!("{host}_{}_{chance:08x}", std::process::id())
}

/// A failed election.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LeaderError {
    /// The times contradict each other.
    #[error("failed to set up leader election: {reason}")]
    Times {
        /// Which ones.
        reason: String,
    },
    /// The API server does not let us have the lease.
    #[error("failed to acquire the lease {namespace}/{lease}: {reason}")]
    Refused {
        /// The namespace of the lease.
        namespace: String,
        /// The lease.
        lease: String,
        /// What it said.
        reason: String,
        /// The status of the answer: 403 if the operator may not, 404 if there is no such namespace.
        code: u16,
    },
    /// Another replica holds the lease now, or it could not be renewed in time.
    #[error("failed to keep the lease {namespace}/{lease}: {reason}")]
    Lost {
        /// The namespace of the lease.
        namespace: String,
        /// The lease.
        lease: String,
        /// Why.
        reason: String,
    },
}

/// What to do with the lease as it was just read.
#[derive(Debug, PartialEq, Eq)]
enum Step {
    /// It is ours, or free: write ourselves into it.
    Take,
    /// Another holds it.
    Wait,
}

/// The lease as it was last seen to change, by our own clock.
#[derive(Debug, Default)]
struct Observed {
    spec: Option<LeaseSpec>,
    at: Option<Instant>,
}

impl Observed {
    /// Notes what was read. The time moves only when the lease does.
    fn note(&mut self, spec: Option<&LeaseSpec>, now: Instant) {
        if self.at.is_none() || self.spec.as_ref() != spec {
            self.spec = spec.cloned();
            self.at = Some(now);
        }
    }

    fn step(&self, identity: &str, now: Instant) -> Step {
        let Some(spec) = &self.spec else { return Step::Take };
        let holder = spec.holder_identity.as_deref().unwrap_or_default();
        if holder.is_empty() || holder == identity {
            return Step::Take;
        }
        let lasts =
            Duration::from_secs(spec.lease_duration_seconds.unwrap_or(0).max(0).unsigned_abs().into());
        let expired = self.at.is_some_and(|at| now >= later(at, lasts));
        if expired { Step::Take } else { Step::Wait }
    }
}

/// One replica's part in an election.
pub(crate) struct Elector {
    config: LeaderElection,
    leases: Api<Lease>,
    clock: Arc<dyn Clock>,
    metrics: Metrics,
    observed: Observed,
    /// The lease as we last wrote it, while it is ours.
    held: Option<Lease>,
    /// Set while a write is under way: who is stopped then may be the holder without knowing.
    writing: bool,
}

impl Elector {
    pub(crate) fn new(
        config: LeaderElection,
        client: Client,
        clock: Arc<dyn Clock>,
        metrics: Metrics,
    ) -> Self {
        let leases = Api::namespaced(client, &config.namespace);
        metrics.leading(&config.lease, false);
        Self { config, leases, clock, metrics, observed: Observed::default(), held: None, writing: false }
    }

    /// The name of the lease.
    pub(crate) fn lease(&self) -> &str {
        &self.config.lease
    }

    /// Waits until the lease is ours. With `give_up_when_refused` it fails when the API server refuses.
    pub(crate) async fn acquire(&mut self, give_up_when_refused: bool) -> Result<(), LeaderError> {
        let mut waiting = false;
        let mut told: Option<Instant> = None;
        let mut states = states_of(self.leases.clone(), &self.config.lease);
        loop {
            // No longer than a renewal: a connection on which nothing comes is given up.
            let problem = match tokio::time::timeout(self.config.renew_deadline, self.attempt()).await {
                Ok(Ok(true)) => {
                    tracing::info!(identity = self.config.identity, lease = self.config.lease, "leading");
                    return Ok(());
                }
                Ok(Ok(false)) => {
                    if !std::mem::replace(&mut waiting, true) {
                        let (identity, lease) = (&self.config.identity, &self.config.lease);
                        tracing::info!(identity, lease, "waiting to lead");
                    }
                    None
                }
                Ok(Err(error)) => match refusal(&error).filter(|_| give_up_when_refused) {
                    Some(code) => return Err(self.refused(code, &error)),
                    None => Some(chain(&error)),
                },
                Err(_) => Some("the API server does not answer".to_owned()),
            };
            if let Some(problem) = problem
                && told.is_none_or(|told| told.elapsed() >= TELL)
            {
                tracing::warn!(error = problem, "failed to acquire the lease, retrying");
                told = Some(Instant::now());
            }
            // A lease that is given back is seen at once; one whose holder died says nothing.
            tokio::select! {
                biased;
                () = freed(&mut states) => {}
                () = tokio::time::sleep(self.config.retry_period) => {}
            }
        }
    }

    fn refused(&self, code: u16, error: &kube::Error) -> LeaderError {
        let (namespace, lease) = (self.config.namespace.clone(), self.config.lease.clone());
        LeaderError::Refused { namespace, lease, reason: chain(error), code }
    }

    /// Renews the lease until that fails for too long. Returns only then.
    pub(crate) async fn keep(&mut self) -> LeaderError {
        let mut renewed = Instant::now();
        loop {
            tokio::time::sleep(self.config.retry_period).await;
            let deadline = later(renewed, self.config.renew_deadline);
            let started = Instant::now();
            let reason = match tokio::time::timeout_at(deadline, self.attempt()).await {
                Ok(Ok(true)) => {
                    renewed = started;
                    continue;
                }
                Ok(Ok(false)) => return self.lost("another replica holds it".into()),
                Ok(Err(error)) => chain(&error),
                Err(_) => "the API server does not answer".into(),
            };
            tracing::warn!(reason, "failed to renew the lease");
            if later(Instant::now(), self.config.retry_period) >= deadline {
                return self.lost(reason);
            }
        }
    }

    /// Gives the lease back, so that another can take it at once.
    pub(crate) async fn release(mut self) {
        if self.held.is_none() && !self.writing {
            return;
        }
        match tokio::time::timeout(self.config.renew_deadline, self.give_back()).await {
            Ok(()) => tracing::info!(lease = self.config.lease, "lease released"),
            Err(_) => tracing::warn!("failed to release the lease in time"),
        }
    }

    async fn give_back(&mut self) {
        let mut known = self.held.take();
        while let Err(error) = self.free(known.take()).await {
            // A renewal that was cut off may have been written all the same: then the lease is read, and still ours.
            if !is_conflict(&error) {
                tracing::warn!(error = chain(&error), "failed to release the lease, retrying");
                tokio::time::sleep(self.config.retry_period).await;
            }
        }
    }

    /// Takes ourselves out of the lease as it is known, or as the server has it.
    async fn free(&self, known: Option<Lease>) -> Result<(), kube::Error> {
        let lease = match known {
            Some(lease) => Some(lease),
            None => self.leases.get_opt(&self.config.lease).await?,
        };
        let Some(mut lease) = lease else { return Ok(()) };
        let spec = lease.spec.get_or_insert_default();
        if spec.holder_identity.as_deref() != Some(&self.config.identity) {
            return Ok(());
        }
        spec.holder_identity = Some(String::new());
        spec.lease_duration_seconds = Some(1);
        self.leases.replace(&self.config.lease, &PostParams::default(), &lease).await.map(drop)
    }

    fn lost(&mut self, reason: String) -> LeaderError {
        self.held = None;
        let (namespace, lease) = (self.config.namespace.clone(), self.config.lease.clone());
        LeaderError::Lost { namespace, lease, reason }
    }

    /// Takes or renews the lease if that is allowed. Returns whether it is ours.
    async fn attempt(&mut self) -> Result<bool, kube::Error> {
        if let Some(held) = self.held.clone() {
            // Nobody has written it since, or else this is refused: one request is enough.
            match self.write(held).await {
                Ok(()) => return Ok(true),
                Err(error) => {
                    tracing::debug!(error = chain(&error), "failed to renew the lease at once, reading it");
                    self.metrics.slow_renewal(&self.config.lease);
                }
            }
        }
        self.attempt_slowly().await
    }

    async fn write(&mut self, mut lease: Lease) -> Result<(), kube::Error> {
        lease.spec = Some(self.renewed(lease.spec.take().unwrap_or_default()));
        let params = PostParams::default();
        self.writing = true;
        let written = self.leases.replace(&self.config.lease, &params, &lease).await;
        self.writing = false;
        self.hold(written?);
        Ok(())
    }

    fn hold(&mut self, lease: Lease) {
        self.observed.note(lease.spec.as_ref(), Instant::now());
        self.held = Some(lease);
    }

    /// The same, without relying on what was last written.
    async fn attempt_slowly(&mut self) -> Result<bool, kube::Error> {
        let live = self.leases.get_opt(&self.config.lease).await?;
        self.observed.note(live.as_ref().and_then(|lease| lease.spec.as_ref()), Instant::now());
        if live.is_some() && self.observed.step(&self.config.identity, Instant::now()) == Step::Wait {
            return Ok(false);
        }
        let written = match live {
            None => {
                self.writing = true;
                let created = self.leases.create(&PostParams::default(), &self.fresh()).await;
                self.writing = false;
                created.map(|lease| self.hold(lease))
            }
            Some(lease) => self.write(lease).await,
        };
        match written {
            Ok(()) => Ok(true),
            // Another replica was faster.
            Err(error) if is_conflict(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn fresh(&self) -> Lease {
        let metadata = ObjectMeta { name: Some(self.config.lease.clone()), ..ObjectMeta::default() };
        Lease { metadata, spec: Some(self.renewed(LeaseSpec::default())) }
    }

    fn renewed(&self, old: LeaseSpec) -> LeaseSpec {
        let now = MicroTime(microseconds(self.clock.now()));
        let same = old.holder_identity.as_deref() == Some(&self.config.identity);
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: i32::try_from(self.config.duration.as_secs()).ok(),
            acquire_time: if same { old.acquire_time } else { Some(now.clone()) },
            renew_time: Some(now),
            lease_transitions: Some(old.lease_transitions.unwrap_or(0) + i32::from(!same)),
            ..old
        }
    }
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// Waits until the lease has no holder. Renewals by its holder are nothing to wake up for.
async fn freed(states: &mut BoxStream<'static, Option<Lease>>) {
    while let Some(state) = states.next().await {
        let holder = state.and_then(|lease| lease.spec?.holder_identity);
        if holder.unwrap_or_default().is_empty() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// The answer that we may not, or that there is no such namespace.
fn refusal(error: &kube::Error) -> Option<u16> {
    match error {
        kube::Error::Api(status) if matches!(status.code, 403 | 404) => Some(status.code),
        _ => None,
    }
}

fn microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held_by(holder: &str, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.into()),
            lease_duration_seconds: Some(15),
            renew_time: Some(MicroTime(Timestamp::from_second(renewed).unwrap())),
            ..LeaseSpec::default()
        }
    }

    #[test]
    fn a_lease_of_another_is_taken_only_after_it_stood_still_for_its_duration() {
        let (mut observed, start) = (Observed::default(), Instant::now());
        let second = Duration::from_secs(1);
        observed.note(Some(&held_by("b", 0)), start);
        assert_eq!(observed.step("a", start + 14 * second), Step::Wait);
        observed.note(Some(&held_by("b", 1)), start + 10 * second);
        assert_eq!(observed.step("a", start + 24 * second), Step::Wait, "it was renewed");
        observed.note(Some(&held_by("b", 1)), start + 24 * second);
        assert_eq!(observed.step("a", start + 25 * second), Step::Take);
    }

    #[test]
    fn times_with_which_two_could_lead_are_refused() {
        let election = || LeaderElection::new("l", "ns", "me");
        assert!(election().check().is_ok());
        let second = Duration::from_secs(1);
        let text = |election: LeaderElection| election.check().unwrap_err().to_string();
        let late = text(LeaderElection { renew_deadline: 15 * second, ..election() });
        assert!(
            late.contains("the lease duration (15s) must be longer than the renew deadline (15s)"),
            "{late}"
        );
        let rare = text(LeaderElection { retry_period: 10 * second, ..election() });
        assert!(rare.contains("must be longer than the retry period (10s)"), "{rare}");
        text(LeaderElection { duration: Duration::from_millis(10_500), ..election() });
        text(LeaderElection { retry_period: Duration::ZERO, ..election() });
    }

    #[test]
    fn no_two_identities_are_alike_even_in_one_process() {
        let identities: std::collections::BTreeSet<String> = (0..20).map(|_| unique_identity()).collect();
        assert_eq!(identities.len(), 20, "{identities:?}");
    }

    #[test]
    fn a_free_or_own_lease_is_taken_at_once() {
        let (mut observed, now) = (Observed::default(), Instant::now());
        assert_eq!(observed.step("a", now), Step::Take);
        observed.note(Some(&held_by("a", 0)), now);
        assert_eq!(observed.step("a", now), Step::Take);
        observed.note(Some(&held_by("", 0)), now);
        assert_eq!(observed.step("a", now), Step::Take);
    }
}
