//! PodManager: Pods `<name>-0`, `<name>-1`, … of one image, made and removed by the operator itself.
//!
//! [`api`] holds the types, [`controller`] the flow, [`build`] what is wanted (pure), [`status`] what is reported
//! (pure).

use kube::core::ObjectMeta;
use windlass::{Operator, webhook::Conversion};

pub mod api;
mod build;
mod controller;
mod status;

#[cfg(test)]
mod tests;

pub use api::{PodManager, PodManagerSpec, PodManagerStatus, v1alpha1};
pub use controller::{Counter, FINALIZER, PodManagers, controller};

use crate::workload::Settings;

/// Adds the kind, its controller and its metric to an operator.
pub fn register(operator: Operator) -> Operator {
    register_with(operator, Settings::default(), None)
}

/// Adds them with other settings, for one namespace or for all.
pub fn register_with(operator: Operator, settings: Settings, namespace: Option<&str>) -> Operator {
    let counter = Counter::default();
    operator.metrics().register(
        "podmanager_reconcile",
        "Total number of reconciles of PodManagers, by result",
        counter.family(),
    );
    let controller = controller(settings, counter);
    let controller = match namespace {
        Some(namespace) => controller.namespace(namespace),
        None => controller,
    };
    webhooks(operator.crd::<PodManager>().crd::<v1alpha1::PodManager>()).controller(controller)
}

/// Adds the conversion between the versions of PodManager.
pub fn webhooks(operator: Operator) -> Operator {
    operator.converts(Conversion::hub::<PodManager>().spoke::<v1alpha1::PodManager>())
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> PodManager {
    let spec = PodManagerSpec { replicas: 3, image: "nginx:1.27".into(), pod: None };
    let metadata = ObjectMeta { name: Some("my-pod-manager".into()), ..ObjectMeta::default() };
    PodManager { metadata, spec, status: None }
}

/// The same in the older version.
pub fn v1alpha1_sample() -> v1alpha1::PodManager {
    let container = v1alpha1::Container { image: "nginx:1.27".into(), ..v1alpha1::Container::default() };
    let metadata = ObjectMeta { name: Some("my-pod-manager".into()), ..ObjectMeta::default() };
    let spec = v1alpha1::PodManagerSpec { size: 3, container };
    v1alpha1::PodManager { metadata, spec, status: None }
}
