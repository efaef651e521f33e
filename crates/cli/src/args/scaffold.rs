//! The arguments of the commands that make and change a project.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

pub(crate) const INIT_EXAMPLES: &str = "Examples:
  windlass init memcached-operator --domain example.com
  windlass init . --domain example.com --license mit
  windlass init shop --domain example.com --sdk ../windlass
  windlass init shop --from-kubebuilder ../shop-in-go";

pub(crate) const API_EXAMPLES: &str = "Examples:
  windlass create api --group cache --version v1alpha1 \\
      --kind Memcached
  windlass create api --group web --version v1 --kind Site \\
      --image nginx:1.29 --port 80
  windlass create api --external --group apps --version v1 \\
      --kind Deployment
  windlass create api --from-crd certificates.yaml
  windlass create api        # asks for what is missing";

pub(crate) const WEBHOOK_EXAMPLES: &str = "Examples:
  windlass create webhook --group cache --version v1alpha1 \\
      --kind Memcached --defaulting --validation";

pub(crate) const DELETE_EXAMPLES: &str = "Examples:
  windlass delete api --group cache --version v1alpha1 \\
      --kind Memcached";

pub(crate) const UPGRADE_EXAMPLES: &str = "Examples:
  windlass upgrade --dry-run     # what would change
  windlass upgrade";

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The name of the project and of its folder; `.` takes the folder that you are in [default: the Go project's name,
    /// with --from-kubebuilder]
    #[arg(required_unless_present = "from_kubebuilder")]
    pub(crate) name: Option<PathBuf>,

    /// Take over the kinds, samples and permissions of this Go project, and list what is left to port
    #[arg(long, value_name = "DIR", conflicts_with = "domain")]
    pub(crate) from_kubebuilder: Option<PathBuf>,

    /// What the API groups of its kinds end with
    #[arg(long, value_name = "DOMAIN")]
    pub(crate) domain: Option<String>,

    /// Where its source will be, such as github.com/example/memcached-operator
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) repo: Option<String>,

    /// The licence to put into it
    #[arg(long, value_enum, default_value_t)]
    pub(crate) license: License,

    /// Who holds the copyright
    #[arg(long, value_name = "NAME")]
    pub(crate) owner: Option<String>,

    /// Take the SDK from a checkout or a git repository instead of the registry
    #[arg(long, value_name = "PATH|URL", env = "WINDLASS_SDK")]
    pub(crate) sdk: Option<String>,

    /// With --from-kubebuilder, write config/ afterwards, which builds the project
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, requires = "from_kubebuilder")]
    pub(crate) make: bool,

    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum License {
    #[default]
    None,
    Mit,
    #[value(name = "apache-2.0", alias = "apache2")]
    Apache,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CreateCommand {
    /// Add a kind: its types, a controller, a sample and tests; or another version of one
    #[command(after_help = API_EXAMPLES)]
    Api(Box<ApiArgs>),
    /// Add webhooks to a kind, and their tests
    #[command(after_help = WEBHOOK_EXAMPLES)]
    Webhook(WebhookArgs),
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeleteCommand {
    /// Remove a kind, or a version of one: what was scaffolded and not changed
    #[command(after_help = DELETE_EXAMPLES)]
    Api(DeleteApiArgs),
    /// Remove webhooks of a kind; without flags, those that default and validate
    Webhook(WebhookArgs),
}

/// Which kind.
#[derive(Clone, Debug, Args)]
pub(crate) struct KindArgs {
    /// The group of the kind, to which the project's domain is added
    #[arg(long, value_name = "GROUP")]
    pub(crate) group: Option<String>,

    /// The version: v1, v1alpha1, v1beta1
    // Named like kubebuilder's; `windlass --version` is another command's flag.
    #[arg(long = "version", value_name = "VERSION", id = "kind_version")]
    pub(crate) version: Option<String>,

    /// The kind, in PascalCase
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
}

/// What goes with every change of a project.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChangeArgs {
    /// Write config/ afterwards, which builds the project
    #[arg(long, value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub(crate) make: bool,

    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    #[command(flatten)]
    pub(crate) of: KindArgs,

    /// The plural, if the regular one is wrong
    #[arg(long, value_name = "PLURAL")]
    pub(crate) plural: Option<String>,

    /// Whether its objects are in namespaces [default: true]
    #[arg(long, value_name = "BOOL", default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub(crate) namespaced: Option<bool>,

    /// Whether to make the kind's types; `false` means --external [default: true]
    #[arg(long, value_name = "BOOL", default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub(crate) resource: Option<bool>,

    /// Whether to make a controller [default: true]
    #[arg(long, value_name = "BOOL", default_missing_value = "true", num_args = 0..=1, require_equals = true)]
    pub(crate) controller: Option<bool>,

    /// Only a controller, for a kind that somebody else defines; --group is then its whole API group, such as apps
    #[arg(long)]
    pub(crate) external: bool,

    /// The same with Rust types, which are made from the CRD in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) from_crd: Option<PathBuf>,

    /// Make an operator that runs this image: Deployment, Service, conditions, events
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,

    /// The port that the image listens on [default: 80]
    #[arg(long, value_name = "PORT", requires = "image", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) port: Option<u16>,

    /// The user that the image runs as; its Pods then meet the Pod Security Standard "restricted"
    #[arg(long, value_name = "UID", requires = "image", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) run_as_user: Option<u32>,

    /// Keep objects until they have been cleaned up after
    #[arg(long)]
    pub(crate) finalizer: bool,

    /// Of a further version: store this one from now on, and convert the others to and from it
    #[arg(long)]
    pub(crate) hub: bool,

    /// Write the kind's files anew, also those that were changed
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WebhookArgs {
    #[command(flatten)]
    pub(crate) of: KindArgs,

    /// Fill in what a user left out
    #[arg(long)]
    pub(crate) defaulting: bool,

    /// Judge objects before they are stored
    #[arg(long, visible_alias = "programmatic-validation")]
    pub(crate) validation: bool,

    /// Convert between versions; comes with the second version of a kind
    #[arg(long)]
    pub(crate) conversion: bool,

    /// Overwrite or remove files that were changed by hand
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteApiArgs {
    #[command(flatten)]
    pub(crate) of: KindArgs,

    /// Remove files that were changed by hand, too
    #[arg(long)]
    pub(crate) force: bool,

    #[command(flatten)]
    pub(crate) change: ChangeArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeArgs {
    /// Write both sides of a conflict into the file, between marks; without it, the file stays as it is
    #[arg(long)]
    pub(crate) conflict_markers: bool,

    /// Print what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
