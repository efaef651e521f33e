//! The server of the webhooks: its address, where its certificate comes from, its start and its end.

use std::{io, net::SocketAddr, path::PathBuf, pin::Pin, sync::Arc, time::Duration};

use kube::Client;
use tokio::{net::TcpListener, sync::watch};
use tokio_util::sync::CancellationToken;

use super::{Reach, Webhooks, configuration, inject::Injector, keeper::Keeper, router::Around};
use crate::{
    cache::Caches,
    clock::Clock,
    handle::Handle,
    metrics::Metrics,
    tls::{Certificate, Connections, Files, TlsListener},
};

/// How long requests that are being answered may take at the end.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How an operator serves its webhooks.
///
/// Every replica serves, whether it leads or not.
#[derive(Clone, Debug)]
pub struct Server {
    /// Where to listen.
    pub address: SocketAddr,
    /// How the API server gets there.
    pub reach: Reach,
    /// Where the certificate comes from.
    pub certificates: Certificates,
    /// Whether clients may speak HTTP/2, beside HTTP/1.1.
    pub http2: bool,
}

/// Where the certificate of the webhook server comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// The operator issues and rotates it, keeps it in a Secret that all replicas share, and tells the API
    /// server whom to trust.
    Issued {
        /// The namespace of the Secret.
        namespace: String,
        /// The Secret.
        secret: String,
    },
    /// Someone else puts it into files, and tells the API server whom to trust: cert-manager, for example. The
    /// files are read again when they change.
    Files {
        /// The certificate, as PEM.
        certificate: PathBuf,
        /// The private key, as PEM.
        key: PathBuf,
    },
}

/// Why the webhooks cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The address could not be had.
    #[error("failed to listen on {address} for webhooks")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The certificate's files are unusable.
    #[error("failed to load the certificate of the webhooks: {0}")]
    Files(String),
    /// The URL is none.
    #[error("failed to use {0:?} as the URL of the webhooks: it must be https://host:port")]
    Url(String),
    /// Two webhooks of one mode for one kind.
    #[error("failed to serve two webhooks at {0}")]
    Collision(String),
}

/// What the server needs of its operator.
pub(crate) struct Surroundings {
    pub(crate) operator: String,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) caches: Caches,
    /// The namespaces that the operator is restricted to.
    pub(crate) namespaces: Vec<String>,
    /// Who hears whether the API server knows of the webhooks.
    pub(crate) handle: Handle,
    /// The API server is in this process.
    pub(crate) in_process: bool,
    /// Where connections come from, if not from a socket.
    pub(crate) connections: Option<Connections>,
    /// How long requests are answered after the end was asked for.
    pub(crate) delay: Duration,
}

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A server that is about to run.
pub(crate) struct Serving {
    /// To be run, and supervised: none of them ends by itself.
    pub(crate) tasks: Vec<(String, Task)>,
    /// Why it is not ready.
    pub(crate) failure: watch::Receiver<Option<String>>,
    keeping: Stop,
    answering: Stop,
    hooks: Webhooks,
    surroundings: Surroundings,
    reach: Reach,
}

impl Serving {
    /// Takes the address, so that a taken one is told at once.
    pub(crate) async fn prepare(
        server: Server,
        hooks: Webhooks,
        mut surroundings: Surroundings,
    ) -> Result<Self, ServeError> {
        if let Reach::Url(url) = &server.reach
            && configuration::host(url).is_none()
        {
            return Err(ServeError::Url(url.clone()));
        }
        let bind = |source| ServeError::Bind { address: server.address, source };
        let certificate = Certificate::default();
        let listener = match surroundings.connections.take() {
            Some(connections) => TlsListener::new(connections, certificate.clone(), server.http2),
            None => {
                let socket = TcpListener::bind(server.address).await.map_err(bind)?;
                TlsListener::tcp(socket, certificate.clone(), server.http2)
            }
        };
        let listener = listener.map_err(bind)?;
        let (failure, ready) = watch::channel(Some("the certificate is not there yet".to_owned()));
        let keeping = keep(&server, &hooks, &surroundings, certificate, failure)?;
        let Surroundings { client, caches, namespaces, .. } = &surroundings;
        let router = hooks.router(&surroundings.metrics, Some(&Around { client, caches, namespaces }));
        let (keep, serve) = (Stop::default(), Stop::default());
        let until = serve.token.clone().cancelled_owned();
        let serving = async move {
            let _ = axum::serve(listener, router).with_graceful_shutdown(until).await;
        };
        let until = keep.token.clone().cancelled_owned();
        let keeping = async move {
            tokio::select! { biased; () = until => {}, () = keeping => {} }
        };
        tracing::info!(address = %server.address, "serving webhooks");
        let tasks = vec![
            ("webhook server".to_owned(), serve.supervised(serving)),
            ("webhook certificates".to_owned(), keep.supervised(keeping)),
        ];
        let reach = server.reach;
        Ok(Self { tasks, failure: ready, keeping: keep, answering: serve, hooks, surroundings, reach })
    }

    /// Repairs what an earlier process outside the cluster may have left behind.
    pub(crate) async fn repair(hooks: &Webhooks, surroundings: &Surroundings, namespace: &str) {
        let Surroundings { client, operator, .. } = surroundings;
        let reach = Reach::Service { namespace: namespace.to_owned(), name: operator.clone() };
        Injector { client, operator, hooks, reach: &reach }.repair().await;
    }

    /// Lets requests finish that are being answered, and removes what would point at nobody.
    pub(crate) async fn finish(self) {
        self.keeping.stop().await;
        let Surroundings { client, operator, .. } = &self.surroundings;
        Injector { client, operator, hooks: &self.hooks, reach: &self.reach }.remove().await;
        // The Pod is no longer ready, but whoever balances the load hears of that a moment later.
        tokio::time::sleep(self.surroundings.delay).await;
        if !self.answering.stop().await {
            tracing::warn!("some webhook requests were cut off");
        }
    }
}

/// Ends one task and waits until it has.
struct Stop {
    token: CancellationToken,
    stopped: watch::Sender<bool>,
}

impl Default for Stop {
    fn default() -> Self {
        Self { token: CancellationToken::new(), stopped: watch::Sender::new(false) }
    }
}

impl Stop {
    /// A task for the supervisor: it ends only if `work` does so before it was told to.
    fn supervised(&self, work: impl Future<Output = ()> + Send + 'static) -> Task {
        let (token, stopped) = (self.token.clone(), self.stopped.clone());
        Box::pin(async move {
            work.await;
            stopped.send_replace(true);
            if token.is_cancelled() {
                std::future::pending::<()>().await;
            }
        })
    }

    /// Whether the task ended in time.
    async fn stop(&self) -> bool {
        self.token.cancel();
        let mut stopped = self.stopped.subscribe();
        tokio::time::timeout(SHUTDOWN_TIMEOUT, stopped.wait_for(|stopped| *stopped)).await.is_ok()
    }
}

/// The task that keeps the certificate current.
fn keep(
    server: &Server,
    hooks: &Webhooks,
    surroundings: &Surroundings,
    certificate: Certificate,
    failure: watch::Sender<Option<String>>,
) -> Result<Task, ServeError> {
    match &server.certificates {
        Certificates::Issued { namespace, secret } => {
            let keeper = Keeper {
                operator: surroundings.operator.clone(),
                secret: secret.clone(),
                namespace: namespace.clone(),
                client: surroundings.client.clone(),
                clock: surroundings.clock.clone(),
                metrics: surroundings.metrics.clone(),
                handle: surroundings.handle.clone(),
                in_process: surroundings.in_process,
                hooks: hooks.clone(),
                reach: server.reach.clone(),
                certificate,
                failure,
            };
            Ok(Box::pin(keeper.run()))
        }
        Certificates::Files { certificate: path, key } => {
            let files = Files { certificate: path.clone(), key: key.clone() };
            let metrics = surroundings.metrics.clone();
            let loaded = files.load(&certificate, &metrics);
            loaded.map_err(|error| ServeError::Files(crate::error::chain(&error)))?;
            failure.send_replace(None);
            surroundings.handle.registered(Ok(()));
            Ok(Box::pin(files.follow(certificate, metrics)))
        }
    }
}
