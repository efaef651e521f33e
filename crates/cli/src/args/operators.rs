//! `windlass operators`: the seven operators on a cluster of the user's.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::deploy::{
    OperatorsDeployArgs, OperatorsInstallArgs, OperatorsUndeployArgs, OperatorsUninstallArgs,
};
use super::package::{OperatorsBundleArgs, OperatorsManifestsArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum OperatorsCommand {
    /// Install the CRDs and run the operators on a cluster, until Ctrl-C
    Run(RunArgs),
    /// Write everything that runs the operators in a cluster: CRDs, RBAC, a Deployment, samples
    Manifests(Box<OperatorsManifestsArgs>),
    /// Write bundle/ for the Operator Lifecycle Manager
    Bundle(Box<OperatorsBundleArgs>),
    /// Apply the CRDs to the cluster of the kubeconfig
    Install(OperatorsInstallArgs),
    /// Delete the CRDs; those with objects only when their number is said
    Uninstall(OperatorsUninstallArgs),
    /// Deploy the operators, or upgrade them, and wait until they are ready
    Deploy(OperatorsDeployArgs),
    /// Take the operators out of the cluster; CRDs and their objects stay
    Undeploy(OperatorsUndeployArgs),
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

/// The names of the seven operators.
pub(super) fn operator_names() -> clap::builder::PossibleValuesParser {
    windlass_operators::catalogue().iter().map(|entry| entry.name).into()
}
