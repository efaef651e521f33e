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

#[derive(Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Where to write the kubeconfig; it is removed at the end
    #[arg(long, value_name = "FILE", default_value = ".windlass/kubeconfig")]
    pub(crate) kubeconfig: PathBuf,

    /// The port of the API server on 127.0.0.1; 0 takes any that is free
    #[arg(long, short, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
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
    fn an_unknown_operator_is_refused_with_the_known_ones() {
        let error = Cli::try_parse_from(["windlass", "dev", "--only", "nothing"]).unwrap_err();
        assert!(error.to_string().contains("[possible values: webserver"), "{error}");
    }
}
