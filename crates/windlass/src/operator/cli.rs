//! The command line of an operator's binary: `run`, and what installs and removes it.
//!
//! Enters: arguments and the environment. Leaves: an exit code, YAML on stdout, one clear line on stderr when
//! something is wrong. Flags have controller-runtime's names where it has them.

use std::{ffi::OsString, io::Write, path::PathBuf, process::ExitCode};

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{
    CertificateSource, MetricsEndpoint, Operator, Placement, manifests,
    settings::{Given, Kinds, Namespaces},
};
use crate::error::chain;

mod check;
mod error;
mod explain;
mod files;
mod install;
mod parent;
mod start;

use error::CliError;

#[derive(Debug, Parser)]
#[command(
    version,
    about = "A Kubernetes operator",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the controllers (the default)
    Run(Box<RunArgs>),
    /// Print everything that runs the operator in a cluster; with --out, write it as kubebuilder's config/
    Manifests(ManifestsArgs),
    /// Print the custom resource definitions
    Crds(PrintArgs),
    /// Print the service account, roles and bindings
    Rbac(PlacementArgs),
    /// Print every rule of the roles, with the calls and lines of code that asked for it
    ExplainRbac(explain::ExplainArgs),
    /// Apply the CRDs; with --image, everything that `manifests` prints
    Install(install::InstallArgs),
    /// Delete what `install` applies; the CRDs only with --crds, and those with objects only when their number is said
    Uninstall(install::UninstallArgs),
    /// Ask the cluster whether the operator runs: its kinds are served and a replica leads
    Check(check::CheckArgs),
}

#[derive(Clone, Debug, Args)]
struct RunArgs {
    /// A YAML file with settings, named like the flags; flags and the environment win over it
    #[arg(long, env = "CONFIG_FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    given: Given,
    /// Stop as at a signal once stdin ends: whoever started this process may be gone, and not every system has signals
    #[arg(long, hide = true, env = "WINDLASS_STOP_AT_STDIN_END")]
    stop_at_stdin_end: bool,
}

/// Which cluster.
#[derive(Clone, Debug, Args)]
struct Connection {
    /// The kubeconfig; what KUBECONFIG names, ~/.kube/config or the cluster around the process unless given
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; the current one unless given
    #[arg(long)]
    context: Option<String>,
}

#[derive(Clone, Debug, Args)]
struct PlacementArgs {
    #[command(flatten)]
    place: Target,
    /// The image of the operator; its name with ":latest" unless given
    #[arg(long)]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1)]
    replicas: u32,
    #[command(flatten)]
    print: PrintArgs,
}

/// How objects are printed.
#[derive(Clone, Debug, Args)]
struct PrintArgs {
    /// A stream of YAML documents, or one JSON list
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Format {
    #[default]
    Yaml,
    Json,
}

#[derive(Clone, Debug, Args)]
struct ManifestsArgs {
    #[command(flatten)]
    placement: PlacementArgs,
    /// Write the files of this directory, usually config; the image that it names stays unless --image is given
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write nothing, and fail if a file is not as it would be written
    #[arg(long, requires = "out")]
    check: bool,
    /// Write nothing, and say what would be written
    #[arg(long, requires = "out", conflicts_with = "check")]
    dry_run: bool,
    /// Leave these kinds out, by the names of their CRDs, separated by commas
    #[arg(long, value_name = "CRDS")]
    disable_kinds: Option<Kinds>,
}

/// Where the operator is, or is to be.
#[derive(Clone, Debug, Args)]
struct Target {
    /// The namespace of the operator itself; its name with "-system" unless given
    #[arg(long, short)]
    namespace: Option<String>,
    /// Name everything as kubebuilder does behind this prefix: `pod-operator-` makes the Deployment
    /// `pod-operator-controller-manager`
    #[arg(long, value_name = "PREFIX")]
    name_prefix: Option<String>,
    /// The namespaces that the operator works in, separated by commas; roles are then made for these alone
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACES", visible_alias = "watch-namespace")]
    watch_namespaces: Option<Namespaces>,
    /// Let cert-manager issue the certificate of the webhooks instead of the operator
    #[arg(long)]
    cert_manager: bool,
    /// Where the Pods serve /metrics, as :PORT [default: :8443]
    #[arg(long, value_name = "ADDRESS", value_parser = MetricsEndpoint::parse_port)]
    metrics_bind_address: Option<u16>,
    /// Serve metrics with TLS, and only to whom the API server lets read them [default: true]
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    metrics_secure: Option<bool>,
    /// Secrets with which the image is pulled, by their names in the operator's namespace, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', visible_alias = "image-pull-secret")]
    image_pull_secrets: Vec<String>,
}

/// Parses a command line and carries it out.
pub(super) fn main(operator: Operator, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    main_with::<NoArgs>(args, |_| operator)
}

#[derive(Debug, Args)]
struct NoArgs {}

/// The same for an operator that depends on arguments of its author's. They go with every subcommand, since what is
/// printed and installed may depend on them as well.
pub(super) fn main_with<A: Args>(
    args: impl IntoIterator<Item = OsString>,
    build: impl FnOnce(A) -> Operator,
) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let parsed = command::<A>().try_get_matches_from(&args).and_then(|matches| {
        Ok((Cli::from_arg_matches(&matches)?, A::from_arg_matches(innermost(&matches))?))
    });
    let (cli, own) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            // Help and the version come this way too; nothing is left to tell when the stream is closed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let operator = build(own);
    let runtime = match runtime().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&CliError::Runtime(error)),
    };
    let result = runtime.block_on(execute(operator, cli, &args));
    // A reconcile that blocks its thread must not hold up the end of the process.
    runtime.shutdown_background();
    result.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
}

/// The command line without arguments of an author's.
pub(super) fn command_line() -> clap::Command {
    command::<NoArgs>()
}

fn command<A: Args>() -> clap::Command {
    const ALL: [&str; 8] =
        ["run", "manifests", "crds", "rbac", "explain-rbac", "install", "uninstall", "check"];
    let command = A::augment_args(Cli::command());
    ALL.into_iter().fold(command, |command, name| command.mut_subcommand(name, A::augment_args))
}

/// The arguments of the subcommand, or those without one.
fn innermost(matches: &ArgMatches) -> &ArgMatches {
    matches.subcommand().map_or(matches, |(_, inner)| inner)
}

/// A runtime of at most four threads: an operator waits for answers most of the time, and every thread of a large
/// machine would bring a heap of its own. `TOKIO_WORKER_THREADS` sets another number.
fn runtime() -> tokio::runtime::Builder {
    const MOST: usize = 4;
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        builder.worker_threads(std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST)));
    }
    builder
}

/// One line for what went wrong, one for what to do about it.
fn report(error: &CliError) -> ExitCode {
    let mut stderr = std::io::stderr().lock();
    // Nothing is left to tell when stderr is closed.
    let _ = writeln!(stderr, "error: {}", chain(error));
    if let Some(hint) = error.hint() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
    ExitCode::FAILURE
}

async fn execute(mut operator: Operator, cli: Cli, line: &[OsString]) -> Result<(), CliError> {
    match cli.command.unwrap_or(Command::Run(Box::new(cli.run))) {
        Command::Run(args) => Box::pin(start::start(operator, *args)).await,
        Command::Manifests(args) => files::manifests(operator, args, line),
        Command::Crds(args) => print(&operator.crd_manifests(), args.output),
        Command::Rbac(args) => {
            let placement = args.place.placement(&mut operator, args.image, args.replicas);
            let roles = operator.rbac_manifests(&placement.namespace);
            print(&operator.named(roles, &placement), args.print.output)
        }
        Command::ExplainRbac(args) => explain::explain(operator, args),
        Command::Install(args) => Box::pin(install::install(operator, args)).await,
        Command::Uninstall(args) => Box::pin(install::uninstall(operator, args)).await,
        Command::Check(args) => Box::pin(check::check(operator, args)).await,
    }
}

impl Target {
    /// Puts the namespaces that were asked for in place of those that the program says.
    fn placement(self, operator: &mut Operator, image: Option<String>, replicas: u32) -> Placement {
        if let Some(namespaces) = self.watch_namespaces {
            operator.namespaces = namespaces.0;
        }
        let usual = MetricsEndpoint::default();
        Placement {
            namespace: self.namespace.unwrap_or_else(|| format!("{}-system", operator.name())),
            image: image.unwrap_or_else(|| format!("{}:latest", operator.name())),
            replicas,
            image_pull_secrets: self.image_pull_secrets,
            name_prefix: self.name_prefix,
            metrics: MetricsEndpoint {
                port: self.metrics_bind_address.unwrap_or(usual.port),
                secure: self.metrics_secure.unwrap_or(usual.secure),
            },
            certificates: if self.cert_manager {
                CertificateSource::CertManager
            } else {
                CertificateSource::Operator
            },
        }
    }
}

fn print(manifests: &[serde_json::Value], format: Format) -> Result<(), CliError> {
    let page = match format {
        Format::Yaml => manifests::to_yaml(manifests).map_err(CliError::Yaml)?,
        Format::Json => {
            let list = serde_json::json!({ "apiVersion": "v1", "kind": "List", "items": manifests });
            serde_json::to_string_pretty(&list).map_err(CliError::Json)? + "\n"
        }
    };
    std::io::stdout().write_all(page.as_bytes()).map_err(CliError::Stdout)
}

impl Connection {
    async fn config(&self) -> Result<Config, CliError> {
        if self.kubeconfig.is_none() && self.context.is_none() {
            return Config::infer().await.map_err(|e| CliError::Config(Box::new(e)));
        }
        let options = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let config = match &self.kubeconfig {
            Some(path) => match Kubeconfig::read_from(path) {
                Ok(kubeconfig) => Config::from_custom_kubeconfig(kubeconfig, &options).await,
                Err(error) => Err(error),
            },
            None => Config::from_kubeconfig(&options).await,
        };
        config.map_err(|error| CliError::Kubeconfig(Box::new(error)))
    }

    /// A client that has made no request yet, and the address that it will make them to.
    async fn client(&self, operator: &Operator) -> Result<(Client, String), CliError> {
        let config = self.config().await?;
        let url = config.cluster_url.to_string();
        let client = operator.connect(config).map_err(|e| CliError::Client(Box::new(e)))?;
        Ok((operator.patient(client), url))
    }

    /// A client whose API server answers.
    async fn connected(&self, operator: &Operator) -> Result<Client, CliError> {
        let (client, url) = self.client(operator).await?;
        match client.apiserver_version().await {
            Ok(version) => operator.check_version(&version).map(|()| client).map_err(CliError::Run),
            // Who may not read the version may still be allowed everything else.
            Err(kube::Error::Api(_)) => Ok(client),
            Err(error) => Err(CliError::Unreachable(url, Box::new(error))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operator::settings::Settings;

    fn parse(args: &[&str]) -> Cli {
        Cli::try_parse_from(args).unwrap()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        command::<Own>().debug_assert();
    }

    #[test]
    fn running_is_the_default() {
        let cli = parse(&["op", "--leader-elect", "--metrics-bind-address=:8080"]);
        assert!(cli.command.is_none() && cli.run.given.leader_elect == Some(true));
        let cli = parse(&["op", "run", "--leader-elect=false"]);
        assert!(matches!(cli.command, Some(Command::Run(args)) if args.given.leader_elect == Some(false)));
    }

    #[test]
    fn the_namespace_is_the_operators_own_in_every_subcommand() {
        let cli = parse(&["op", "run", "--namespace=home", "--watch-namespaces=a,b"]);
        let Some(Command::Run(args)) = cli.command else { panic!("run") };
        assert_eq!(args.given.namespace.as_deref(), Some("home"));
        assert_eq!(args.given.watch_namespaces.unwrap().0, ["a", "b"]);
        let cli = parse(&["op", "install", "-n", "home", "--watch-namespaces=a"]);
        let Some(Command::Install(args)) = cli.command else { panic!("install") };
        assert_eq!(args.place.namespace.as_deref(), Some("home"));
        assert_eq!(args.place.watch_namespaces.unwrap().0, ["a"]);
    }

    #[test]
    fn levels_are_taken_in_the_words_of_go() {
        let level = |line: &[&str]| {
            let given = parse(line).run.given;
            Settings::read(given, None).unwrap().log_level().to_owned()
        };
        assert_eq!(level(&["op"]), "info");
        assert_eq!(level(&["op", "--zap-log-level=debug"]), "debug");
        assert_eq!(level(&["op", "--zap-log-level", "error"]), "error");
        assert_eq!(level(&["op", "--zap-log-level=5"]), "trace");
        assert_eq!(level(&["op", "-v=4"]), "debug");
        assert_eq!(level(&["op", "--v=2"]), "info");
        assert_eq!(level(&["op", "--log-level=warn"]), "warn");
        for wrong in ["--zap-log-level=loud", "-v=high"] {
            assert!(Cli::try_parse_from(["op", wrong]).is_err(), "{wrong}");
        }
    }

    #[derive(Debug, Args)]
    struct Own {
        /// How many
        #[arg(long)]
        limit: u32,
    }

    #[test]
    fn arguments_of_the_author_go_with_every_subcommand() {
        let lines: [&[&str]; 4] = [
            &["op", "--limit=7", "--leader-elect"],
            &["op", "run", "--limit=7"],
            &["op", "manifests", "--limit", "7", "--image=x"],
            &["op", "uninstall", "--limit=7"],
        ];
        for line in lines {
            let matches = command::<Own>().try_get_matches_from(line).unwrap();
            assert_eq!(Own::from_arg_matches(innermost(&matches)).unwrap().limit, 7, "{line:?}");
            assert!(Cli::from_arg_matches(&matches).is_ok(), "{line:?}");
        }
        let missing = command::<Own>().try_get_matches_from(["op", "crds"]).unwrap_err();
        assert!(missing.to_string().contains("--limit"), "{missing}");
    }

    #[test]
    fn the_help_says_what_happens_without_an_image_and_with_the_crds() {
        let help = |name: &str| {
            let mut command = Cli::command();
            command.find_subcommand_mut(name).unwrap().render_help().to_string()
        };
        let install = help("install");
        assert!(
            install.contains("without it only the CRDs are") && !install.contains(":latest"),
            "{install}"
        );
        assert!(help("uninstall").contains("--crds"));
        assert!(install.contains("--wait") && install.contains("--dry-run"), "{install}");
    }
}
