//! `install`, `uninstall`, `deploy` and `undeploy`: of the project's operator, and under `operators` of the seven.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use clap::Args;
use windlass::{CertificateSource, MetricsEndpoint, Placement};

use super::{operators::operator_names, project::ConnectionArgs};

pub(super) const INSTALL_EXAMPLES: &str = "\
Examples:
  windlass install
  windlass install --dry-run";

pub(super) const UNINSTALL_EXAMPLES: &str = "\
Examples:
  windlass uninstall
  windlass uninstall --delete-objects=3";

pub(super) const DEPLOY_EXAMPLES: &str = "\
Examples:
  windlass deploy --image example.com/shop:v1
  windlass deploy --image example.com/shop:v2 --dry-run
  windlass deploy --undo
  kustomize build overlay | windlass deploy -f -";

pub(super) const UNDEPLOY_EXAMPLES: &str = "\
Examples:
  windlass undeploy
  windlass undeploy --delete-objects=3";

/// Where the operator comes from: a project, or the seven.
#[derive(Debug, Args)]
pub(crate) struct ProjectInstallArgs {
    #[command(flatten)]
    pub(crate) common: InstallArgs,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectUninstallArgs {
    #[command(flatten)]
    pub(crate) common: UninstallArgs,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectDeployArgs {
    #[command(flatten)]
    pub(crate) common: DeployArgs,

    /// Deploy the objects of this file, directory or stdin (-) in place of what the project's operator prints
    #[arg(long, short, value_name = "FILE", conflicts_with_all = ["image", "replicas"])]
    pub(crate) file: Option<PathBuf>,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ProjectUndeployArgs {
    #[command(flatten)]
    pub(crate) common: UndeployArgs,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

/// Which of the seven.
#[derive(Clone, Debug, Args)]
pub(crate) struct OnlyArgs {
    /// These operators only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,
}

/// By which names they run, and where their metrics are.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct PlacedArgs {
    /// Name everything as kubebuilder does behind this prefix: `pod-operator-` makes the Deployment
    /// `pod-operator-controller-manager`
    #[arg(long, value_name = "PREFIX")]
    pub(crate) name_prefix: Option<String>,

    /// Let cert-manager issue the certificate of the webhooks instead of the operator; a chart has a value for that, which
    /// this turns on
    #[arg(long)]
    pub(crate) cert_manager: bool,

    /// Where the Pods serve /metrics, as :PORT [default: :8443]
    #[arg(long, value_name = "ADDRESS", value_parser = MetricsEndpoint::parse_port)]
    pub(crate) metrics_bind_address: Option<u16>,

    /// Serve metrics with TLS, and only to whom the API server lets read them [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub(crate) metrics_secure: Option<bool>,

    /// Secrets with which the image is pulled, by their names in the operator's namespace, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', visible_alias = "image-pull-secret")]
    pub(crate) image_pull_secrets: Vec<String>,
}

impl PlacedArgs {
    /// What was asked for, in place of what is usual.
    pub(crate) fn over(&self, usual: Placement) -> Placement {
        let metrics = MetricsEndpoint {
            port: self.metrics_bind_address.unwrap_or(usual.metrics.port),
            secure: self.metrics_secure.unwrap_or(usual.metrics.secure),
        };
        let certificates =
            if self.cert_manager { CertificateSource::CertManager } else { usual.certificates };
        let name_prefix = self.name_prefix.clone().or(usual.name_prefix);
        let image_pull_secrets = if self.image_pull_secrets.is_empty() {
            usual.image_pull_secrets
        } else {
            self.image_pull_secrets.clone()
        };
        Placement { name_prefix, certificates, metrics, image_pull_secrets, ..usual }
    }

    /// The flags once more, for a command that somebody is to copy.
    pub(crate) fn flags(&self) -> String {
        let flags = [
            self.name_prefix.as_ref().map(|prefix| format!(" --name-prefix {prefix}")),
            self.cert_manager.then(|| " --cert-manager".to_owned()),
            self.metrics_bind_address.map(|port| format!(" --metrics-bind-address :{port}")),
            self.metrics_secure.map(|secure| format!(" --metrics-secure={secure}")),
            (!self.image_pull_secrets.is_empty())
                .then(|| format!(" --image-pull-secrets {}", self.image_pull_secrets.join(","))),
        ];
        flags.into_iter().flatten().collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsInstallArgs {
    #[command(flatten)]
    pub(crate) common: InstallArgs,
    #[command(flatten)]
    pub(crate) which: OnlyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsUninstallArgs {
    #[command(flatten)]
    pub(crate) common: UninstallArgs,
    #[command(flatten)]
    pub(crate) which: OnlyArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsDeployArgs {
    #[command(flatten)]
    pub(crate) common: DeployArgs,
    #[command(flatten)]
    pub(crate) which: OnlyArgs,
    #[command(flatten)]
    pub(crate) placed: PlacedArgs,
}

#[derive(Debug, Args)]
pub(crate) struct OperatorsUndeployArgs {
    #[command(flatten)]
    pub(crate) common: UndeployArgs,
    #[command(flatten)]
    pub(crate) which: OnlyArgs,
    #[command(flatten)]
    pub(crate) placed: PlacedArgs,
}

/// What may be overruled.
#[derive(Clone, Debug, Args)]
pub(crate) struct SafetyArgs {
    /// Take over objects that others have applied
    #[arg(long)]
    pub(crate) force_conflicts: bool,

    /// Apply CRDs also where stored objects lose fields
    #[arg(long)]
    pub(crate) allow_breaking: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) safety: SafetyArgs,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// Delete the objects of the CRDs too, if there are this many; without it, windlass asks on a terminal and refuses
    /// elsewhere
    #[arg(long, value_name = "NUMBER")]
    pub(crate) delete_objects: Option<usize>,

    /// Delete CRDs that others have applied
    #[arg(long)]
    pub(crate) force_conflicts: bool,

    /// How long objects may take to be finalized
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    pub(crate) wait: Duration,

    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// The operator's image; if unset, that of config/manager/kustomization.yaml
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,

    /// The operator's namespace; its name with -system unless given
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// How many replicas
    #[arg(long, value_name = "NUMBER")]
    pub(crate) replicas: Option<u32>,

    #[command(flatten)]
    pub(crate) safety: SafetyArgs,

    /// How long to wait until all is ready; 0 does not wait
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = time)]
    pub(crate) wait: Duration,

    /// Show what would change, line by line, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Bring back what was deployed before
    #[arg(long, visible_alias = "rollback", conflicts_with_all = ["dry_run", "image", "replicas"])]
    pub(crate) undo: bool,

    /// Bring back this revision
    #[arg(long, value_name = "NUMBER", requires = "undo")]
    pub(crate) to_revision: Option<u64>,
}

#[derive(Debug, Args)]
pub(crate) struct UndeployArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// The operator's namespace; its name with -system unless given
    #[arg(long, short, value_name = "NAME")]
    pub(crate) namespace: Option<String>,

    /// Delete all objects of the operator's kinds first, while it still runs, if there are this many
    #[arg(long, value_name = "NUMBER")]
    pub(crate) delete_objects: Option<usize>,

    /// How long objects may take to be finalized
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = time)]
    pub(crate) wait: Duration,

    /// Show what would be deleted, and delete nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `90s`, `5m`, `1h`, or a number of seconds.
fn time(text: &str) -> Result<Duration, String> {
    let wrong = || "write a number of seconds, or a time such as 90s, 5m or 1h".to_owned();
    let (number, unit) = match text.find(|c: char| !c.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => Some(number),
        "m" => number.checked_mul(60),
        "h" => number.checked_mul(3600),
        _ => None,
    };
    seconds.map(Duration::from_secs).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_nonsense_is_not() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(time("0"), Ok(Duration::ZERO));
        for wrong in ["", "m", "5 m", "-1s", "1d", "99999999999999999999s", "9999999999999999999h"] {
            assert!(time(wrong).is_err(), "{wrong}");
        }
    }
}
