//! The command line, and nothing else: what each flag means to a user stands here once.

use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand};
use clap_complete::Shell;

/// Write, run, prove and ship Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,

    /// Log more: -v what the operators do, -vv debug, -vvv everything (RUST_LOG overrides)
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,

    /// Print errors only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run an embedded cluster with the operators and their samples, until Ctrl-C
    Dev(DevArgs),
    /// The embedded cluster on its own
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// The operators, on a cluster of yours
    #[command(subcommand)]
    Operators(OperatorsCommand),
    /// Print the version of windlass and of the Kubernetes API that it serves
    Version,
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: Shell,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Run the embedded cluster, without operators, until Ctrl-C
    Up(ClusterArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorsCommand {
    /// Install the CRDs and run the operators on a cluster, until Ctrl-C
    Run(RunArgs),
    /// Write everything that runs the operators in a cluster: CRDs, RBAC, a Deployment, samples
    Manifests {
        /// The directory to write to; `kubectl apply -k DIR/default` deploys from it
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The kubeconfig; if unset, $KUBECONFIG, ~/.kube/config, or the Pod's own service account
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The kubeconfig's context; if unset, the current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,

    /// Run these operators only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,

    /// Apply the samples to the kubeconfig's namespace
    #[arg(long)]
    pub(crate) samples: bool,

    /// Expect the CRDs to be there, rather than install them
    #[arg(long)]
    pub(crate) no_crds: bool,

    /// Serve webhooks at this https://HOST:PORT of this machine; without it, kinds are served in one version only
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Where to write the kubeconfig; it is removed at the end
    #[arg(long, value_name = "FILE", default_value = ".windlass/kubeconfig")]
    pub(crate) kubeconfig: PathBuf,

    /// The port of the API server on 127.0.0.1; 0 takes any that is free, with --data-dir that of the last time
    #[arg(long, short, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Keep everything in this directory: it is there again at the next start [default: in memory]
    #[arg(long, value_name = "DIR", value_parser = directory())]
    pub(crate) data_dir: Option<PathBuf>,

    /// Do not wait for the disk at every write: faster, safe against kill -9, not against a power cut
    #[arg(long, requires = "data_dir")]
    pub(crate) unsafe_no_fsync: bool,

    /// How many simulated nodes there are
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) nodes: u16,
}

impl ClusterArgs {
    /// Where the cluster is kept, in words.
    pub(crate) fn place(&self) -> String {
        self.data_dir.as_ref().map_or_else(|| "in memory".into(), |path| format!("in {}", path.display()))
    }
}

/// A path that could be a directory. An empty one comes from an unset shell variable.
fn directory() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
    NonEmptyStringValueParser::new().map(PathBuf::from)
}

#[derive(Debug, Args)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Do not apply the samples
    #[arg(long)]
    pub(crate) no_samples: bool,

    /// Run these operators only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,
}

fn operator_names() -> clap::builder::PossibleValuesParser {
    windlass_operators::catalogue().iter().map(|entry| entry.name).into()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    #[test]
    fn an_empty_data_directory_is_refused() {
        let error = Cli::try_parse_from(["windlass", "cluster", "up", "--data-dir", ""]).unwrap_err();
        assert!(error.to_string().contains("a value is required for '--data-dir <DIR>'"), "{error}");
    }

    #[test]
    fn an_unknown_operator_is_refused_with_the_known_ones() {
        let error = Cli::try_parse_from(["windlass", "dev", "--only", "nothing"]).unwrap_err();
        assert!(error.to_string().contains("[possible values: podmanager, webserver"), "{error}");
    }
}
