//! The webhooks of an operator: which it has, and where they are served.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use super::{Operator, manifests};
use crate::{
    object::Object,
    rbac::Call,
    tls::{Connector, NOWHERE, connections},
    webhook::{self, Conversion, Defaulter, Validator, Webhook},
};

impl Operator {
    /// What is stored must be what every version can become: the hub.
    pub(super) fn store_hubs(&mut self) {
        for conversion in &self.webhooks.conversions {
            let hub = conversion.kind();
            let same = |crd: &&mut CustomResourceDefinition| {
                crd.spec.group == hub.group && crd.spec.names.kind == hub.kind
            };
            for version in self.crds.iter_mut().filter(same).flat_map(|crd| &mut crd.spec.versions) {
                version.storage = version.name == hub.version;
            }
        }
    }

    /// Asks a validator about creations and updates of its kind.
    #[track_caller]
    pub fn validates<V: Validator>(self, validator: V) -> Self
    where
        V::Resource: Object,
    {
        self.hooked(Webhook::validating(validator), Call::here("Operator::validates"))
    }

    /// Lets a defaulter fill in creations and updates of its kind.
    #[track_caller]
    pub fn defaults<D: Defaulter>(self, defaulter: D) -> Self
    where
        D::Resource: Object,
    {
        self.hooked(Webhook::defaulting(defaulter), Call::here("Operator::defaults"))
    }

    /// Adds a validating or defaulting webhook with settings of its own.
    #[track_caller]
    pub fn webhook(self, webhook: Webhook) -> Self {
        self.hooked(webhook, Call::here("Operator::webhook"))
    }

    fn hooked(mut self, webhook: Webhook, call: Call) -> Self {
        self.webhooks.admission.push(webhook);
        self.hook_calls.push(call);
        self
    }

    /// Converts between the versions of a kind, whose CRD must have been [added](Self::crd).
    #[track_caller]
    pub fn converts(mut self, conversion: Conversion) -> Self {
        self.hook_calls.push(Call::here("Operator::converts"));
        self.webhooks.conversions.push(conversion);
        self.store_hubs();
        self
    }

    /// Serves the webhooks on a socket. Without this, a [`run`](Self::run) serves none; `main` does it itself.
    pub fn serve_webhooks(mut self, server: webhook::Server) -> Self {
        self.webhook_server = Some(server);
        self
    }

    /// Whether a run serves webhooks.
    pub(crate) fn serves_webhooks(&self) -> bool {
        self.webhook_server.is_some() && !self.webhooks.is_empty() && !self.dry_run
    }

    /// Serves the webhooks to an API server in the same process, as the [manifests](Self::manifests) for this namespace
    /// announce them. `None` if there are none.
    pub(crate) fn serve_webhooks_in_process(&mut self, namespace: &str) -> Option<Connector> {
        if self.webhooks.is_empty() || self.dry_run {
            return None;
        }
        let reach = manifests::service(&self.name, namespace);
        let webhook::Reach::Service { name: service, .. } = &reach else { return None };
        let (connector, connections) = connections(service.clone());
        self.webhook_server = Some(webhook::Server {
            address: NOWHERE,
            reach,
            certificates: webhook::Certificates::Issued {
                namespace: namespace.to_owned(),
                secret: manifests::secret_name(&self.name),
            },
            http2: false,
        });
        self.webhook_connections = Some(connections);
        Some(connector)
    }
}
