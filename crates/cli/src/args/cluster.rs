//! `windlass cluster`, and the flags of every command that runs an embedded cluster.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{output::OutputArgs, page::PageArgs, project::ConnectionArgs};
use crate::{
    clusters::{DEFAULT, check_name},
    server::ServerArgs,
};

const EXAMPLES: &str = "\
Examples:
  windlass cluster up                   until Ctrl-C
  windlass cluster up --detach          in the background
  export KUBECONFIG=$(windlass cluster kubeconfig)
  windlass cluster up --detach --name other --nodes 3
  windlass cluster status
  windlass cluster reset --name other   empty it
  windlass cluster backup shop.backup
  windlass cluster restore shop.backup --name copy
  windlass cluster import --context staging --name staging
  windlass cluster down";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ClusterGroup {
    #[command(subcommand)]
    pub(crate) command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterCommand {
    /// Run the embedded cluster, without operators, until Ctrl-C or in the background
    Up(Box<UpArgs>),
    /// Stop a cluster that has a name; what it keeps stays
    Down(NameArgs),
    /// List the clusters that have a name, and how they are
    Status(StatusArgs),
    /// Print where the kubeconfig of a running cluster is
    Kubeconfig(KubeconfigArgs),
    /// Throw all objects of a cluster away; one that runs starts anew, empty
    Reset(NameArgs),
    /// Write all objects of a cluster to a file, whether it runs or not
    Backup(BackupArgs),
    /// Make a new cluster of a backup
    Restore(RestoreArgs),
    /// Make a new cluster of the objects of another one, which is only read
    Import(ImportArgs),
}

#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file, which must not be there yet. It holds Secrets
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) cluster: NameArgs,

    /// The objects of this data directory, in place of a cluster that has a name
    #[arg(long, value_name = "DIR", value_parser = directory(), conflicts_with = "name")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// What `windlass cluster backup` wrote
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The name of the new cluster, which must not be there yet
    #[arg(long, value_name = "NAME", default_value = DEFAULT, value_parser = check_name)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass cluster import --context staging --name staging
  windlass cluster import -n shop -n billing --secrets --name shop
  windlass cluster import --kind deployments.apps --kind ConfigMap --name some")]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    /// The name of the new cluster, which must not be there yet
    #[arg(long, value_name = "NAME", default_value = DEFAULT, value_parser = check_name)]
    pub(crate) name: String,

    /// Only this namespace, and no objects outside of namespaces but definitions of kinds; may be repeated
    #[arg(long, short, value_name = "NAMESPACE")]
    pub(crate) namespace: Vec<String>,

    /// Only this kind, as `kubectl api-resources` lists it, such as deployments.apps; may be repeated
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Vec<String>,

    /// Secrets as well
    #[arg(long)]
    pub(crate) secrets: bool,

    /// Leave out what the new cluster refuses, in place of making none
    #[arg(long)]
    pub(crate) keep_going: bool,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct ClusterArgs {
    /// Where to write the kubeconfig, which is removed at the end [default: .windlass/kubeconfig]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,

    /// The port of the API server on 127.0.0.1; 0 takes any that is free, with --data-dir that of the last time
    #[arg(long, short, value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,

    /// Keep everything in this directory: it is there again at the next start [default: in memory]
    #[arg(long, value_name = "DIR", value_parser = directory())]
    pub(crate) data_dir: Option<PathBuf>,

    /// Do not wait for the disk at every write: faster, safe against kill -9, not against a power cut
    #[arg(long)]
    pub(crate) unsafe_no_fsync: bool,

    /// How many simulated nodes there are
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) nodes: u16,

    #[command(flatten)]
    pub(crate) page: PageArgs,
}

impl ClusterArgs {
    /// Where the cluster is kept, in words.
    pub(crate) fn place(&self) -> String {
        self.data_dir.as_ref().map_or_else(|| "in memory".into(), |path| format!("in {}", path.display()))
    }

    /// Where the kubeconfig is to be.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.clone().unwrap_or_else(|| PathBuf::from(".windlass").join("kubeconfig"))
    }
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,

    /// A name by which the other commands find the cluster; one with a name keeps its objects
    #[arg(long, value_name = "NAME", value_parser = check_name)]
    name: Option<String>,

    /// Run in the background, until `windlass cluster down`
    #[arg(long, short)]
    pub(crate) detach: bool,

    /// Keep the objects of a cluster that has a name in memory alone
    #[arg(long, conflicts_with = "data_dir")]
    pub(crate) in_memory: bool,

    /// This is the process in the background
    #[arg(long, hide = true, requires = "name", conflicts_with = "detach")]
    pub(crate) background: bool,
}

impl UpArgs {
    /// The name, if it has one: what runs in the background always does.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref().or_else(|| self.detach.then_some(DEFAULT))
    }

    /// The same cluster once more in the background, empty.
    pub(crate) fn again(name: &str, facts: &crate::clusters::Facts) -> Self {
        Self {
            cluster: ClusterArgs {
                kubeconfig: Some(facts.kubeconfig.clone()),
                port: facts.port,
                data_dir: None,
                unsafe_no_fsync: !facts.fsync,
                nodes: facts.nodes,
                page: PageArgs { page_port: 0, no_page: facts.page.is_none() },
            },
            server: (*facts.server).clone(),
            name: Some(name.to_owned()),
            detach: true,
            in_memory: facts.data_dir.is_none(),
            background: false,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct NameArgs {
    /// Which cluster
    #[arg(long, value_name = "NAME", default_value = DEFAULT, value_parser = check_name)]
    pub(crate) name: String,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// This cluster only
    #[arg(long, value_name = "NAME", value_parser = check_name)]
    pub(crate) name: Option<String>,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct KubeconfigArgs {
    #[command(flatten)]
    pub(crate) cluster: NameArgs,

    /// Print what is in it, which holds a key to the cluster
    #[arg(long)]
    pub(crate) print: bool,
}

/// A path that could be a directory. An empty one comes from an unset shell variable.
fn directory() -> impl clap::builder::TypedValueParser<Value = PathBuf> {
    use clap::builder::{NonEmptyStringValueParser, TypedValueParser};
    NonEmptyStringValueParser::new().map(PathBuf::from)
}
