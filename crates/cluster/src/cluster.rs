//! The handle of a running cluster: clients, a socket if one is wanted, and the end.

mod builder;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::{Clock, RunError, clock, jiff::Timestamp, kube::Client};
use windlass_apiserver::{
    ApiServer,
    audit::AuditLog,
    auth::{
        Identity, MASTERS,
        token::{self, Signer},
    },
    authority::{self, Authority},
    data_directory::{self, DataDirectory},
    environment::Environment,
    listener::{self, Listener, Serving},
    registry::Registry,
    store::{DiskError, DiskOptions, Encryption, Store},
};

pub use self::builder::{Access, Builder};
use crate::{descriptions::Descriptions, node::exec::Simulated, restarts::Restarts};

/// Why a cluster could not be started, opened or stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused its own first objects.
    #[error("failed to start the API server: {0}")]
    ApiServer(String),
    /// The controllers ended before they were asked to.
    #[error("failed to run the controllers")]
    Controllers(#[source] RunError),
    /// The controllers' task died.
    #[error("failed to join the controllers")]
    Join(#[source] tokio::task::JoinError),
    /// The data directory could not be taken.
    #[error("failed to use the data directory")]
    DataDirectory(#[source] data_directory::Error),
    /// What the data directory holds could not be read.
    #[error("failed to open the store")]
    Store(#[source] Box<DiskError>),
    /// A certificate could not be made.
    #[error("failed to make the cluster's certificates")]
    Certificates(#[source] authority::Error),
    /// The key of service account tokens could not be kept.
    #[error("failed to keep the key of service account tokens")]
    TokenKey(#[source] token::Error),
    /// The audit log could not be opened.
    #[error("failed to open the audit log {}", path.display())]
    AuditLog {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: std::io::Error,
    },
    /// The socket could not be opened.
    #[error("failed to open the cluster's socket")]
    Listen(#[source] listener::Error),
}

/// Where a data directory remembers the port of the last time.
const PORT: &str = "port";

/// What a cluster stands on: in memory, or as the data directory has it.
struct Parts {
    store: Store,
    authority: Authority,
    signer: Option<Signer>,
    data: Option<DataDirectory>,
}

impl Parts {
    async fn open(
        directory: Option<PathBuf>,
        sync: bool,
        encryption: Option<Arc<Encryption>>,
        now: Timestamp,
    ) -> Result<Self, Error> {
        let Some(directory) = directory else {
            let authority = Authority::new(now).map_err(Error::Certificates)?;
            return Ok(Self { store: Store::default(), authority, signer: None, data: None });
        };
        // Files are read here: not on a thread that others wait for.
        let open = move || {
            let data = DataDirectory::open(directory).map_err(Error::DataDirectory)?;
            // The log before the keys: a start that is cut off in between must not look like a cluster without its log.
            let options = DiskOptions { sync, ..DiskOptions::default() };
            let store = Store::open_encrypted(&data, options, encryption);
            let store = store.map_err(|error| Error::Store(Box::new(error)))?;
            let authority = Authority::kept(&data, now).map_err(Error::Certificates)?;
            let signer = Some(Signer::kept(&data).map_err(Error::TokenKey)?);
            Ok(Self { store, authority, signer, data: Some(data) })
        };
        tokio::task::spawn_blocking(open).await.map_err(Error::Join)?
    }
}

/// A seed for a store that has come to `revision`: a permutation of it, so that no two are the same.
fn seed_of_restart(seed: u64, revision: u64) -> u64 {
    seed ^ revision.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// A Kubernetes cluster in this process.
///
/// Dropping it stops it; [`Cluster::shutdown`] also waits for the end and reports what went wrong.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use windlass::{k8s_openapi::api::core::v1::Namespace, kube::Api};
/// use windlass_cluster::Cluster;
///
/// let cluster = Cluster::start().await?;
/// let namespaces: Api<Namespace> = Api::all(cluster.client());
/// assert!(namespaces.get_opt("default").await?.is_some());
/// cluster.shutdown().await?;
/// # Ok(())
/// # }
/// ```
pub struct Cluster {
    server: ApiServer,
    clock: clock::TokioClock,
    stop: CancellationToken,
    controllers: Option<JoinHandle<Result<(), RunError>>>,
    restarts: Restarts,
    listeners: Vec<JoinHandle<()>>,
    authority: Authority,
    data: Option<DataDirectory>,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Cluster").field("revision", &self.revision()).finish_non_exhaustive()
    }
}

/// An open socket of a cluster.
#[derive(Clone, Debug)]
pub struct Listening {
    /// Where the server is reached.
    pub address: SocketAddr,
    /// Its URL.
    pub url: String,
    /// The text of a kubeconfig with which kubectl is the administrator.
    pub kubeconfig: String,
}

impl Cluster {
    /// Starts a cluster in memory with one simulated node, for the machine's time.
    pub async fn start() -> Result<Self, Error> {
        Self::builder().start().await
    }

    /// Options before the start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) async fn launch(builder: Builder) -> Result<Self, Error> {
        let start = builder.start.unwrap_or_else(Timestamp::now);
        let clock = clock::TokioClock::starting_at(start);
        let Access { tokens, always_allow, disabled_plugins, oidc, audit, encryption } = builder.access;
        let Parts { store, authority, signer, data } =
            Parts::open(builder.data_dir, builder.fsync, encryption, start).await?;
        // Another life of the same cluster must not repeat the uids of the one before.
        let seed =
            if data.is_some() { seed_of_restart(builder.seed, store.revision()) } else { builder.seed };
        let environment = Environment::new(clock, seed);
        let registry = Registry::new(Arc::new(store), environment)
            .map_err(|error| Error::ApiServer(error.to_string()))?
            .with_descriptions(Arc::new(Descriptions { with_controllers: builder.controllers.is_some() }));
        let registry = match signer {
            Some(signer) => registry.with_signer(signer),
            None => registry,
        };
        let registry = registry.without_plugins(disabled_plugins);
        let registry = if always_allow { registry.always_allowing() } else { registry };
        let restarts = Restarts::default();
        let told = restarts.clone();
        let mut server =
            ApiServer::new(Arc::new(registry)).with_readiness(move || told.failure()).with_tokens(tokens);
        if let Some(options) = oidc {
            server = server.with_oidc(options);
        }
        if let Some(options) = audit {
            let path = options.path.clone();
            let log = AuditLog::open(options).map_err(|source| Error::AuditLog { path, source })?;
            server = server.with_audit(log);
        }
        let stop = CancellationToken::new();
        let controllers = builder.controllers.map(|mut controllers| {
            controllers.root_ca.get_or_insert_with(|| authority.certificate());
            let manager = Identity::new("system:kube-controller-manager", [MASTERS.to_owned()]);
            let client = Client::new(server.as_user(manager), "default");
            if controllers.nodes > 0 {
                let kubelet = Identity::new("system:node:windlass", [MASTERS.to_owned()]);
                let client = Client::new(server.as_user(kubelet), "default");
                server = server.clone().with_containers(Arc::new(Simulated::new(client, clock)));
            }
            let restarts = restarts.clone();
            tokio::spawn(controllers.running(client, Arc::new(clock), stop.clone(), true, restarts))
        });
        Ok(Self { server, clock, stop, controllers, restarts, listeners: Vec::new(), authority, data })
    }

    /// A client with which everything is allowed. No socket is involved.
    pub fn client(&self) -> Client {
        self.client_as(Identity::admin())
    }

    /// A client for another user.
    pub fn client_as(&self, identity: Identity) -> Client {
        Client::new(self.server.as_user(identity), "default")
    }

    /// The cluster's time.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The clock of the cluster, for an operator that is to share it.
    pub fn clock(&self) -> clock::TokioClock {
        self.clock
    }

    /// A hold on the built-in controllers, for whoever wants to see what they do: those that run now, or none while they
    /// begin anew. It may be asked at any time, also when the cluster is gone.
    pub fn controllers(&self) -> impl Fn() -> Option<windlass::Handle> + Send + Sync + 'static {
        let restarts = self.restarts.clone();
        move || restarts.handle()
    }

    /// The revision of the last write: two equal ones mean that nothing was written in between.
    pub fn revision(&self) -> u64 {
        self.server.registry().store().revision()
    }

    /// The API server as a `tower::Service`, for other transports.
    pub fn server(&self) -> &ApiServer {
        &self.server
    }

    /// Opens a TLS socket, and makes a kubeconfig for it. Port 0 takes any free port; with a data directory, the
    /// one of the last time if it is free, so that a kubeconfig from then goes on working.
    pub async fn listen(&mut self, address: SocketAddr) -> Result<Listening, Error> {
        let authority = &self.authority;
        let listener = match self.last_address(address) {
            Some(last) => Listener::bind(last, authority).await.ok(),
            None => None,
        };
        let listener = match listener {
            Some(listener) => listener,
            None => Listener::bind(address, authority).await.map_err(Error::Listen)?,
        };
        self.remember(listener.address());
        let user = Identity::admin();
        let credentials = authority.client(&user.name, &[MASTERS]).map_err(Error::Certificates)?;
        let url = listener.url();
        let kubeconfig = listener::kubeconfig(&url, authority, &user.name, &credentials);
        let listening = Listening { address: listener.address(), url, kubeconfig };
        let stop = self.stop.clone().cancelled_owned();
        self.listeners.push(tokio::spawn(listener.serve(self.server.clone(), stop)));
        Ok(listening)
    }

    /// Opens a TLS socket with certificates of somebody else's, and returns its address.
    pub async fn listen_with(
        &mut self,
        address: SocketAddr,
        serving: Serving<'_>,
    ) -> Result<SocketAddr, Error> {
        let listener = Listener::bind_with(address, serving).await.map_err(Error::Listen)?;
        let address = listener.address();
        let stop = self.stop.clone().cancelled_owned();
        self.listeners.push(tokio::spawn(listener.serve(self.server.clone(), stop)));
        Ok(address)
    }

    fn last_address(&self, address: SocketAddr) -> Option<SocketAddr> {
        let file = self.data.as_ref()?.path().join(PORT);
        let port = std::fs::read_to_string(file).ok()?.trim().parse().ok()?;
        (address.port() == 0).then(|| SocketAddr::new(address.ip(), port))
    }

    fn remember(&self, address: SocketAddr) {
        let Some(data) = &self.data else { return };
        let port = format!("{}\n", address.port());
        let file = data.path().join(PORT);
        // Written only where it differs: on a full disk it would be emptied.
        if std::fs::read_to_string(&file).is_ok_and(|known| known == port) {
            return;
        }
        // Losing it costs a new port at the next start and nothing else.
        if let Err(error) = std::fs::write(file, port) {
            tracing::warn!(%error, "failed to remember the port");
        }
    }

    /// Waits until the controllers end by themselves, which is always a failure: for a process that serves.
    ///
    /// Cancel-safe; pends for ever without controllers.
    pub async fn failed(&mut self) -> Error {
        let Some(controllers) = &mut self.controllers else { return std::future::pending().await };
        let ended = controllers.await;
        self.controllers = None;
        match ended {
            Ok(Err(error)) => Error::Controllers(error),
            Err(error) => Error::Join(error),
            Ok(Ok(())) => std::future::pending().await,
        }
    }

    /// Stops everything and waits for every task to end.
    pub async fn shutdown(mut self) -> Result<(), Error> {
        self.stop.cancel();
        for listener in self.listeners.drain(..) {
            listener.await.map_err(Error::Join)?;
        }
        match self.controllers.take() {
            Some(controllers) => controllers.await.map_err(Error::Join)?.map_err(Error::Controllers),
            None => Ok(()),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
