//! HelloWorld: a Deployment of nginx, and the names of its Pods.
//!
//! [`api`] holds the types, [`controller`] the flow, [`build`] what is wanted (pure), [`status`] what is reported
//! (pure).

use kube::core::ObjectMeta;
use windlass::Operator;

pub mod api;
mod build;
mod controller;
mod status;

pub use api::{HelloWorld, HelloWorldSpec, HelloWorldStatus};
pub use controller::{HelloWorlds, controller};

use crate::workload::Settings;

/// Adds the kind and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    operator.crd::<HelloWorld>().controller(controller(Settings::default()))
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> HelloWorld {
    let spec = HelloWorldSpec { size: 2, image: api::default_image(), pod: None };
    let metadata = ObjectMeta { name: Some("helloworld-sample".into()), ..ObjectMeta::default() };
    HelloWorld { metadata, spec, status: None }
}
