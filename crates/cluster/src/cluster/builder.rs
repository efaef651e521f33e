//! What a cluster is made with: a chain of options enters, a running [`Cluster`] leaves.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use windlass::jiff::Timestamp;
use windlass_apiserver::{
    audit::AuditOptions,
    auth::{Identity, oidc::OidcOptions},
    store::Encryption,
};

use crate::{Cluster, Controllers, Error, Timing};

/// Options of a [`Cluster`].
#[derive(Clone, Debug)]
pub struct Builder {
    pub(crate) start: Option<Timestamp>,
    pub(crate) seed: u64,
    pub(crate) controllers: Option<Controllers>,
    pub(crate) data_dir: Option<PathBuf>,
    pub(crate) fsync: bool,
    pub(crate) access: Access,
}

/// Who is known to the API server, and what it asks before it does something.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Tokens beside those that the server signs itself, and whose they are.
    pub tokens: BTreeMap<String, Identity>,
    /// Whether everybody may do everything, as with the authorization mode `AlwaysAllow`.
    pub always_allow: bool,
    /// Built-in admission plug-ins that do not run, by Kubernetes' names.
    pub disabled_plugins: Vec<String>,
    /// The issuer of OpenID Connect whose tokens are taken.
    pub oidc: Option<OidcOptions>,
    /// Where it is written down who asks for what.
    pub audit: Option<AuditOptions>,
    /// How the data directory has objects.
    pub encryption: Option<Arc<Encryption>>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            start: None,
            seed: 0,
            controllers: Some(Controllers::default()),
            data_dir: None,
            fsync: true,
            access: Access::default(),
        }
    }
}

impl Builder {
    /// What the cluster's clock shows at the start: the machine's time unless set.
    pub fn start_time(mut self, start: Timestamp) -> Self {
        self.start = Some(start);
        self
    }

    /// Where uids and generated names come from: two clusters with the same seed and the same requests make the
    /// same ones. 0 unless set.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Where everything is kept: what the API server has acknowledged is there again at the next start, also after
    /// `kill -9`. One process at a time. In memory unless set.
    pub fn data_dir(mut self, directory: impl AsRef<Path>) -> Self {
        self.data_dir = Some(directory.as_ref().to_owned());
        self
    }

    /// Whether a write waits until the disk of the data directory has it: yes unless set. Without, what was
    /// acknowledged survives `kill -9` all the same, but not a power cut; etcd calls it `--unsafe-no-fsync`.
    pub fn fsync(mut self, fsync: bool) -> Self {
        self.fsync = fsync;
        self
    }

    /// Who is known to the API server, and what it asks before it does something: nobody but those who show a certificate
    /// or a token of its own, and everything, unless set.
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// How many simulated nodes there are: 1 unless set.
    pub fn nodes(self, count: usize) -> Self {
        self.change(|controllers| controllers.nodes = count)
    }

    /// How long Pods take to start, become ready and stop: no time unless set.
    pub fn timing(self, timing: Timing) -> Self {
        self.change(|controllers| controllers.timing = timing)
    }

    /// How often the nodes renew their Leases: every ten seconds unless set, never with `None`.
    pub fn heartbeat(self, period: Option<Duration>) -> Self {
        self.change(|controllers| controllers.heartbeat = period)
    }

    /// What every ConfigMap `kube-root-ca.crt` holds, in place of the certificate of the cluster's own authority: that one is
    /// made anew every time, whatever the seed.
    pub fn root_ca(self, certificate: impl Into<String>) -> Self {
        self.change(|controllers| controllers.root_ca = Some(certificate.into()))
    }

    /// Which controllers run.
    pub fn controllers(mut self, controllers: Controllers) -> Self {
        self.controllers = Some(controllers);
        self
    }

    /// The API server alone: what is written stays as it was written.
    pub fn without_controllers(mut self) -> Self {
        self.controllers = None;
        self
    }

    /// Starts the cluster. It answers requests at once; the controllers begin in the background.
    pub async fn start(self) -> Result<Cluster, Error> {
        Cluster::launch(self).await
    }

    fn change(mut self, change: impl FnOnce(&mut Controllers)) -> Self {
        change(self.controllers.get_or_insert_default());
        self
    }
}
