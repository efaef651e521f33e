//! The command line, and nothing else: what each flag means to a user stands here once.

mod cluster;
mod crd;
mod deploy;
mod dev;
mod envtest;
mod image;
mod operators;
mod output;
mod package;
mod page;
mod project;
mod top;

use clap::{ArgAction, Parser, Subcommand};
use clap_complete::Shell;

pub(crate) mod scaffold;

pub(crate) use self::{
    cluster::{
        BackupArgs, ClusterArgs, ClusterCommand, ClusterGroup, ImportArgs, KubeconfigArgs, NameArgs,
        RestoreArgs, StatusArgs, UpArgs,
    },
    crd::{CrdCommand, DiffArgs, Output},
    deploy::{
        DeployArgs, InstallArgs, OperatorsDeployArgs, OperatorsInstallArgs, OperatorsUndeployArgs,
        OperatorsUninstallArgs, PlacedArgs, ProjectDeployArgs, ProjectInstallArgs, ProjectUndeployArgs,
        ProjectUninstallArgs, SafetyArgs, UndeployArgs, UninstallArgs,
    },
    dev::DevArgs,
    envtest::EnvtestArgs,
    image::{
        Destination, Engine, ImageBuildArgs, ImageCommand, ImageLoadArgs, ImagePushArgs, RegistryArgs, Source,
    },
    operators::{OperatorsCommand, RunArgs},
    output::Format,
    package::{
        BundleArgs, BundleCommand, BundleMakeArgs, CatalogAddArgs, CatalogCommand, CatalogRenderArgs,
        ChannelArgs, FactsArgs, ManifestsArgs, OperatorsBundleArgs, OperatorsManifestsArgs, PackageFormat,
        WriteArgs,
    },
    page::{HistoryArgs, PageArgs, SinceArgs, UiArgs},
    project::{ConnectionArgs, DoctorArgs, ExplainRbacArgs, ProjectRunArgs},
    top::TopArgs,
};
use scaffold::{CreateCommand, DeleteCommand, InitArgs, UpgradeArgs};

/// Write, run, prove and ship Kubernetes operators.
#[derive(Debug, Parser)]
#[command(name = "windlass", version, arg_required_else_help = true)]
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
    /// Make a project: an operator that builds, tests and runs at once
    #[command(after_help = scaffold::INIT_EXAMPLES)]
    Init(InitArgs),
    /// Add a kind or a webhook to the project
    #[command(subcommand)]
    Create(CreateCommand),
    /// Remove a kind or a webhook from the project
    #[command(subcommand)]
    Delete(DeleteCommand),
    /// Bring what was scaffolded to this version of windlass; what you changed stays
    #[command(after_help = scaffold::UPGRADE_EXAMPLES)]
    Upgrade(UpgradeArgs),
    /// Run an embedded cluster with the project's operator and samples, rebuilt on every change, until Ctrl-C; outside a
    /// project, with Windlass' own operators
    Dev(DevArgs),
    /// Build the project's operator and run it here, on the current kubeconfig's cluster
    Run(ProjectRunArgs),
    /// Write what runs the project's operator in a cluster: as config/, YAML, a Helm chart or a bundle for OLM
    Manifests(Box<ManifestsArgs>),
    /// Apply the project's CRDs to the cluster of the kubeconfig
    #[command(after_help = deploy::INSTALL_EXAMPLES)]
    Install(ProjectInstallArgs),
    /// Delete the project's CRDs; those with objects only when their number is said
    #[command(after_help = deploy::UNINSTALL_EXAMPLES)]
    Uninstall(ProjectUninstallArgs),
    /// Deploy the project's operator, or upgrade it, and wait until it is ready
    #[command(after_help = deploy::DEPLOY_EXAMPLES)]
    Deploy(ProjectDeployArgs),
    /// Take the project's operator out of the cluster; CRDs and their objects stay
    #[command(after_help = deploy::UNDEPLOY_EXAMPLES)]
    Undeploy(ProjectUndeployArgs),
    /// Write bundle/, a version of the project's operator for the Operator Lifecycle Manager
    Bundle(Box<BundleArgs>),
    /// A catalogue of bundles, from which the Operator Lifecycle Manager installs and upgrades
    #[command(subcommand)]
    Catalog(CatalogCommand),
    /// Show every permission of the project's operator, and the line of code that asked for it
    ExplainRbac(ExplainRbacArgs),
    /// The operator's image, without Docker: build it, push it, load it
    #[command(subcommand)]
    Image(ImageCommand),
    /// Look whether everything is there that Windlass, the project and its cluster need
    Doctor(DoctorArgs),
    /// Show a cluster in the browser: its objects, what happens to them, and what operators do
    Ui(UiArgs),
    /// Show a cluster in the terminal: its objects as a tree, what operators do, events and logs; in a pipe, the tree once
    Top(TopArgs),
    /// Show what an object was before, and who wrote it, as far as the cluster still knows
    History(HistoryArgs),
    /// Show what has changed in a cluster
    Diff(SinceArgs),
    /// The embedded cluster on its own, in the foreground or the background
    Cluster(ClusterGroup),
    /// Print a directory for KUBEBUILDER_ASSETS: Windlass in the place of etcd and kube-apiserver, for tests in Go, Java and
    /// other languages
    Envtest(EnvtestArgs),
    /// The operators, on a cluster of yours
    #[command(subcommand)]
    Operators(OperatorsCommand),
    /// CustomResourceDefinitions
    #[command(subcommand)]
    Crd(CrdCommand),
    /// Print the version of windlass and of the Kubernetes API that it serves
    Version,
    /// Print a completion script for a shell
    Completion {
        /// The shell
        shell: Shell,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_contradicts_itself_nowhere() {
        Cli::command().debug_assert();
    }

    fn all(command: &clap::Command) -> Vec<clap::Command> {
        let below = command.get_subcommands().flat_map(all);
        std::iter::once(command.clone()).chain(below).collect()
    }

    #[test]
    fn help_is_ascii_and_fits_into_60_columns() {
        let mut cli = Cli::command().term_width(60);
        cli.build();
        for mut command in all(&cli) {
            for help in [command.render_help().to_string(), command.render_long_help().to_string()] {
                assert!(help.is_ascii(), "{help}");
                // The usage is one line for whoever copies it.
                let wide = help.lines().find(|line| line.len() > 60 && !line.starts_with("Usage:"));
                assert_eq!(wide, None, "in the help of {}", command.get_name());
            }
        }
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
