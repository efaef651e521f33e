//! Running an operator in a test: against any cluster, in the same process, on a paused clock if need be.
//!
//! Whoever tests on the embedded cluster has all of this in one call: `windlass_cluster::testing::Environment` installs
//! the operator, runs it under its own permissions, and records its requests; see the [guide](crate::guide#testing).
//! What is here is what that is made of, for any other API server:
//!
//! ```no_run
//! use windlass::{Operator, kube::{Config, client::ClientBuilder}, testing::{Requests, Running}};
//!
//! # async fn example(operator: Operator, config: Config) -> Result<(), Box<dyn std::error::Error>> {
//! let requests = Requests::default();
//! let client = ClientBuilder::try_from(config)?.with_layer(&requests).build();
//! let running = Running::start(operator, client, &requests).await;
//! // … create objects …
//! running.settled().await;
//! running.assert_second_reconcile_writes_nothing().await;
//! running.stop().await;
//! # Ok(()) }
//! ```
//!
//! An API server in this process is a tower service: `Client::new(requests.around(server), "default")`.

mod failures;
mod fuse;
mod requests;
mod running;

pub use crate::tls::Connector;
pub use {
    fuse::{Fuse, Fused, LastWrite},
    requests::{Recorded, Requests, Seen},
    running::Running,
};

use crate::{Kind, Operator, rbac::Access};

/// Lets an operator serve its webhooks to an API server in the same process, without a socket, as its
/// [manifests](Operator::manifests) for this namespace announce them: the Service that they name leads to the connector.
///
/// `None` if the operator has no webhooks.
pub fn serve_webhooks(operator: &mut Operator, namespace: &str) -> Option<Connector> {
    operator.serve_webhooks_in_process(namespace)
}

/// The kinds that an operator's controllers reconcile and own, each once: those whose objects are its work.
pub fn kinds(operator: &Operator) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = Vec::new();
    for access in operator.declared() {
        let own = !matches!(access, Access::Reads(_));
        if own && !kinds.contains(access.kind()) {
            kinds.push(access.kind().clone());
        }
    }
    kinds
}
