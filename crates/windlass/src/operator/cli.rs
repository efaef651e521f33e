//! The command line of an operator's binary: `run`, and what installs and removes it.
//!
//! Enters: arguments and the environment. Leaves: an exit code, YAML on stdout, one clear line on stderr when
//! something is wrong. Flags have controller-runtime's names where it has them.

use std::{
    io::{IsTerminal, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::ExitCode,
    str::FromStr,
    time::Duration,
};

use clap::{Args, Parser, Subcommand, ValueEnum};
use kube::{Client, Config, client::ClientBuilder};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

use super::{CertificateSource, Operator, Placement, RunError, manifests, server};
use crate::{
    error::chain,
    leader::LeaderElection,
    webhook::{self, Certificates, Reach},
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
    Run(RunArgs),
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
    /// Where /metrics is served, as host:port or :port; 0 turns it off
    #[arg(long, default_value = "0", env = "METRICS_BIND_ADDRESS")]
    metrics_bind_address: BindAddress,
    /// Where /healthz and /readyz are served, as host:port or :port; 0 turns them off
    #[arg(long, default_value = ":8081", env = "HEALTH_PROBE_BIND_ADDRESS")]
    health_probe_bind_address: BindAddress,
    /// Work only while holding the lease, so that of several replicas one works
    #[arg(long, env = "LEADER_ELECT")]
    leader_elect: bool,
    /// The namespace of the lease; that of the pod, or of the kubeconfig context, unless given
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE")]
    leader_election_namespace: Option<String>,
    /// How long running reconciles may take to finish after a signal, in seconds
    #[arg(long, default_value_t = 30, env = "GRACEFUL_SHUTDOWN_TIMEOUT")]
    graceful_shutdown_timeout: u64,
    #[command(flatten)]
    webhooks: WebhookArgs,
    #[command(flatten)]
    log: LogArgs,
}

#[derive(Clone, Debug, Args)]
struct WebhookArgs {
    /// The address on which webhooks are served
    #[arg(long, default_value = "0.0.0.0", env = "WEBHOOK_HOST")]
    webhook_host: IpAddr,
    /// The port on which webhooks are served
    #[arg(long, default_value_t = 9443, env = "WEBHOOK_PORT")]
    webhook_port: u16,
    /// Have the API server call this https://host:port instead of the Service: for running outside the cluster
    #[arg(long, env = "WEBHOOK_URL")]
    webhook_url: Option<String>,
    /// The directory of a certificate that someone else renews; without it the operator issues its own
    #[arg(long, env = "WEBHOOK_CERT_PATH")]
    webhook_cert_path: Option<std::path::PathBuf>,
    /// The file of the certificate in --webhook-cert-path
    #[arg(long, default_value = "tls.crt", env = "WEBHOOK_CERT_NAME")]
    webhook_cert_name: String,
    /// The file of the private key in --webhook-cert-path
    #[arg(long, default_value = "tls.key", env = "WEBHOOK_CERT_KEY")]
    webhook_cert_key: String,
    /// Whether webhooks are served at all
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, env = "ENABLE_WEBHOOKS")]
    enable_webhooks: bool,
}

impl WebhookArgs {
    fn server(self, operator: &str, namespace: &str) -> Option<webhook::Server> {
        self.enable_webhooks.then(|| webhook::Server {
            address: SocketAddr::new(self.webhook_host, self.webhook_port),
            reach: match self.webhook_url {
                Some(url) => Reach::Url(url),
                None => manifests::service(operator, namespace),
            },
            certificates: match self.webhook_cert_path {
                Some(path) => Certificates::Files {
                    certificate: path.join(self.webhook_cert_name),
                    key: path.join(self.webhook_cert_key),
                },
                None => Certificates::Issued {
                    namespace: namespace.to_owned(),
                    secret: manifests::secret_name(operator),
                },
            },
        })
    }
}

#[derive(Clone, Debug, Args)]
struct LogArgs {
    /// What is logged: a level, or directives such as info,kube=debug
    #[arg(long, default_value = "info", env = "RUST_LOG")]
    log_level: String,
    /// How log lines look
    #[arg(long, value_enum, default_value_t = LogFormat::Text, env = "LOG_FORMAT")]
    log_format: LogFormat,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum LogFormat {
    Text,
    Json,
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
}

/// `host:port`, `:port` for all interfaces, or `0` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BindAddress(Option<SocketAddr>);

impl FromStr for BindAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "0" {
            return Ok(Self(None));
        }
        let hint = || format!("{text:?} is no address; write host:port, :port, or 0 for none");
        let address = match text.strip_prefix(':') {
            Some(port) => {
                SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), port.parse().map_err(|_| hint())?)
            }
            None => text.replacen("localhost", "127.0.0.1", 1).parse().map_err(|_| hint())?,
        };
        Ok(Self(Some(address)))
    }
}

/// An error with advice.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("failed to start the runtime")]
    Runtime(#[source] std::io::Error),
    #[error("failed to read --log-level {0:?}")]
    LogLevel(String, #[source] tracing_subscriber::filter::ParseError),
    #[error("failed to find a cluster")]
    Config(#[source] Box<kube::config::InferConfigError>),
    #[error("failed to make a client")]
    Client(#[source] Box<kube::Error>),
    #[error("failed to reach the API server at {0}")]
    Unreachable(String, #[source] Box<kube::Error>),
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
    fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Config(_) => Some("set KUBECONFIG, or run inside a cluster"),
            Self::Unreachable(..) => Some("is the cluster up, and does the kubeconfig name it?"),
            Self::Bind(..) => Some("choose another address, or 0 to turn the endpoint off"),
            Self::LogLevel(..) => Some("write error, warn, info, debug or trace"),
            Self::Run(RunError::NotSynced { reason, .. }) if reason.contains("HTTP 403") => {
                Some("grant what the `rbac` command prints")
            }
            Self::Run(RunError::NotSynced { reason, .. }) if reason.contains("HTTP 404") => {
                Some("are its CRDs installed? The `install` command applies them")
            }
            _ => None,
        }
    }
}

/// Parses the command line and carries it out.
pub(super) fn main(operator: Operator) -> ExitCode {
    let cli = Cli::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
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

/// One line for what went wrong, one for what to do about it.
fn report(error: &CliError) {
    let mut stderr = std::io::stderr().lock();
    // Nothing is left to tell when stderr is closed.
    let _ = writeln!(stderr, "error: {}", chain(error));
    if let Some(hint) = error.hint() {
        let _ = writeln!(stderr, "hint: {hint}");
    }
}

async fn execute(operator: Operator, cli: Cli) -> Result<(), CliError> {
    match cli.command.unwrap_or(Command::Run(cli.run)) {
        Command::Run(args) => run(operator, args).await,
        Command::Manifests(args) => {
            let placement = args.placement(&operator);
            print(&operator.manifests(&placement))
        }
        Command::Crds => print(&operator.crd_manifests()),
        Command::Rbac(args) => {
            let placement = args.placement(&operator);
            print(&operator.rbac_manifests(&placement.namespace))
        }
        Command::Install(args) => install(&operator, &args).await,
        Command::Uninstall(args) => uninstall(&operator, args).await,
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
    }
    .placement(operator);
    let mut objects = operator.manifests(&placement);
    if args.keep_crds {
        objects.retain(|object| object["kind"] != "CustomResourceDefinition");
    }
    say("deleted", &manifests::delete(&client, &objects).await?)
}

async fn run(mut operator: Operator, args: RunArgs) -> Result<(), CliError> {
    start_logging(&args.log)?;
    let client = connect(&operator).await?;
    operator.impatient = true;
    operator.drain = Duration::from_secs(args.graceful_shutdown_timeout);
    if args.leader_elect {
        let namespace = args.leader_election_namespace.clone();
        let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
        operator.leader = Some(LeaderElection::new(operator.name.clone(), namespace, identity()));
    }
    operator.webhook_server = args.webhooks.clone().server(operator.name(), client.default_namespace());
    let stop = CancellationToken::new();
    let mut servers = tokio::task::JoinSet::new();
    let endpoints = [
        (args.metrics_bind_address, server::metrics(operator.metrics.clone())),
        (args.health_probe_bind_address, server::probes(operator.probes())),
    ];
    for (BindAddress(address), router) in endpoints {
        if let Some(address) = address {
            let listener = server::bind(address).await.map_err(|e| CliError::Bind(address, e))?;
            servers.spawn(server::serve(listener, router, stop.clone().cancelled_owned()));
        }
    }
    let result = operator.run(client, signalled()).await;
    stop.cancel();
    while servers.join_next().await.is_some() {}
    Ok(result?)
}

fn start_logging(args: &LogArgs) -> Result<(), CliError> {
    let filter = EnvFilter::try_new(&args.log_level);
    let filter = filter.map_err(|error| CliError::LogLevel(args.log_level.clone(), error))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // A subscriber that the program has set itself stays.
    let _ = match args.log_format {
        LogFormat::Text => subscriber.try_init(),
        LogFormat::Json => subscriber.json().try_init(),
    };
    Ok(())
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
    fn addresses_are_read_as_controller_runtime_reads_them() {
        let read = |text: &str| text.parse::<BindAddress>().map(|address| address.0.map(|a| a.to_string()));
        assert_eq!(read("0"), Ok(None));
        assert_eq!(read(":8081"), Ok(Some("0.0.0.0:8081".into())));
        assert_eq!(read("localhost:80"), Ok(Some("127.0.0.1:80".into())));
        assert_eq!(read("[::1]:80"), Ok(Some("[::1]:80".into())));
        assert!(read("8081").unwrap_err().contains("write host:port"));
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }

    #[test]
    fn running_is_the_default() {
        let cli = Cli::try_parse_from(["op", "--leader-elect", "--metrics-bind-address=:8080"]).unwrap();
        assert!(cli.command.is_none() && cli.run.leader_elect);
        let cli = Cli::try_parse_from(["op", "run", "--leader-elect"]).unwrap();
        assert!(matches!(cli.command, Some(Command::Run(args)) if args.leader_elect));
    }
}
