//! WebServer: some replicas of a web server image behind one Service.
//!
//! [`api`] holds the types, [`controller`] the flow, [`build`] what is wanted (pure), [`status`] what is reported
//! (pure). Every operator of this crate has these rooms.

use std::collections::BTreeMap;

use kube::core::ObjectMeta;
use windlass::Operator;

pub mod api;
mod build;
mod controller;
mod status;

#[cfg(test)]
mod tests;

pub use api::{WebServer, WebServerSpec, WebServerStatus};
pub use controller::{WebServers, controller};

use crate::workload::Settings;

/// Adds the kind and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    operator.crd::<WebServer>().controller(controller(Settings::default()))
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> WebServer {
    let spec = WebServerSpec {
        replicas: 3,
        image: api::default_image(),
        image_pull_policy: None,
        port: api::default_port(),
        content: BTreeMap::new(),
        pod: None,
    };
    let metadata = ObjectMeta { name: Some("webserver-sample".into()), ..ObjectMeta::default() };
    WebServer { metadata, spec, status: None }
}
