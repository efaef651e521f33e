//! Memcached: cache nodes behind one headless Service.
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

pub use api::{Exporter, Memcached, MemcachedSpec, MemcachedStatus};
pub use controller::{Memcacheds, controller};

use crate::workload::Settings;

/// Adds the kind and its controller to an operator.
pub fn register(operator: Operator) -> Operator {
    let settings = Settings { resync: Some(std::time::Duration::from_mins(1)), ..Settings::default() };
    operator.crd::<Memcached>().controller(controller(settings))
}

/// The sample that `config/samples` shows and `windlass dev` applies.
pub fn sample() -> Memcached {
    let spec = MemcachedSpec { size: 3, image: api::default_image(), ..MemcachedSpec::default() };
    let metadata = ObjectMeta { name: Some("memcached-sample".into()), ..ObjectMeta::default() };
    Memcached { metadata, spec, status: None }
}
