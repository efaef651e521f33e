//! The command line of an operator's binary: `run`, and what installs and removes it.
//!
//! Enters: arguments and the environment. Leaves: an exit code, YAML on stdout, one clear line on stderr when
//! something is wrong. Flags have controller-runtime's names where it has them.

use std::{ffi::OsString, io::Write, net::SocketAddr, path::PathBuf, process::ExitCode};

use axum::middleware::from_fn_with_state;
use clap::{Args, Parser, Subcommand};
use kube::{Client, Config, client::ClientBuilder};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{
    CertificateSource, Operator, Placement, RunError,
    guard::{self, Guard},
    logging, manifests, server,
    settings::{self, Given, Namespaces, Settings},
};
use crate::{
    error::chain,
    leader::LeaderError,
    tls::{Certificate, TlsListener},
    webhook::{ServeError, certificates::self_signed},
};

#[derive(Debug, Parser)]
#[command(version, about = "A Kubernetes operator", args_conflicts_with_subcommands = true)]
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
    Install(PlacementArgs),
    /// Delete what `install` applies
    Uninstall(UninstallArgs),
}

#[derive(Clone, Debug, Args)]
struct RunArgs {
    /// A YAML file with settings, named like the flags; flags and the environment win over it
    #[arg(long, env = "CONFIG_FILE")]
    config: Option<PathBuf>,
    #[command(flatten)]
    given: Given,
}

#[derive(Clone, Debug, Args)]
struct PlacementArgs {
    /// The namespace of the operator; its name with "-system" unless given
    #[arg(long, short)]
    namespace: Option<String>,
    /// The image of the operator; its name with ":latest" unless given
    #[arg(long)]
    image: Option<String>,
    /// How many replicas
    #[arg(long, default_value_t = 1)]
    replicas: u32,
    /// The namespaces that the operator works in, separated by commas; roles are then made for these alone
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACES")]
    watch_namespaces: Option<Namespaces>,
    /// Let cert-manager issue the certificate of the webhooks instead of the operator
    #[arg(long)]
    cert_manager: bool,
}

#[derive(Clone, Debug, Args)]
struct UninstallArgs {
    /// The namespace of the operator; its name with "-system" unless given
    #[arg(long, short)]
    namespace: Option<String>,
    /// Keep the CRDs, and with them every object of their kinds
    #[arg(long)]
    keep_crds: bool,
    /// Delete what was installed with --cert-manager
    #[arg(long)]
    cert_manager: bool,
    /// The namespaces that it was installed for, separated by commas
    #[arg(long, env = "WATCH_NAMESPACE", value_name = "NAMESPACES")]
    watch_namespaces: Option<Namespaces>,
}

/// An error with advice.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error(transparent)]
    Logging(#[from] logging::Error),
    #[error("failed to find a cluster")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("failed to make a client")]
    Client(#[source] Box<kube::Error>),
    #[error("failed to reach the API server at {0}")]
    Unreachable(String, #[source] Box<kube::Error>),
    #[error(transparent)]
    Settings(#[from] settings::Error),
    #[error("failed to load the certificate of the metrics: {0}")]
    MetricsCertificate(String),
    #[error("failed to listen on {0}")]
    Bind(SocketAddr, #[source] std::io::Error),
    #[error("failed to write YAML")]
    Yaml(#[source] serde_saphyr::ser_error::Error),
    #[error("failed to write to stdout")]
    Stdout(#[source] std::io::Error),
    #[error(transparent)]
    Install(#[from] manifests::InstallError),
    #[error(transparent)]
    Run(#[from] RunError),
}

impl CliError {
    fn hint(&self) -> Option<String> {
        if let Self::Settings(error) = self {
            return error.hint();
        }
        self.advice().map(ToOwned::to_owned)
    }

    fn advice(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some("set KUBECONFIG, or run inside a cluster"),
            Self::Unreachable(..) => Some("is the cluster up, and does the kubeconfig name it?"),
            Self::Bind(..) => Some("choose another address, or 0 to turn the endpoint off"),
            Self::Run(RunError::Webhooks(ServeError::Bind { .. })) => {
                Some("choose another --webhook-port, or --enable-webhooks=false")
            }
            Self::MetricsCertificate(_) | Self::Run(RunError::Webhooks(ServeError::Files(_))) => {
                Some("the directory must hold a certificate and its key, as PEM")
            }
            Self::Logging(error) => Some(error.advice()),
            Self::Run(
                RunError::NotSynced { reason, .. } | RunError::Leader(LeaderError::Refused { reason, .. }),
            ) if reason.contains("HTTP 403") => Some("grant what the `rbac` command prints"),
            Self::Run(RunError::Leader(LeaderError::Refused { .. })) => {
                Some("does the namespace exist? --leader-election-namespace names another")
            }
            Self::Run(RunError::Leader(LeaderError::Times { .. })) => Some(
                "see --leader-elect-lease-duration, --leader-elect-renew-deadline and --leader-elect-retry-period",
            ),
            Self::Run(RunError::NotSynced { reason, .. }) if reason.contains("HTTP 404") => {
                Some("are its CRDs installed? The `install` command applies them")
            }
            _ => None,
        }
    }
}

/// Parses a command line and carries it out.
pub(super) fn main(operator: Operator, args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and the version come this way too; nothing is left to tell when the stream is closed.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let runtime = runtime().enable_all().build();
    let result =
        runtime.map_err(CliError::Runtime).and_then(|runtime| runtime.block_on(execute(operator, cli)));
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
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
fn report(error: &CliError) {
    let mut stderr = std::io::stderr().lock();
    // Nothing is left to tell when stderr is closed.
    let _ = writeln!(stderr, "error: {}", chain(error));
    if let Some(hint) = error.hint() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}

async fn execute(mut operator: Operator, cli: Cli) -> Result<(), CliError> {
    match cli.command.unwrap_or(Command::Run(Box::new(cli.run))) {
        Command::Run(args) => Box::pin(run(operator, *args)).await,
        Command::Manifests(args) => {
            restrict(&mut operator, args.watch_namespaces.as_ref());
            let placement = args.placement(&operator);
            print(&operator.manifests(&placement))
        }
        Command::Crds => print(&operator.crd_manifests()),
        Command::Rbac(args) => {
            restrict(&mut operator, args.watch_namespaces.as_ref());
            let placement = args.placement(&operator);
            print(&operator.rbac_manifests(&placement.namespace))
        }
        Command::Install(args) => {
            restrict(&mut operator, args.watch_namespaces.as_ref());
            install(&operator, &args).await
        }
        Command::Uninstall(args) => {
            restrict(&mut operator, args.watch_namespaces.as_ref());
            uninstall(&operator, args).await
        }
    }
}

/// Puts the namespaces that were asked for in place of those that the program says.
fn restrict(operator: &mut Operator, namespaces: Option<&Namespaces>) {
    if let Some(namespaces) = namespaces {
        operator.namespaces.clone_from(&namespaces.0);
    }
}

impl PlacementArgs {
    fn placement(&self, operator: &Operator) -> Placement {
        Placement {
            namespace: self.namespace.clone().unwrap_or_else(|| format!("{}-system", operator.name())),
            image: self.image.clone().unwrap_or_else(|| format!("{}:latest", operator.name())),
            replicas: self.replicas,
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

async fn connect(operator: &Operator) -> Result<Client, CliError> {
    let config = Config::infer().await.map_err(|e| CliError::Config(Box::new(e)))?;
    let url = config.cluster_url.to_string();
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let builder = ClientBuilder::try_from(config).map_err(|e| CliError::Client(Box::new(e)))?;
    let client = builder.with_layer(&operator.metrics.client_layer().host(host)).build();
    match client.apiserver_version().await {
        // Who may not read the version may still be allowed everything else.
        Ok(_) | Err(kube::Error::Api(_)) => Ok(client),
        Err(error) => Err(CliError::Unreachable(url, Box::new(error))),
    }
}

async fn install(operator: &Operator, args: &PlacementArgs) -> Result<(), CliError> {
    let client = connect(operator).await?;
    let objects = match args.image {
        Some(_) => operator.manifests(&args.placement(operator)),
        None => operator.crd_manifests(),
    };
    say("applied", &manifests::apply(&client, operator.name(), &objects).await?)
}

async fn uninstall(operator: &Operator, args: UninstallArgs) -> Result<(), CliError> {
    let client = connect(operator).await?;
    let placement = PlacementArgs {
        namespace: args.namespace,
        image: None,
        replicas: 1,
        cert_manager: args.cert_manager,
        watch_namespaces: None,
    }
    .placement(operator);
    let mut objects = operator.manifests(&placement);
    if args.keep_crds {
        objects.retain(|object| object["kind"] != "CustomResourceDefinition");
    }
    say("deleted", &manifests::delete(&client, &objects).await?)
}

async fn run(mut operator: Operator, args: RunArgs) -> Result<(), CliError> {
    let settings = Settings::read(args.given, args.config.as_deref())?;
    let names: Vec<&str> = operator.controllers.iter().map(|controller| controller.name()).collect();
    for (name, workers) in settings.concurrency(&names).map(owned)? {
        let named = operator.controllers.iter_mut().filter(|controller| controller.name() == name);
        named.for_each(|controller| controller.set_concurrency(workers));
    }
    let logging = logging::start(&settings, operator.name())?;
    let result = Box::pin(work(operator, &settings)).await;
    logging.finish().await;
    result
}

async fn work(mut operator: Operator, settings: &Settings) -> Result<(), CliError> {
    let client = connect(&operator).await?;
    operator.impatient = true;
    operator.drain = settings.drain().unwrap_or(operator.drain);
    operator.namespaces = settings.namespaces().unwrap_or(operator.namespaces);
    operator.dry_run |= settings.dry_run();
    let namespace = client.default_namespace().to_owned();
    if let Some(election) = settings.election(operator.name(), &namespace, identity()) {
        operator.leader = Some(election);
    }
    operator.webhook_server = settings.webhooks(operator.name(), &namespace);
    if operator.dry_run {
        tracing::info!("dry run: nothing is written; no lease is held and no webhook served");
    }
    let stop = CancellationToken::new();
    let mut servers = JoinSet::new();
    if let Some(address) = settings.probes() {
        let socket = server::bind(address).await.map_err(|error| CliError::Bind(address, error))?;
        let router = server::probes(operator.probes());
        servers.spawn(server::serve(socket, router, stop.clone().cancelled_owned()));
    }
    serve_metrics(settings, &operator, &client, &stop, &mut servers).await?;
    let result = operator.run(client, signalled()).await;
    stop.cancel();
    while servers.join_next().await.is_some() {}
    Ok(result?)
}

fn owned(chosen: Vec<(&str, usize)>) -> Vec<(String, usize)> {
    chosen.into_iter().map(|(name, workers)| (name.to_owned(), workers)).collect()
}

/// Serves the metrics, plainly or with TLS and only to whom may read them.
async fn serve_metrics(
    settings: &Settings,
    operator: &Operator,
    client: &Client,
    stop: &CancellationToken,
    servers: &mut JoinSet<std::io::Result<()>>,
) -> Result<(), CliError> {
    let Some(address) = settings.metrics() else { return Ok(()) };
    let bound = |error| CliError::Bind(address, error);
    let socket = server::bind(address).await.map_err(bound)?;
    let (router, until) = (server::metrics(operator.metrics.clone()), stop.clone().cancelled_owned());
    if !settings.metrics_secure() {
        servers.spawn(server::serve(socket, router, until));
        return Ok(());
    }
    let certificate = Certificate::default();
    match settings.metrics_files() {
        Some(files) => {
            let loaded = files.load(&certificate, &operator.metrics);
            loaded.map_err(|error| CliError::MetricsCertificate(chain(&error)))?;
            let following = files.follow(certificate.clone(), operator.metrics.clone());
            let until = stop.clone().cancelled_owned();
            servers.spawn(async move {
                tokio::select! { () = following => {}, () = until => {} }
                Ok(())
            });
        }
        None => self_sign(&certificate, operator)?,
    }
    let listener = TlsListener::tcp(socket, certificate, settings.http2()).map_err(bound)?;
    let guarded = router.layer(from_fn_with_state(Guard::new(client.clone()), guard::check));
    servers.spawn(server::serve(listener, guarded, until));
    Ok(())
}

fn self_sign(certificate: &Certificate, operator: &Operator) -> Result<(), CliError> {
    let failed = |error: &(dyn std::error::Error + 'static)| CliError::MetricsCertificate(chain(error));
    let name = format!("{}-metrics", operator.name());
    let made = self_signed(&[name, "localhost".into()], operator.clock.now());
    let (chain, key) = made.map_err(|error| failed(&error))?;
    certificate.set(&chain, &key).map_err(|error| failed(&error))
}

/// Unique among replicas: the pod's or the machine's name, and the process.
fn identity() -> String {
    let host = ["POD_NAME", "HOSTNAME"].iter().find_map(|name| std::env::var(name).ok());
    let host = host.or_else(|| std::fs::read_to_string("/etc/hostname").ok());
    format!("{}_{}", host.as_deref().map_or("unknown", str::trim), std::process::id())
}

/// Resolves at the first SIGTERM or SIGINT. The second ends the process at once.
async fn signalled() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::warn!("failed to listen for signals, run until killed");
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::info!("shutting down; a second signal ends the process at once");
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        std::process::exit(1);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn running_is_the_default() {
        let cli = Cli::try_parse_from(["op", "--leader-elect", "--metrics-bind-address=:8080"]).unwrap();
        assert!(cli.command.is_none() && cli.run.given.leader_elect == Some(true));
        let cli = Cli::try_parse_from(["op", "run", "--leader-elect=false"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Run(args)) if args.given.leader_elect == Some(false)));
    }
}
