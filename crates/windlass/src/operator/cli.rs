//! The command line of an operator's binary: `run`, and what installs and removes it.
//!
//! Enters: arguments and the environment. Leaves: an exit code, YAML on stdout, one clear line on stderr when
//! something is wrong. Flags have controller-runtime's names where it has them.

use std::{ffi::OsString, io::Write, path::PathBuf, process::ExitCode};

use clap::{ArgMatches, Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::{
    CertificateSource, Operator, Placement, manifests,
    settings::{Given, Namespaces},
};
use crate::error::chain;

mod error;
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
    /// Print everything that runs the operator in a cluster, as YAML
    Manifests(PlacementArgs),
    /// Print the custom resource definitions, as YAML
    Crds,
    /// Print the service account, roles and bindings, as YAML
    Rbac(PlacementArgs),
    /// Apply the CRDs; with --image, everything that `manifests` prints
    Install(InstallArgs),
    /// Delete what `install` applies; the CRDs, and with them every object of their kinds, only with --crds
    Uninstall(UninstallArgs),
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
    place: Place,
    /// The image of the operator; its name with ":latest" unless given
    #[arg(long)]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1)]
    replicas: u32,
}

#[derive(Clone, Debug, Args)]
struct InstallArgs {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    place: Place,
    /// The image of the operator, which is then installed with all that it needs; without it only the CRDs are
    #[arg(long)]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1)]
    replicas: u32,
}

#[derive(Clone, Debug, Args)]
struct UninstallArgs {
    #[command(flatten)]
    connection: Connection,
    #[command(flatten)]
    place: Place,
    /// Delete the CRDs too, and with them every object of their kinds, before the operator that cleans up after them
    #[arg(long)]
    crds: bool,
}

/// Where the operator is, or is to be.
#[derive(Clone, Debug, Args)]
struct Place {
    /// The namespace of the operator itself; its name with "-system" unless given
    #[arg(long, short)]
    namespace: Option<String>,
    /// The namespaces that the operator works in, separated by commas; roles are then made for these alone
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACES", visible_alias = "watch-namespace")]
    watch_namespaces: Option<Namespaces>,
    /// Let cert-manager issue the certificate of the webhooks instead of the operator
    #[arg(long)]
    cert_manager: bool,
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
    let parsed = command::<A>().try_get_matches_from(args).and_then(|matches| {
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
    let result = runtime.block_on(execute(operator, cli));
    // A reconcile that blocks its thread must not hold up the end of the process.
    runtime.shutdown_background();
    result.map_or_else(|error| report(&error), |()| ExitCode::SUCCESS)
}

fn command<A: Args>() -> clap::Command {
    const ALL: [&str; 6] = ["run", "manifests", "crds", "rbac", "install", "uninstall"];
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

async fn execute(mut operator: Operator, cli: Cli) -> Result<(), CliError> {
    match cli.command.unwrap_or(Command::Run(Box::new(cli.run))) {
        Command::Run(args) => Box::pin(start::start(operator, *args)).await,
        Command::Manifests(args) => {
            let placement = args.place.placement(&mut operator, args.image, args.replicas);
            print(&operator.manifests(&placement))
        }
        Command::Crds => print(&operator.crd_manifests()),
        Command::Rbac(args) => {
            let placement = args.place.placement(&mut operator, args.image, args.replicas);
            print(&operator.rbac_manifests(&placement.namespace))
        }
        Command::Install(args) => Box::pin(install(operator, args)).await,
        Command::Uninstall(args) => Box::pin(uninstall(operator, args)).await,
    }
}

impl Place {
    /// Puts the namespaces that were asked for in place of those that the program says.
    fn placement(self, operator: &mut Operator, image: Option<String>, replicas: u32) -> Placement {
        if let Some(namespaces) = self.watch_namespaces {
            operator.namespaces = namespaces.0;
        }
        Placement {
            namespace: self.namespace.unwrap_or_else(|| format!("{}-system", operator.name())),
            image: image.unwrap_or_else(|| format!("{}:latest", operator.name())),
            replicas,
            certificates: if self.cert_manager {
                CertificateSource::CertManager
            } else {
                CertificateSource::Operator
            },
        }
    }
}

fn print(manifests: &[serde_json::Value]) -> Result<(), CliError> {
    let page = manifests::to_yaml(manifests).map_err(CliError::Yaml)?;
    std::io::stdout().write_all(page.as_bytes()).map_err(CliError::Stdout)
}

fn say(verb: &str, done: &[String]) -> Result<(), CliError> {
    let mut stdout = std::io::stdout().lock();
    for object in done {
        writeln!(stdout, "{verb} {object}").map_err(CliError::Stdout)?;
    }
    Ok(())
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
            // Who may not read the version may still be allowed everything else.
            Ok(_) | Err(kube::Error::Api(_)) => Ok(client),
            Err(error) => Err(CliError::Unreachable(url, Box::new(error))),
        }
    }
}

async fn install(mut operator: Operator, args: InstallArgs) -> Result<(), CliError> {
    let client = args.connection.connected(&operator).await?;
    let whole = args.image.is_some();
    let placement = args.place.placement(&mut operator, args.image, args.replicas);
    let objects = if whole { operator.manifests(&placement) } else { operator.crd_manifests() };
    say("applied", &manifests::apply(&client, operator.name(), &objects).await?)
}

async fn uninstall(mut operator: Operator, args: UninstallArgs) -> Result<(), CliError> {
    let client = args.connection.connected(&operator).await?;
    let placement = args.place.placement(&mut operator, None, 1);
    let is_crd = |object: &serde_json::Value| object["kind"] == "CustomResourceDefinition";
    let (crds, others): (Vec<_>, Vec<_>) = operator.manifests(&placement).into_iter().partition(is_crd);
    if args.crds {
        // The operator is still there to finalize their objects.
        say("deleted", &manifests::delete(&client, &crds).await?)?;
        manifests::await_gone(&client, &crds).await?;
    }
    say("deleted", &manifests::delete(&client, &others).await?)?;
    if !args.crds {
        let kept: Vec<String> = operator.crds().iter().filter_map(|crd| crd.metadata.name.clone()).collect();
        let kept: Vec<String> = kept.iter().map(|name| format!("CustomResourceDefinition {name}")).collect();
        say("kept (delete it with its objects by --crds)", &kept)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
