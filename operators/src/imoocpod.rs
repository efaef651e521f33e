//! ImoocPod: a number of Pods that sleep.
//!
//! [`api`] holds the types, [`controller`] the flow, [`build`] what is wanted (pure), [`status`] what is reported
//! (pure).

use kube::core::ObjectMeta;
use windlass::Operator;

pub mod api;
mod build;
mod controller;
mod status;

#[cfg(test)]
mod tests;

pub use api::{ImoocPod, ImoocPodSpec, ImoocPodStatus};
pub use controller::{ImoocPods, controller};

use crate::workload::Settings;

/// Adds the kind and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    operator.crd::<ImoocPod>().controller(controller(Settings::default()))
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> ImoocPod {
    let spec = ImoocPodSpec { replicas: 2, image: api::default_image(), pod: None };
    let metadata = ObjectMeta { name: Some("imoocpod-sample".into()), ..ObjectMeta::default() };
    ImoocPod { metadata, spec, status: None }
}
