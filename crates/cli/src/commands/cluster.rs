//! `windlass cluster up`, and the running cluster that `windlass dev` stands on.

mod background;
mod backup;
mod import;
mod named;

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    pin::pin,
    time::{Duration, Instant},
};

use futures::StreamExt;
use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::core::v1::Node,
    kube::{
        Api, Client,
        runtime::{WatchStreamExt, watcher},
    },
};
use windlass_cluster::{Cluster, Identity, Listening};
use windlass_ui::Operators;

pub(super) use self::{
    backup::{backup, restore},
    import::import,
    named::{down, kubeconfig, reset, status},
};
use super::page::{self, Served};
use crate::{
    args::{ClusterArgs, UpArgs},
    clusters::{Facts, Held, Home},
    error::Error,
    kubeconfig::Kubeconfig,
    platform,
    printer::Printer,
    server::{self, ServerArgs},
    signals::Signals,
};

/// How long the node may take to become ready. It takes milliseconds; this is for machines that are very busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Namespace and name of the service account that the operators run as.
pub(super) const ACCOUNT: (&str, &str) = ("default", "windlass");

/// A cluster that kubectl can reach.
pub(super) struct Running {
    cluster: Cluster,
    kubeconfig: Kubeconfig,
    listening: Listening,
    kept: Option<String>,
    operators: Operators,
    page: Option<Served>,
}

impl Running {
    /// Starts a cluster, opens its port, writes its kubeconfig, and tells what there is.
    pub(super) async fn start(args: &ClusterArgs, printer: Printer) -> Result<Self, Error> {
        Self::start_with(args, &ServerArgs::default(), printer).await
    }

    /// The same, with an API server of which more was said.
    async fn start_with(args: &ClusterArgs, server: &ServerArgs, printer: Printer) -> Result<Self, Error> {
        let begin = Instant::now();
        let access = server::access(server)?;
        let mut builder = Cluster::builder().seed(entropy()).nodes(args.nodes.into()).access(access);
        if let Some(directory) = &args.data_dir {
            builder = builder.data_dir(directory).fsync(!args.unsafe_no_fsync);
        }
        let mut cluster = builder.start().await.map_err(|error| Error::starting(error, args))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listening = cluster
            .listen(address)
            .await
            .map_err(|source| Error::Listen { address, source: source.into() })?;
        let ready = tokio::time::timeout(TIMEOUT, node_ready(cluster.client()));
        tokio::select! {
            ready = ready => ready.map_err(|_| Error::NodeNotReady(TIMEOUT))?,
            error = cluster.failed() => return Err(Error::StartCluster(error.into())),
        }
        let path = args.kubeconfig();
        let kubeconfig = Kubeconfig::write(&path, listening.kubeconfig.clone())?;
        let time = begin.elapsed().as_millis();
        let kept = format!("ready in {time} ms, kept {}", args.place());
        tell(printer, &listening.url, kept, &path)?;
        let operators = Operators::default();
        operators.add_built_in(cluster.controllers());
        let page = page::serve(
            &args.page,
            cluster.client(),
            (operators.clone(), cluster.server().faults().clone()),
            printer,
        )
        .await?;
        let kept = args.data_dir.is_some().then(|| args.place());
        Ok(Self { cluster, kubeconfig, listening, kept, operators, page })
    }

    /// What others are told of it.
    fn facts(&self, args: &ClusterArgs, server: &ServerArgs, log: Option<PathBuf>) -> Facts {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Facts {
            pid: std::process::id(),
            url: self.listening.url.clone(),
            port: self.listening.address.port(),
            kubeconfig: self.kubeconfig.path().to_owned(),
            data_dir: args.data_dir.as_ref().map(absolute),
            log,
            page: self.page.as_ref().map(|page| page.url().to_owned()),
            nodes: args.nodes,
            fsync: !args.unsafe_no_fsync,
            started: Timestamp::now(),
            server: Box::new(server.absolute().unwrap_or_else(|_| server.clone())),
            version: env!("CARGO_PKG_VERSION").into(),
        }
    }

    /// How to reach it, while it runs.
    pub(super) fn reach(&self) -> Reach {
        let account = Identity::service_account(ACCOUNT.0, ACCOUNT.1);
        Reach {
            client: self.cluster.client(),
            limited: self.cluster.client_as(account),
            kubeconfig: self.kubeconfig.path().to_owned(),
            kept: self.kept.clone(),
            operators: self.operators.clone(),
        }
    }

    /// Waits until the cluster fails, which it should not. Cancel-safe.
    pub(super) async fn failed(&mut self) -> Error {
        Error::RunCluster(self.cluster.failed().await.into())
    }

    /// Stops the cluster; the kubeconfig goes with it.
    pub(super) async fn stop(self) -> Result<(), Error> {
        self.cluster.shutdown().await.map_err(|error| Error::RunCluster(error.into()))
    }
}

/// How to reach a running cluster, from here and from a shell.
pub(super) struct Reach {
    /// The administrator's client.
    pub(super) client: Client,
    /// The operators' client, which may do what their RBAC rules say.
    pub(super) limited: Client,
    kubeconfig: PathBuf,
    kept: Option<String>,
    /// Those whose reconciles the page shows.
    pub(super) operators: Operators,
}

impl Reach {
    /// Where the administrator's kubeconfig is.
    pub(super) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Tells what to type next.
    pub(super) fn suggest(&self, printer: Printer, commands: &[&str]) -> Result<(), Error> {
        printer.line("")?;
        printer.command(platform::set_variable("KUBECONFIG", &self.kubeconfig.to_string_lossy()))?;
        for command in commands {
            printer.command(command)?;
        }
        printer.line("")?;
        match &self.kept {
            Some(place) => printer.aside(format_args!("Ctrl-C stops everything; it is kept {place}."))?,
            None => printer.aside("Ctrl-C stops everything; nothing is kept.")?,
        }
        printer.line("")
    }
}

/// A seed that no other run has: uids of two clusters must not meet.
fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

/// Waits until Pods can run.
async fn node_ready(client: Client) {
    let is_ready = |node: &Node| {
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions
            .into_iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
    };
    // A watch that breaks off begins anew with the next poll, so only a ready node ends the wait.
    let nodes = watcher::watcher(Api::<Node>::all(client), watcher::Config::default()).applied_objects();
    let mut ready = pin!(nodes.filter(|node| std::future::ready(node.as_ref().is_ok_and(is_ready))));
    ready.next().await;
}

/// The facts of a cluster, as they are printed wherever it runs.
fn tell(printer: Printer, url: &str, remark: impl std::fmt::Display, kubeconfig: &Path) -> Result<(), Error> {
    printer.remark("cluster", url, remark)?;
    printer.remark("node", "simulated", "Pods become Ready, but no container runs")?;
    printer.remark("kubeconfig", kubeconfig.display(), "removed at the end")
}

/// `windlass cluster up`: anonymous as any process, or under a name.
pub(super) async fn up(args: &UpArgs, verbose: u8, printer: Printer) -> Result<(), Error> {
    let Some(name) = args.name() else { return run(&args.cluster, &args.server, None, printer).await };
    let place = Home::find()?.place(name);
    if args.detach {
        return background::start(&place, args, verbose, printer).await;
    }
    if args.background {
        background::own_session();
    }
    let held = place.take(args.background)?;
    let mut cluster = args.cluster.clone();
    cluster.kubeconfig.get_or_insert_with(|| place.kubeconfig());
    if !args.in_memory {
        cluster.data_dir.get_or_insert_with(|| place.data());
    }
    run(&cluster, &args.server, Some((held, args.background)), printer).await
}

async fn run(
    args: &ClusterArgs,
    server: &ServerArgs,
    held: Option<(Held, bool)>,
    printer: Printer,
) -> Result<(), Error> {
    let signals = Signals::new()?;
    if let Some((held, _)) = &held {
        held.on_stop(signals.ask())?;
    }
    let mut running = tokio::select! {
        running = Running::start_with(args, server, printer) => running?,
        () = signals.received() => return Ok(()),
    };
    running.reach().suggest(printer, &["kubectl get nodes"])?;
    if let Some((held, background)) = &held {
        let log = background.then(|| held.place().log());
        held.ready(&running.facts(args, server, log))?;
    }
    let result = tokio::select! {
        error = running.failed() => Err(error),
        () = signals.received() => Ok(()),
    };
    result.and(signals.stopping(running.stop()).await)?;
    if let Some((held, _)) = held {
        held.ended()?;
    }
    printer.aside("stopped")
}

/// How a cluster that was just made is started.
fn suggest_start(printer: Printer, name: &str) -> Result<(), Error> {
    let flag = if name == crate::clusters::DEFAULT { String::new() } else { format!(" --name {name}") };
    printer.line("")?;
    printer.command(format_args!("windlass cluster up --detach{flag}"))
}
