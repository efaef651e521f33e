//! Keeps the certificates of the webhooks: in a Secret that all replicas share, in this process' server, and,
//! as what is to be trusted, in every object through which the API server finds the webhooks.
//!
//! Enters: changes of those objects, and time. Leaves: writes only where something differs. All replicas do
//! this, not only the leader, since all of them serve. Two that act at once meet at the Secret's resource
//! version: one wins, the other takes over what it finds.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream, stream::BoxStream};
use k8s_openapi::{api::core::v1::Secret, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use kube::{Api, Client, api::PostParams};
use tokio::sync::watch;

use super::{
    Reach, Webhooks,
    certificates::{self, Bundle},
    inject::{self, Injector},
};
use crate::{
    changes::changes_of,
    clock::Clock,
    error::chain,
    handle::Handle,
    metrics::Metrics,
    tls::{self, Certificate},
};

#[cfg(test)]
mod tests;

/// How long to wait after a failure.
const RETRY: Duration = Duration::from_secs(5);
/// How often losing the race for the Secret is worth another try at once.
const RACES: usize = 5;

/// Why the certificates are not in order. It is tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("failed to {verb} the Secret {name} for the webhooks' certificates")]
    Secret {
        verb: &'static str,
        name: String,
        #[source]
        source: Box<kube::Error>,
    },
    #[error("failed to renew the Secret {0}: other replicas keep changing it")]
    Contended(String),
    #[error("failed to renew the webhooks' certificates")]
    Certificates(#[from] certificates::Error),
    #[error("failed to serve the webhooks' certificate")]
    Tls(#[from] tls::Error),
    #[error(transparent)]
    Inject(#[from] inject::Error),
}

/// See the module's description.
pub(crate) struct Keeper {
    pub(crate) operator: String,
    pub(crate) secret: String,
    pub(crate) namespace: String,
    pub(crate) client: Client,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) metrics: Metrics,
    pub(crate) handle: Handle,
    /// The API server is in this process.
    pub(crate) in_process: bool,
    pub(crate) hooks: Webhooks,
    pub(crate) reach: Reach,
    pub(crate) certificate: Certificate,
    /// Why the webhooks cannot be served; `None` once they can.
    pub(crate) failure: watch::Sender<Option<String>>,
}

impl Keeper {
    /// Never returns.
    pub(crate) async fn run(self) {
        let mut changes = stream::select_all(self.changes());
        loop {
            let pause = match self.step().await {
                Ok(pause) => {
                    self.handle.registered(Ok(()));
                    pause
                }
                Err(error) => {
                    let text = chain(&error);
                    self.handle.registered(Err(text.clone()));
                    tracing::warn!(error = text, "failed to keep the webhooks' certificates, retrying");
                    self.failure.send_if_modified(|failure| {
                        // A certificate that is already served is good enough to be ready.
                        failure.is_some() && failure.replace(text.clone()) != Some(text)
                    });
                    RETRY
                }
            };
            tokio::select! {
                biased;
                Some(()) = changes.next() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Sees to it that everything is as it should be. Returns when to look again.
    async fn step(&self) -> Result<Duration, Error> {
        let bundle = self.bundle().await;
        self.metrics.certificate_read(bundle.is_err());
        let bundle = bundle?;
        self.certificate.set(&bundle.certificate, &bundle.key)?;
        self.failure.send_if_modified(|failure| failure.take().is_some());
        self.injector().inject(&bundle.trusted()).await?;
        Ok(bundle.look_again(self.clock.now()))
    }

    fn injector(&self) -> Injector<'_> {
        Injector { client: &self.client, operator: &self.operator, hooks: &self.hooks, reach: &self.reach }
    }

    /// What the Secret holds, after renewing it if need be.
    async fn bundle(&self) -> Result<Bundle, Error> {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), &self.namespace);
        for _ in 0..RACES {
            let live = secrets.get_opt(&self.secret).await.map_err(|e| self.failed("read", e))?;
            let held = live.as_ref().and_then(|secret| Bundle::read(secret.data.as_ref()?));
            let Some(wanted) = Bundle::renewed(held.as_ref(), &self.reach.names(), self.clock.now())? else {
                return held.ok_or_else(|| Error::Contended(self.secret.clone()));
            };
            match self.write(&secrets, live, &wanted).await {
                Ok(()) => {
                    tracing::info!(secret = self.secret, "certificates of the webhooks renewed");
                    return Ok(wanted);
                }
                // Another replica was faster: what it wrote is as good.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(self.failed("write", error)),
            }
        }
        Err(Error::Contended(self.secret.clone()))
    }

    async fn write(
        &self,
        secrets: &Api<Secret>,
        live: Option<Secret>,
        bundle: &Bundle,
    ) -> Result<(), kube::Error> {
        let params = PostParams::default();
        let data = Some(bundle.data());
        match live {
            // The resource version that was read goes along, so that a race is noticed.
            Some(live) => secrets.replace(&self.secret, &params, &Secret { data, ..live }).await,
            None => {
                let labels = [("app.kubernetes.io/name", &self.operator)];
                let metadata = ObjectMeta {
                    name: Some(self.secret.clone()),
                    labels: Some(labels.map(|(key, value)| (key.to_owned(), value.clone())).into()),
                    ..ObjectMeta::default()
                };
                secrets.create(&params, &Secret { metadata, data, ..Secret::default() }).await
            }
        }
        .map(drop)
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> Error {
        Error::Secret { verb, name: format!("{}/{}", self.namespace, self.secret), source: Box::new(source) }
    }

    /// A stream for every object that matters here, with an item whenever it changes.
    fn changes(&self) -> Vec<BoxStream<'static, ()>> {
        let mut changes = self.injector().changes(self.in_process);
        let namespace = Some(self.namespace.as_str());
        changes.push(changes_of::<Secret>(&self.client, namespace, &self.secret, self.in_process));
        changes
    }
}
