//! What ships an operator: manifests in every format, bundles, catalogues.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum};

use super::{deploy::PlacedArgs, operators::operator_names, output::OutputArgs};

/// In what form an operator is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum PackageFormat {
    /// The files of config/, as kubebuilder lays them out
    #[default]
    Kustomize,
    /// One stream of objects, for kubectl apply
    Yaml,
    /// A Helm chart
    Helm,
    /// A bundle for the Operator Lifecycle Manager
    Olm,
}

/// How files are written.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct WriteArgs {
    /// Write nothing, and fail if a file differs
    #[arg(long, conflicts_with_all = ["dry_run", "force"])]
    pub(crate) check: bool,

    /// Write nothing, and say what would be written
    #[arg(long)]
    pub(crate) dry_run: bool,

    /// Replace also files that were changed by hand
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// What is told about an operator. What a project's Cargo.toml says is the default of all of it.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct FactsArgs {
    /// The image of the operator
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,

    /// The version; that of the package unless given
    #[arg(long, value_name = "VERSION")]
    pub(crate) version: Option<String>,

    /// Who can be asked, as 'NAME <MAIL>'; several times for several
    #[arg(long = "maintainer", value_name = "NAME")]
    pub(crate) maintainers: Vec<String>,

    /// Who provides the operator
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<String>,

    /// A picture: an .svg, .png, .jpg or .gif
    #[arg(long, value_name = "FILE")]
    pub(crate) icon: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass manifests           write config/
  windlass manifests --check   fail if it is out of step
  windlass manifests --format helm --image shop:1.2
  windlass manifests --format yaml | kubectl apply -f -
  windlass manifests --only cart -- --replicas 2")]
pub(crate) struct ManifestsArgs {
    /// In what form
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PackageFormat,

    /// The directory to write to; config, chart, or for OLM the project's; YAML is printed without it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// These kinds only, by their names in lower case
    #[arg(long, value_name = "KIND", value_delimiter = ',')]
    pub(crate) only: Vec<String>,

    #[command(flatten)]
    pub(crate) facts: FactsArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

/// How a version is offered, and what it follows.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ChannelArgs {
    /// The channels of the version; candidate before 1.0.0, then stable, unless given
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) channels: Vec<String>,

    /// The channel of whoever names none; the first unless given
    #[arg(long, value_name = "NAME")]
    pub(crate) default_channel: Option<String>,

    /// The version that this one replaces: 0.1.0, or NAME.v0.1.0
    #[arg(long, value_name = "VERSION")]
    pub(crate) replaces: Option<String>,

    /// Versions that nobody needs to go through
    #[arg(long, value_name = "VERSION", value_delimiter = ',')]
    pub(crate) skips: Vec<String>,

    /// Versions that lead here at once: '>=0.1.0 <0.3.0'
    #[arg(long, value_name = "RANGE")]
    pub(crate) skip_range: Option<String>,

    /// Architectures of the image beside amd64
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    pub(crate) arch: Vec<String>,
}

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  windlass bundle --version 0.2.0 --image shop:0.2.0
  windlass bundle --version 0.3.0 --image shop:0.3.0 \\
    --replaces 0.2.0 --channels stable,candidate
  windlass bundle validate bundle"
)]
pub(crate) struct BundleArgs {
    #[command(subcommand)]
    pub(crate) command: Option<BundleCommand>,

    #[command(flatten)]
    pub(crate) make: BundleMakeArgs,
}

#[derive(Debug, Default, Args)]
pub(crate) struct BundleMakeArgs {
    #[command(flatten)]
    pub(crate) facts: FactsArgs,

    #[command(flatten)]
    pub(crate) channels: ChannelArgs,

    /// The directory for bundle/ and bundle.Dockerfile; the project's unless given
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) write: WriteArgs,

    /// Arguments for the `manifests` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BundleCommand {
    /// Look whether a bundle is whole
    Validate {
        /// The directory of the bundle
        #[arg(value_name = "DIR", default_value = "bundle")]
        bundle: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum CatalogCommand {
    /// Add versions to a catalogue; those that are in it stay
    Add(CatalogAddArgs),
    /// Print a catalogue
    Render(CatalogRenderArgs),
    /// Look whether a catalogue is whole
    Validate {
        /// The directory of the catalogue
        #[arg(value_name = "DIR", default_value = "catalog")]
        catalog: PathBuf,
    },
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass catalog add
  windlass catalog add bundle --image shop-bundle:0.2.0
  windlass catalog add v1/bundle v2/bundle --out catalog")]
pub(crate) struct CatalogAddArgs {
    /// The directories of the bundles
    #[arg(value_name = "DIR", default_value = "bundle")]
    pub(crate) bundles: Vec<PathBuf>,

    /// The image of the bundle, which OLM pulls; without it the catalogue holds all that the bundle holds
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,

    /// The directory of the catalogue
    #[arg(long, value_name = "DIR", default_value = "catalog")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass catalog render
  windlass catalog render catalog -o json | jq .name")]
pub(crate) struct CatalogRenderArgs {
    /// The directory of the catalogue
    #[arg(value_name = "DIR", default_value = "catalog")]
    pub(crate) catalog: PathBuf,

    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

/// `windlass operators manifests`: the seven operators, or those that are chosen.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass operators manifests --out config
  windlass operators manifests --only memcached \\
    --format helm --out chart
  windlass operators manifests --name-prefix pod-operator- \\
    --metrics-bind-address :8080 --metrics-secure=false")]
pub(crate) struct OperatorsManifestsArgs {
    /// In what form
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: PackageFormat,

    /// The directory to write to: config, chart or this one unless given; YAML is printed without it
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// These operators only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,

    #[command(flatten)]
    pub(crate) placed: PlacedArgs,

    #[command(flatten)]
    pub(crate) facts: FactsArgs,

    #[command(flatten)]
    pub(crate) write: WriteArgs,
}

/// `windlass operators bundle`: the same for OLM.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  windlass operators bundle --out dist
  windlass operators bundle --only memcached --out dist")]
pub(crate) struct OperatorsBundleArgs {
    /// These operators only
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,

    #[command(flatten)]
    pub(crate) placed: PlacedArgs,

    #[command(flatten)]
    pub(crate) facts: FactsArgs,

    #[command(flatten)]
    pub(crate) channels: ChannelArgs,

    /// The directory for bundle/ and bundle.Dockerfile
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    #[command(flatten)]
    pub(crate) write: WriteArgs,
}
