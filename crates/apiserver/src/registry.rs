//! The registry: what the API's verbs do to objects of any kind.
//!
//! A request enters as a [`Resource`], a [`Target`] and a body; an encoded object leaves. Built-in and custom kinds go
//! through one path: both are a schema plus a `strategy`, and all that is special about a kind is in `kinds`. The
//! registry knows schemas, patches, ownership and deletion, and nothing of HTTP. Every write takes the steps of `write`,
//! which ARCHITECTURE.md shows.

mod admission;
mod aggregation;
mod attributes;
mod bootstrap;
mod bounds;
pub mod catalog;
mod conversion;
pub mod crd;
mod decode;
mod delete;
mod evict;
mod expiry;
pub(crate) mod kinds;
mod label_selector;
mod list;
mod metadata;
mod patch;
pub mod resource;
pub(crate) mod scale;
pub mod selector;
pub(crate) mod strategy;
mod subresource;
mod token;
mod token_secret;
mod warnings;
mod write;

use std::{
    collections::BTreeSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use serde_json::Value;

pub(crate) use self::{
    admission::{Admission, AdmissionTimes, BOUNDS as ADMISSION_BOUNDS},
    label_selector::LabelSelector,
};
pub use self::{
    attributes::{Attributes, Operation},
    bootstrap::api_service,
    catalog::{Catalog, Definitions, definitions},
    decode::{Body as DecodedBody, json as decode_json},
    delete::{DeleteOptions, Deleted, Propagation},
    list::{List, ListOptions, Match, WatchOptions, WatchStart, parse_revision, too_old},
    patch::{Patch, PatchKind},
    resource::{GroupVersionKind, Origin, Resource, Subresource, group_version},
    selector::Selector,
    warnings::Warnings,
    write::{FieldValidation, Target, WriteOptions, Written},
};
use crate::{
    auth::{
        Identity,
        rbac::{Action, Authorizer, Rule},
        token::Signer,
        user_access::UserAccess,
        verified::Verified,
    },
    descriptions::Descriptions,
    environment::Environment,
    error::{Error, Result},
    schema::cel::Access,
    store::{Fields, Key, Object, Store},
    webhook::{Call, CallError, Caller, Resolver, Routes},
};

/// The state of one API server.
#[derive(Debug)]
pub struct Registry {
    store: Arc<Store>,
    catalog: tokio::sync::watch::Sender<Arc<Catalog>>,
    environment: Environment,
    addresses: kinds::service::Addresses,
    authorizer: Arc<Authorizer>,
    /// Held while a catalogue is made, so that an older one never replaces a newer one.
    definitions: Mutex<crd::Known>,
    /// Held while definitions settle, so that two of them never decide about names at once.
    settling: Mutex<()>,
    /// Whether a definition has changed since they were last looked at.
    unsettled: AtomicBool,
    /// How often the store had gone back when definitions and roles were last looked at.
    losses: AtomicU64,
    admission: Arc<dyn Admission>,
    admission_times: AdmissionTimes,
    caller: Caller,
    converted: conversion::Converted,
    expiry: Arc<expiry::Expiry>,
    signer: Signer,
    verified: Verified,
    routes: Arc<Routes>,
    resolver: Arc<dyn Resolver>,
    descriptions: Option<Arc<dyn Descriptions>>,
    disabled: BTreeSet<String>,
}

impl Registry {
    /// A registry over `store` with everything in it that a new cluster has: the namespaces, and the
    /// resources of the definitions that the store already holds.
    pub(crate) fn with_admission(
        store: Arc<Store>,
        environment: Environment,
        admission: Arc<dyn Admission>,
    ) -> Result<Self> {
        let routes = Arc::new(Routes::default());
        let resolver: Arc<Routes> = Arc::clone(&routes);
        let registry = Self {
            expiry: expiry::Expiry::new(&store, &environment),
            store,
            catalog: tokio::sync::watch::Sender::new(Arc::new(Catalog::built_in())),
            environment,
            addresses: kinds::service::Addresses::default(),
            authorizer: Arc::default(),
            definitions: Mutex::default(),
            settling: Mutex::default(),
            unsettled: AtomicBool::new(false),
            losses: AtomicU64::new(0),
            admission,
            admission_times: AdmissionTimes::default(),
            caller: Caller::default(),
            converted: conversion::Converted::default(),
            signer: Signer::generate().map_err(Error::internal)?,
            verified: Verified::default(),
            routes,
            resolver,
            descriptions: None,
            disabled: BTreeSet::new(),
        };
        registry.bootstrap()?;
        Ok(registry)
    }

    /// The same registry, whose webhooks behind Services are found by `resolver`.
    #[must_use]
    pub fn with_resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// The same registry, whose built-in kinds are described by `descriptions`.
    #[must_use]
    pub fn with_descriptions(mut self, descriptions: Arc<dyn Descriptions>) -> Self {
        self.descriptions = Some(descriptions);
        self
    }

    /// Who describes built-in kinds, if anybody does.
    pub(crate) fn descriptions(&self) -> Option<&dyn Descriptions> {
        self.descriptions.as_deref()
    }

    /// The same registry, which signs the tokens of service accounts with a key that was kept.
    #[must_use]
    pub fn with_signer(mut self, signer: Signer) -> Self {
        self.signer = signer;
        self
    }

    /// The same registry without some of the built-in admission plug-ins, by Kubernetes' names.
    #[must_use]
    pub fn without_plugins(mut self, names: impl IntoIterator<Item = String>) -> Self {
        self.disabled.extend(names);
        self
    }

    /// Whether a built-in admission plug-in runs.
    pub(crate) fn runs_plugin(&self, name: &str) -> bool {
        !self.disabled.contains(name)
    }

    /// The same registry, in which everybody may do everything.
    #[must_use]
    pub fn always_allowing(self) -> Self {
        self.authorizer.allow_everything();
        self
    }

    /// The same registry, whose events live this long after their last write, in place of an hour.
    #[must_use]
    pub fn with_event_ttl(self, ttl: std::time::Duration) -> Self {
        self.expiry.set_ttl(ttl);
        self
    }

    /// Where Services lead that have no real Pods behind them, unless a resolver was given.
    pub fn routes(&self) -> &Routes {
        &self.routes
    }

    /// Does again what follows from definitions and roles, if the disk has taken it back since the last time. A
    /// definition may be on the disk and what the server made of it not.
    pub(crate) fn settle_losses(&self, losses: u64) {
        if losses != self.losses.load(Ordering::Acquire)
            && self.store.check_disk().is_ok()
            && self.losses.swap(losses, Ordering::AcqRel) != losses
        {
            self.settle_definitions();
            self.aggregate_roles();
        }
    }

    /// Calls a webhook.
    pub(crate) async fn call_webhook(&self, call: &Call<'_>) -> Result<Value, CallError> {
        self.caller.call(&self.store, &*self.resolver, &self.environment, call).await
    }

    /// Gets a JSON document over TLS, from whom somebody has said who signs their certificate, or whom the system trusts.
    pub(crate) async fn get_json(&self, url: String, authorities: Option<&str>) -> Result<Value, String> {
        self.caller.get(&self.store, &*self.resolver, &self.environment, url, authorities).await
    }

    /// What is served right now.
    pub fn catalog(&self) -> Arc<Catalog> {
        self.current_catalog()
    }

    /// What is served from now on.
    pub(crate) fn catalog_changes(&self) -> tokio::sync::watch::Receiver<Arc<Catalog>> {
        self.catalog.subscribe()
    }

    /// The store behind the registry.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the user may do it.
    pub fn allows(&self, who: &Identity, action: Action<'_>) -> bool {
        self.authorizer.allows(&self.store, who, action)
    }

    /// Why the user may do it, for the audit log.
    pub(crate) fn reason(&self, who: &Identity, action: Action<'_>) -> String {
        self.authorizer.reason(&self.store, who, action)
    }

    /// What expressions of admission can ask about the user.
    pub(crate) fn access_of(&self, who: &Identity) -> Arc<dyn Access> {
        let (store, authorizer) = (Arc::clone(&self.store), Arc::clone(&self.authorizer));
        Arc::new(UserAccess { store, authorizer, who: who.clone() })
    }

    /// Everything that the user may do in a namespace, or everywhere if that is empty.
    pub(crate) fn rules_for(&self, who: &Identity, namespace: &str) -> Vec<Rule> {
        self.authorizer.rules_for(&self.store, who, namespace)
    }

    /// The clock and the random source.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The resource of a path.
    pub fn resource(&self, group: &str, version: &str, plural: &str) -> Result<Arc<Resource>> {
        self.catalog().find(group, version, plural).cloned().ok_or_else(Error::no_such_path)
    }

    /// One object as stored.
    pub fn get(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Arc<Object>> {
        self.store
            .get(&resource.table, &Key::new(namespace, name))
            .ok_or_else(|| Error::not_found(resource.named(), name))
    }

    /// One object, decoded.
    pub async fn get_value(&self, resource: &Resource, namespace: &str, name: &str) -> Result<Value> {
        let object = self.get(resource, namespace, name)?;
        Ok(self.present(resource, &object).await?.into_value())
    }
}

/// Rules for names that other rooms check too.
pub(crate) mod names {
    pub(crate) use super::metadata::{
        qualified_name_error, qualified_name_errors, service_label_error as dns_1035_error, subdomain_error,
    };
}

/// How messages name a resource of the core group.
fn catalog_named(resource: &str) -> crate::error::Named<'_> {
    crate::error::Named { group: "", resource }
}

/// An object as a version of its resource shows it: the stored bytes where they already are of that
/// version, a converted copy where not.
#[derive(Debug, Clone)]
pub enum Presented {
    /// The bytes as stored.
    Stored(Arc<Object>),
    /// Converted for this answer.
    Converted(Value),
}

impl Presented {
    /// The revision of the object, if it has one.
    pub fn revision(&self) -> Option<u64> {
        match self {
            Self::Stored(object) => Some(object.revision),
            Self::Converted(value) => resource::text(value, "/metadata/resourceVersion").parse().ok(),
        }
    }

    /// The object, decoded.
    pub fn into_value(self) -> Value {
        match self {
            Self::Stored(object) => decode::stored(&object),
            Self::Converted(value) => value,
        }
    }

    /// The object, encoded.
    pub fn into_bytes(self) -> bytes::Bytes {
        match self {
            Self::Stored(object) => object.bytes.clone(),
            Self::Converted(value) => value.to_string().into(),
        }
    }
}

impl Resource {
    /// Decodes and defaults an object that somebody else has patched; fails with what Go's decoder says.
    pub(crate) fn settle_patched(&self, object: &mut Value) -> Result<(), String> {
        (self.strategy.form.decode_patched)(self, object)?;
        self.schema().prune(object);
        self.apply_defaults(object);
        Ok(())
    }

    /// A stored object as this version of the resource shows it, where nobody has to be asked for it.
    fn present(&self, object: &Arc<Object>) -> Presented {
        if let Some(served) = self.custom() {
            return served.present(object);
        }
        match &self.strategy.conversion {
            Some(conversion) => Presented::Converted((conversion.show)(decode::stored(object))),
            None => Presented::Stored(Arc::clone(object)),
        }
    }

    /// Whether every object of this version is stored as it is shown.
    pub(crate) fn is_stored_as_shown(&self) -> bool {
        self.custom().is_none() && self.strategy.conversion.is_none()
    }

    /// The form in which an object of this version is stored.
    fn to_storage(&self, object: Value) -> Value {
        match (&self.strategy.conversion, self.custom()) {
            (Some(conversion), _) => (conversion.store)(object),
            (None, Some(served)) => served.to_storage(object),
            (None, None) => object,
        }
    }

    /// An object of this version in another version of the same resource, where nobody has to be asked.
    fn convert(&self, to: &Resource, object: Value) -> Value {
        if self.group == to.group && self.version == to.version {
            return object;
        }
        let mut stored = self.to_storage(object);
        match (&to.strategy.conversion, to.custom()) {
            (Some(conversion), _) => (conversion.show)(stored),
            (None, Some(served)) => served.show_stored(stored),
            (None, None) => {
                stored["apiVersion"] = to.api_version().into();
                stored
            }
        }
    }

    /// The values of the fields that selectors may name besides name and namespace.
    fn fields_of(&self, stored: &Value) -> Fields {
        self.selectable.iter().map(|field| field.value(stored).into()).collect()
    }
}
