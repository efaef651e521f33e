//! Admission: who else has a say before an object is stored.
//!
//! A write enters as [`Attributes`] and an object; the object leaves changed, or the write is refused. Mutating webhooks
//! are asked one after the other, in the order of their configurations' names, before the object is validated (the step
//! `admit` of a write); validating webhooks are asked at the same time, after it (the step `confirm`). The registry knows
//! of this no more than its trait [`Admission`].
//!
//! # Guarantees
//!
//! - No lock is held while somebody is asked: a webhook may itself write to this server.
//! - What a webhook saw is what is committed: when another write came between, it is asked again.
//! - The configurations of admission themselves are admitted without asking, so that a webhook which is gone
//!   can always be removed.

mod dispatch;
mod patch;
mod plan;
mod plugins;
mod policy;
mod reinvocation;
mod review;
mod rules;

use std::{ops::Deref, sync::Arc};

use futures::future::BoxFuture;
use serde_json::Value;

use self::{plan::Hooks, policy::Policies};
use crate::{
    environment::Environment,
    error::Result,
    registry::{Admission, Attributes, LabelSelector, Operation, Registry},
    store::{Other, Store},
};

/// Everybody who has a say: the plugins, and the policies and webhooks that are configured.
#[derive(Debug)]
struct Chain {
    hooks: Hooks,
    policies: Policies,
    mutations: Policies,
}

/// The chain at work for a registry.
#[derive(Debug, Clone, Copy)]
struct Admitting<'a> {
    registry: &'a Registry,
    chain: &'a Chain,
}

impl Deref for Admitting<'_> {
    type Target = Registry;

    fn deref(&self) -> &Registry {
        self.registry
    }
}

impl Admission for Chain {
    fn is_needed(&self, registry: &Registry, request: &Attributes<'_>) -> bool {
        Admitting { registry, chain: self }.is_needed(request)
    }

    fn mutate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Attributes<'a>,
        object: Option<Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<Option<Value>>> {
        Box::pin(async move { Admitting { registry, chain: self }.mutate(request, object, old).await })
    }

    fn validate<'a>(
        &'a self,
        registry: &'a Registry,
        request: &'a Attributes<'a>,
        object: Option<&'a Value>,
        old: Option<&'a Value>,
    ) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move { Admitting { registry, chain: self }.validate(request, object, old).await })
    }

    fn charge(
        &self,
        registry: &Registry,
        request: &Attributes<'_>,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Vec<Other>> {
        registry.charge_quotas(request, object, old)
    }
}

impl Registry {
    /// A registry over `store` with everything in it that a new cluster has, in which everybody has a say who has one
    /// in Kubernetes.
    pub fn new(store: Arc<Store>, environment: Environment) -> Result<Self> {
        let (policies, mutations) = (Policies::validating(), Policies::mutating());
        Self::with_admission(
            store,
            environment,
            Arc::new(Chain { hooks: Hooks::default(), policies, mutations }),
        )
    }
}
