//! `windlass cluster up`, and the running cluster that `windlass dev` stands on.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    pin::pin,
    time::{Duration, Instant},
};

use futures::StreamExt;
use windlass::{
    k8s_openapi::api::core::v1::Node,
    kube::{
        Api, Client,
        runtime::{WatchStreamExt, watcher},
    },
};
use windlass_cluster::{Cluster, Identity};

use crate::{args::ClusterArgs, error::Error, kubeconfig::Kubeconfig, printer::Printer, signals::Signals};

/// How long the node may take to become ready. It takes milliseconds; this is for machines that are very busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// Namespace and name of the service account that the operators run as.
pub(super) const ACCOUNT: (&str, &str) = ("default", "windlass");

/// A cluster that kubectl can reach.
pub(super) struct Running {
    cluster: Cluster,
    kubeconfig: Kubeconfig,
    kept: Option<String>,
}

impl Running {
    /// Starts a cluster, opens its port, writes its kubeconfig, and tells what there is.
    pub(super) async fn start(args: &ClusterArgs, printer: Printer) -> Result<Self, Error> {
        let begin = Instant::now();
        let mut builder = Cluster::builder().seed(entropy()).nodes(args.nodes.into());
        if let Some(directory) = &args.data_dir {
            builder = builder.data_dir(directory).fsync(!args.unsafe_no_fsync);
        }
        let mut cluster = builder.start().await.map_err(|error| Error::starting(error, args))?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
        let listening = cluster
            .listen(address)
            .await
            .map_err(|source| Error::Listen { address, source: source.into() })?;
        let ready = tokio::time::timeout(PATIENCE, node_ready(cluster.client()));
        tokio::select! {
            ready = ready => ready.map_err(|_| Error::NodeNotReady(PATIENCE))?,
            error = cluster.failed() => return Err(Error::StartCluster(error.into())),
        }
        let kubeconfig = Kubeconfig::write(&args.kubeconfig, listening.kubeconfig)?;
        let time = begin.elapsed().as_millis();
        printer.remark(
            "cluster",
            listening.url,
            format_args!("ready in {time} ms, kept {}", args.place()),
        )?;
        printer.remark("node", "simulated", "Pods become Ready, but no container runs")?;
        printer.remark("kubeconfig", args.kubeconfig.display(), "removed at the end")?;
        Ok(Self { cluster, kubeconfig, kept: args.data_dir.is_some().then(|| args.place()) })
    }

    /// How to reach it, while it runs.
    pub(super) fn reach(&self) -> Reach {
        let account = Identity::service_account(ACCOUNT.0, ACCOUNT.1);
        Reach {
            client: self.cluster.client(),
            limited: self.cluster.client_as(account),
            kubeconfig: self.kubeconfig.path().to_owned(),
            kept: self.kept.clone(),
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
}

impl Reach {
    /// Tells what to type next.
    pub(super) fn suggest(&self, printer: Printer, commands: &[&str]) -> Result<(), Error> {
        let kubeconfig = shell_word(&self.kubeconfig.to_string_lossy());
        printer.line("")?;
        printer.command(format_args!("export KUBECONFIG={kubeconfig}"))?;
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

/// A word as a POSIX shell reads it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(super) async fn up(args: &ClusterArgs, printer: Printer) -> Result<(), Error> {
    let signals = Signals::new()?;
    let mut running = tokio::select! {
        running = Running::start(args, printer) => running?,
        () = signals.received() => return Ok(()),
    };
    running.reach().suggest(printer, &["kubectl get nodes"])?;
    let result = tokio::select! {
        error = running.failed() => Err(error),
        () = signals.received() => Ok(()),
    };
    result.and(signals.stopping(running.stop()).await)?;
    printer.aside("stopped")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_only_where_a_shell_would_misread_it() {
        assert_eq!(shell_word("/tmp/a-b/kubeconfig"), "/tmp/a-b/kubeconfig");
        assert_eq!(shell_word("/tmp/my work/it's"), r"'/tmp/my work/it'\''s'");
    }
}
