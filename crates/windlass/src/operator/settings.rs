//! The settings of a running operator: from flags, the environment, a file and the defaults, in this order.
//!
//! Enters: one [`Given`] from the command line (clap reads the environment for it) and one from the file. Leaves:
//! the first value that is there for each setting. Flags have controller-runtime's names where it has them, and
//! the file has the same names as its keys.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Args, Command, ValueEnum};
use serde::Deserialize;
use serde_json::Value;

use super::{LeaderElection, manifests};
use crate::{
    tls::Files,
    webhook::{self, Certificates, Reach},
};

mod values;

pub(super) use values::{BindAddress, Kinds, Namespaces, Time};
use values::{Verbosity, ZapLevel};

/// Why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to read {0}")]
    Read(PathBuf, #[source] std::io::Error),
    #[error("failed to read {0}: it is no YAML")]
    Yaml(PathBuf, #[source] Box<serde_saphyr::Error>),
    #[error("failed to read {path}: unknown key {key:?}")]
    Unknown { path: PathBuf, key: String, nearest: String },
    #[error("failed to read {path}: the value of {key} does not fit")]
    Value {
        path: PathBuf,
        key: String,
        #[source]
        source: serde_json::Error,
    },
    #[error("failed to configure: no controller is named {name:?}")]
    Controller { name: String, known: String },
    #[error("failed to disable the kind {name:?}: the operator has no such CRD")]
    Kind { name: String, known: String },
}

impl Error {
    pub(super) fn hint(&self) -> Option<String> {
        match self {
            Self::Unknown { nearest, .. } => Some(format!("did you mean {nearest:?}?")),
            Self::Controller { known, .. } | Self::Kind { known, .. } => Some(format!("there are {known}")),
            Self::Read(..) | Self::Yaml(..) | Self::Value { .. } => None,
        }
    }
}

/// Makes the struct and the function that fills its gaps from another.
macro_rules! given {
    ($(#[$outer:meta])* struct $name:ident { $($(#[$meta:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$outer])*
        pub(super) struct $name { $($(#[$meta])* pub(super) $field: Option<$type>,)* }

        impl $name {
            /// These settings, and `other`'s where there are none.
            fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)* }
            }
        }
    };
}

given! {
    /// What was given; the defaults are in the functions that read it.
    #[derive(Clone, Debug, Default, Args, Deserialize)]
    #[serde(rename_all = "kebab-case", default)]
    struct Given {
        /// Where /metrics is served, as host:port or :port; 0 turns it off [default: 0]
        #[arg(long, env = "METRICS_BIND_ADDRESS")]
        metrics_bind_address: BindAddress,
        /// Serve metrics with TLS, and only to whom the API server lets read them [default: true]
        #[arg(long, env = "METRICS_SECURE", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        metrics_secure: bool,
        /// The directory of a certificate for the metrics; without it one is made for this process
        #[arg(long, env = "METRICS_CERT_PATH")]
        metrics_cert_path: PathBuf,
        /// The file of the certificate in --metrics-cert-path [default: tls.crt]
        #[arg(long, env = "METRICS_CERT_NAME")]
        metrics_cert_name: String,
        /// The file of the private key in --metrics-cert-path [default: tls.key]
        #[arg(long, env = "METRICS_CERT_KEY")]
        metrics_cert_key: String,
        /// Where /healthz and /readyz are served, as host:port or :port; 0 turns them off [default: :8081]
        #[arg(long, env = "HEALTH_PROBE_BIND_ADDRESS")]
        health_probe_bind_address: BindAddress,
        /// Work only while holding the lease, so that of several replicas one works
        #[arg(long, env = "LEADER_ELECT", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        leader_elect: bool,
        /// The name of the lease; that of the operator unless given
        #[arg(long, env = "LEADER_ELECTION_ID")]
        leader_election_id: String,
        /// The namespace of the lease; that of the operator unless given
        #[arg(long, env = "LEADER_ELECTION_NAMESPACE")]
        leader_election_namespace: String,
        /// How long a lease lasts that is not renewed [default: 15s]
        #[arg(long, env = "LEADER_ELECT_LEASE_DURATION")]
        leader_elect_lease_duration: Time,
        /// How long a leader tries to renew its lease before it gives up [default: 10s]
        #[arg(long, env = "LEADER_ELECT_RENEW_DEADLINE")]
        leader_elect_renew_deadline: Time,
        /// How long to wait between tries to take or renew the lease [default: 2s]
        #[arg(long, env = "LEADER_ELECT_RETRY_PERIOD")]
        leader_elect_retry_period: Time,
        /// The namespace of the operator itself, with its lease and its webhooks' Service and Secret; that of the pod,
        /// or of the kubeconfig context, unless given
        #[arg(long, short, env = "POD_NAMESPACE")]
        namespace: String,
        /// Watch these namespaces only, separated by commas; none or an empty list for all
        #[arg(long, env = "WATCH_NAMESPACE", visible_alias = "watch-namespace")]
        #[serde(alias = "watch-namespace")]
        watch_namespaces: Namespaces,
        /// Leave these kinds alone, by the names of their CRDs, separated by commas
        #[arg(long, env = "DISABLE_KINDS", value_name = "CRDS")]
        disable_kinds: Kinds,
        /// How long a request to the API server may take; lists two minutes, if that is longer [default: 30s]
        #[arg(long, env = "REQUEST_TIMEOUT")]
        request_timeout: Time,
        /// Log the differences that would be written, and write nothing
        #[arg(long, env = "DRY_RUN", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        dry_run: bool,
        /// For a debugger: nothing runs out of time, and there is no leader election unless --leader-elect is given
        #[arg(long, env = "DEBUGGING", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        debugging: bool,
        /// How long running reconciles may take to finish after a signal [default: 30s]
        #[arg(long, env = "GRACEFUL_SHUTDOWN_TIMEOUT")]
        graceful_shutdown_timeout: Time,
        /// How long webhooks are answered after a signal, until the API server knows that they are not [default: 0s]
        #[arg(long, env = "SHUTDOWN_DELAY_DURATION")]
        shutdown_delay_duration: Time,
        /// Whether webhooks are served [default: true]
        #[arg(long, env = "ENABLE_WEBHOOKS", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        enable_webhooks: bool,
        /// The address on which webhooks are served [default: 0.0.0.0]
        #[arg(long, env = "WEBHOOK_HOST")]
        webhook_host: IpAddr,
        /// The port on which webhooks are served [default: 9443]
        #[arg(long, env = "WEBHOOK_PORT")]
        webhook_port: u16,
        /// Have the API server call this https://host:port instead of the Service: for running outside the cluster
        #[arg(long, env = "WEBHOOK_URL")]
        webhook_url: String,
        /// The directory of a certificate that someone else renews; without it the operator issues its own
        #[arg(long, env = "WEBHOOK_CERT_PATH")]
        webhook_cert_path: PathBuf,
        /// The file of the certificate in --webhook-cert-path [default: tls.crt]
        #[arg(long, env = "WEBHOOK_CERT_NAME")]
        webhook_cert_name: String,
        /// The file of the private key in --webhook-cert-path [default: tls.key]
        #[arg(long, env = "WEBHOOK_CERT_KEY")]
        webhook_cert_key: String,
        /// Whether the webhook and metrics servers speak HTTP/2 beside HTTP/1.1 [default: true]
        #[arg(long, env = "ENABLE_HTTP2", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
        enable_http2: bool,
        /// What is logged: a level, or directives such as info,kube=debug [default: info]
        #[arg(long, env = "RUST_LOG")]
        log_level: String,
        /// What is logged, as Go's operators have it: debug, info, error, or 1 for debug and more for trace
        #[arg(long, value_name = "LEVEL")]
        zap_log_level: ZapLevel,
        /// What is logged, as klog has it: 0 to 3 for info, 4 and 5 for debug, more for trace
        #[arg(long, short, value_name = "NUMBER")]
        v: Verbosity,
        /// How log lines look [default: text]
        #[arg(long, value_enum, env = "LOG_FORMAT")]
        log_format: LogFormat,
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum LogFormat {
    #[default]
    Text,
    Json,
}

/// The part of the file that no flag can say.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct ControllerSettings {
    concurrency: Option<usize>,
}

/// All settings of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
    pub(super) given: Given,
    controllers: BTreeMap<String, ControllerSettings>,
}

impl Settings {
    /// What was given on the command line, and in the file for what was not.
    pub(super) fn read(given: Given, file: Option<&Path>) -> Result<Self, Error> {
        let Some(path) = file else { return Ok(Self { given, ..Self::default() }) };
        let text = std::fs::read_to_string(path).map_err(|error| Error::Read(path.to_owned(), error))?;
        let parsed = serde_saphyr::from_str::<Value>(&text);
        let mut parsed = parsed.map_err(|error| Error::Yaml(path.to_owned(), Box::new(error)))?;
        check_keys(path, &parsed)?;
        let failed = |key: &str| {
            let key = key.to_owned();
            move |source| Error::Value { path: path.to_owned(), key, source }
        };
        let controllers = match parsed.as_object_mut().and_then(|keys| keys.remove("controllers")) {
            Some(controllers) => serde_json::from_value(controllers).map_err(failed("controllers"))?,
            None => BTreeMap::new(),
        };
        // One key at a time, so that an error can name its key.
        let mut file = Given::default();
        for (key, value) in parsed.as_object().into_iter().flatten() {
            let one = Value::Object([(key.clone(), value.clone())].into_iter().collect());
            file = serde_json::from_value::<Given>(one).map_err(failed(key))?.or(file);
        }
        Ok(Self { given: given.or(file), controllers })
    }

    /// The controllers whose concurrency was set. A name that no controller has is a mistake.
    pub(super) fn concurrency(&self, known: &[&str]) -> Result<Vec<(&str, usize)>, Error> {
        let unknown = self.controllers.keys().find(|name| !known.contains(&name.as_str()));
        if let Some(name) = unknown {
            return Err(Error::Controller { name: name.clone(), known: known.join(", ") });
        }
        let chosen = self.controllers.iter();
        Ok(chosen.filter_map(|(name, settings)| Some((name.as_str(), settings.concurrency?))).collect())
    }

    /// Leaves the kinds alone that were named. A name that no kind has is a mistake.
    pub(super) fn disable(&self, operator: &mut super::Operator) -> Result<(), Error> {
        disable(operator, self.given.disable_kinds.as_ref())
    }

    pub(super) fn metrics(&self) -> Option<SocketAddr> {
        self.given.metrics_bind_address.and_then(|address| address.0)
    }

    /// Whether metrics are only for whom the API server lets read them.
    pub(super) fn metrics_secure(&self) -> bool {
        self.given.metrics_secure.unwrap_or(true)
    }

    pub(super) fn metrics_files(&self) -> Option<Files> {
        let given = &self.given;
        files(
            given.metrics_cert_path.as_ref()?,
            given.metrics_cert_name.as_ref(),
            given.metrics_cert_key.as_ref(),
        )
    }

    pub(super) fn probes(&self) -> Option<SocketAddr> {
        let default = BindAddress(Some(SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 8081)));
        self.given.health_probe_bind_address.unwrap_or(default).0
    }

    /// How long webhooks are answered after a signal.
    pub(super) fn shutdown_delay(&self) -> Duration {
        self.given.shutdown_delay_duration.map(|time| time.0).unwrap_or_default()
    }

    pub(super) fn drain(&self) -> Option<Duration> {
        self.given.graceful_shutdown_timeout.map(|time| time.0)
    }

    /// The namespaces that were given; `None` if that was left to the program.
    pub(super) fn namespaces(&self) -> Option<Vec<String>> {
        self.given.watch_namespaces.clone().map(|namespaces| namespaces.0)
    }

    pub(super) fn http2(&self) -> bool {
        self.given.enable_http2.unwrap_or(true)
    }

    pub(super) fn dry_run(&self) -> bool {
        self.given.dry_run.unwrap_or(false)
    }

    pub(super) fn debugging(&self) -> bool {
        self.given.debugging.unwrap_or(false)
    }

    pub(super) fn log_level(&self) -> &str {
        let given = &self.given;
        let zap = given.zap_log_level.as_ref().map(|level| level.0.as_str());
        let klog = given.v.as_ref().map(|level| level.0.as_str());
        given.log_level.as_deref().or(zap).or(klog).unwrap_or("info")
    }

    pub(super) fn request_timeout(&self) -> Option<Duration> {
        self.given.request_timeout.map(|time| time.0)
    }

    /// The namespace that was given.
    pub(super) fn namespace(&self) -> Option<&str> {
        self.given.namespace.as_deref()
    }

    /// The election, if there is to be one: the program's, or one of its own, each with what was given instead.
    pub(super) fn election(
        &self,
        programmed: Option<LeaderElection>,
        usual: impl FnOnce() -> LeaderElection,
    ) -> Option<LeaderElection> {
        let given = &self.given;
        let mut election = match (given.leader_elect, programmed) {
            (Some(false), _) | (None, None) => return None,
            // A process that was killed in a debugger would keep its next one waiting for an hour.
            (None, Some(_)) if self.debugging() => return None,
            (_, Some(programmed)) => programmed,
            (Some(true), None) => usual(),
        };
        let names = [
            (&mut election.lease, &given.leader_election_id),
            (&mut election.namespace, &given.leader_election_namespace),
        ];
        for (name, given) in names {
            if let Some(given) = given {
                name.clone_from(given);
            }
        }
        let times = [
            (&mut election.duration, given.leader_elect_lease_duration),
            (&mut election.renew_deadline, given.leader_elect_renew_deadline),
            (&mut election.retry_period, given.leader_elect_retry_period),
        ];
        for (time, given) in times {
            *time = given.map_or(*time, |given| given.0);
        }
        Some(election)
    }

    /// The webhook server, unless it is turned off.
    pub(super) fn webhooks(&self, operator: &str, namespace: &str) -> Option<webhook::Server> {
        let given = &self.given;
        if !given.enable_webhooks.unwrap_or(true) {
            return None;
        }
        let host = given.webhook_host.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        let path = given.webhook_cert_path.as_ref();
        let files = path
            .and_then(|path| files(path, given.webhook_cert_name.as_ref(), given.webhook_cert_key.as_ref()));
        Some(webhook::Server {
            address: SocketAddr::new(host, given.webhook_port.unwrap_or(9443)),
            reach: match &given.webhook_url {
                Some(url) => Reach::Url(url.clone()),
                None => manifests::service(operator, namespace),
            },
            certificates: match files {
                Some(Files { certificate, key }) => Certificates::Files { certificate, key },
                None => Certificates::Issued {
                    namespace: namespace.to_owned(),
                    secret: manifests::secret_name(operator),
                },
            },
            http2: self.http2(),
        })
    }
}

#[expect(clippy::unnecessary_wraps, reason = "so that both callers read alike")]
fn files(directory: &Path, certificate: Option<&String>, key: Option<&String>) -> Option<Files> {
    let file = |name: Option<&String>, default: &str| directory.join(name.map_or(default, String::as_str));
    Some(Files { certificate: file(certificate, "tls.crt"), key: file(key, "tls.key") })
}

/// Refuses keys that nobody reads: a misspelt setting must not be a silent default.
fn check_keys(path: &Path, parsed: &Value) -> Result<(), Error> {
    let command = Given::augment_args(Command::new("settings"));
    let mut known: Vec<&str> = command
        .get_arguments()
        .flat_map(|argument| {
            let aliases = argument.get_visible_aliases().unwrap_or_default();
            argument.get_long().into_iter().chain(aliases)
        })
        .collect();
    known.push("controllers");
    let mut keys = parsed.as_object().into_iter().flat_map(|keys| keys.keys());
    let Some(key) = keys.find(|key| !known.contains(&key.as_str())) else { return Ok(()) };
    let alike = |name: &&&str| (strsim::jaro_winkler(key, name) * 1000.0) as u32;
    let nearest = known.iter().max_by_key(alike).map_or(String::new(), |name| (*name).to_owned());
    Err(Error::Unknown { path: path.to_owned(), key: key.clone(), nearest })
}

/// Leaves kinds alone.
pub(super) fn disable(operator: &mut super::Operator, kinds: Option<&Kinds>) -> Result<(), Error> {
    let known: Vec<String> = operator.crds().iter().filter_map(|crd| crd.metadata.name.clone()).collect();
    for name in kinds.into_iter().flat_map(|kinds| &kinds.0) {
        if !operator.disable_kind(name) {
            return Err(Error::Kind { name: name.clone(), known: known.join(", ") });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
