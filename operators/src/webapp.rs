//! WebApp: an application behind a domain, with autoscaling and a disruption budget.
//!
//! [`api`] holds the types, [`controller`] the flow, [`build`] and [`route`] what is wanted (pure), [`domains`] who
//! has which domain (pure), [`config`] what the Pods' environment comes from, [`autoscaler`] what that says of itself
//! (pure), [`status`] what is reported (pure).

use kube::core::ObjectMeta;
use windlass::Operator;

pub mod api;
mod autoscaler;
mod build;
mod config;
mod controller;
mod domains;
mod route;
mod status;

#[cfg(test)]
mod tests;

pub use api::{WebApp, WebAppSpec, WebAppStatus};
pub use controller::{WebApps, controller};

use crate::workload::Settings;

/// Adds the kind and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    operator.crd::<WebApp>().controller(controller(Settings::default()))
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> WebApp {
    let spec = WebAppSpec {
        replicas: 3,
        image: "nginx:alpine".into(),
        port: 80,
        domain: Some("example.com".into()),
        path: "/".into(),
        ..WebAppSpec::default()
    };
    let metadata = ObjectMeta { name: Some("my-webapp".into()), ..ObjectMeta::default() };
    WebApp { metadata, spec, status: None }
}
