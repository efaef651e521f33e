//! The kinds that most operators have to do with.
//!
//! Generic code is compiled for a kind where it is used: in every crate, again after every edit. What is compiled for a
//! kind here already, crates above take over, as long as nothing is optimised; so building an operator, and its tests,
//! is mostly its own code. Where things are optimised the compiler shares nothing, and this would only cost time.

use k8s_openapi::api::{
    apps::v1::{DaemonSet, Deployment, StatefulSet},
    autoscaling::v2::HorizontalPodAutoscaler,
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service, ServiceAccount},
    networking::v1::Ingress,
    policy::v1::PodDisruptionBudget,
};
use serde_json::Value;

use crate::{
    apply::{Children, encode},
    cache::Reader,
    object::{Kind, Object, ObjectKey},
    wire,
};

type Compiled = fn(&str, &Reader) -> Option<(Value, Children)>;

/// Nobody calls these: what they are compiled from is what they are for.
pub static KINDS: [Compiled; 14] = [
    compiled::<ConfigMap>,
    compiled::<CronJob>,
    compiled::<DaemonSet>,
    compiled::<Deployment>,
    compiled::<HorizontalPodAutoscaler>,
    compiled::<Ingress>,
    compiled::<Job>,
    compiled::<PersistentVolumeClaim>,
    compiled::<Pod>,
    compiled::<PodDisruptionBudget>,
    compiled::<Secret>,
    compiled::<Service>,
    compiled::<ServiceAccount>,
    compiled::<StatefulSet>,
];

/// Reading an object, comparing and writing it, its cache, and what applies it as a child.
fn compiled<K: Object + PartialEq>(text: &str, reader: &Reader) -> Option<(Value, Children)> {
    let object: K = wire::read(text).ok()?;
    let key = ObjectKey::of(&object);
    let known = reader.get::<K>(key.namespace(), key.name()).ok()??;
    let value = (*known != object).then(|| encode(&object, &Kind::of::<K>(), &key).ok()).flatten()?;
    Some((value, Children::new().with(object)))
}
