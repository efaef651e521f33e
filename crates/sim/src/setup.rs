//! What an author says about an operator, and what follows from it.

use std::{fmt, sync::Arc};

use windlass::{Kind, Operator, k8s_openapi::api::core::v1::Pod, serde_json::Value, testing};
use windlass_cluster::{Builder, Cluster, testing::Normalise};

use crate::{
    objects::Objects,
    plan::Scope,
    replica::{MakeOperator, webhook_service},
};

pub(crate) type Check = dyn Fn(&Objects) -> Result<(), String> + Send + Sync;

/// An invariant of the author's.
pub(crate) struct Invariant {
    pub(crate) name: String,
    pub(crate) check: Box<Check>,
}

/// What all days of a simulation have in common.
pub(crate) struct Setup {
    pub(crate) operator: Arc<MakeOperator>,
    pub(crate) cluster: Box<dyn Fn() -> Builder + Send + Sync>,
    /// The main one first.
    pub(crate) objects: Vec<Value>,
    /// Merge patches of the main one.
    pub(crate) changes: Vec<Value>,
    pub(crate) invariants: Vec<Invariant>,
    pub(crate) normalise: Box<Normalise>,
    pub(crate) scope: Scope,
    /// The kind of the main object.
    pub(crate) main: Kind,
    /// The kinds that the operator reconciles.
    pub(crate) reconciled: Vec<Kind>,
    /// The kinds that it reconciles or owns.
    pub(crate) kinds: Vec<Kind>,
    /// Those of its kinds whose objects somebody may delete or edit.
    pub(crate) children: Vec<Kind>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("main", &self.main).finish_non_exhaustive()
    }
}

/// The volume with a Pod's token is named by chance.
fn unnamed(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(unnamed),
        Value::Array(items) => items.iter_mut().for_each(unnamed),
        Value::String(text) if text.starts_with("kube-api-access-") => "kube-api-access".clone_into(text),
        _ => {}
    }
}

impl Setup {
    pub(crate) fn new(operator: Arc<MakeOperator>) -> Self {
        let mut example = operator();
        let kinds = testing::kinds(&example);
        let defined = |kind: &Kind, operator: &Operator| {
            operator.crds().iter().any(|crd| crd.spec.group == kind.group && crd.spec.names.kind == kind.kind)
        };
        let (reconciled, children): (Vec<Kind>, Vec<Kind>) =
            kinds.iter().cloned().partition(|kind| defined(kind, &example));
        let webhooks = webhook_service(&mut example).is_some();
        Self {
            operator,
            cluster: Box::new(Cluster::builder),
            objects: Vec::new(),
            changes: Vec::new(),
            invariants: Vec::new(),
            normalise: Box::new(|_| {}),
            scope: Scope { webhooks, ..Scope::default() },
            main: reconciled.first().cloned().unwrap_or_else(Kind::of::<Pod>),
            reconciled,
            kinds,
            children,
        }
    }

    /// Takes what differs between two days by their nature out of an object, then what the author says.
    pub(crate) fn normalised(&self, object: &mut Value) {
        if let Some(annotations) = object["metadata"]["annotations"].as_object_mut() {
            // Counts how often a template has changed, whoever changed it.
            annotations.remove("deployment.kubernetes.io/revision");
            annotations.remove("windlass.dev/simulate");
            if annotations.is_empty() {
                object["metadata"]["annotations"] = Value::Null;
            }
        }
        // Where a Pod runs is the scheduler's business.
        if object["kind"] == "Pod" {
            object["spec"]["nodeName"] = Value::Null;
            unnamed(&mut object["spec"]);
        }
        (self.normalise)(object);
    }
}
