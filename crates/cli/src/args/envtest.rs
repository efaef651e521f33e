//! `windlass envtest`.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  export KUBEBUILDER_ASSETS=$(windlass envtest)
  go test ./...
  windlass envtest --controllers
  windlass envtest --dir bin/assets")]
pub(crate) struct EnvtestArgs {
    /// With controllers and a simulated node: Deployments become Ready, namespaces go away, owners take their children
    /// with them
    #[arg(long)]
    pub(crate) controllers: bool,

    /// The directory; one of the user's cache unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}
