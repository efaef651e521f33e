//! The ConfigMaps and Secrets that the environment of a WebApp's Pods comes from, and the digest of what is in them.
//!
//! A cluster has many of both, and most are somebody else's: the cache holds their metadata alone. What a WebApp uses is
//! read when its version is new, and only the digest is kept.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::{ResourceExt, core::PartialObjectMeta};
use serde_json::{Value, json};
use windlass::{Context, Object, ObjectKey};

use super::api::WebApp;
use crate::workload::digest;

/// What is used: kind, name, and the version that was seen, if it is there.
type Used = Vec<(&'static str, String, Option<String>)>;

/// The digests that were made, by WebApp. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Digests(Arc<Mutex<BTreeMap<ObjectKey, (Used, String)>>>);

impl Digests {
    /// The digest of everything that the Pods' environment comes from; `None` if it comes from nothing.
    pub(super) async fn of(&self, app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<Option<String>> {
        let mut used = Used::new();
        for (kind, name) in uses(app) {
            let version = match kind {
                "ConfigMap" => version::<ConfigMap>(app, ctx, &name)?,
                _ => version::<Secret>(app, ctx, &name)?,
            };
            used.push((kind, name, version));
        }
        if used.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.known(ctx.key(), &used) {
            return Ok(Some(known));
        }
        let namespace = app.namespace();
        let mut seen: Vec<(&str, &str, Option<Value>)> = Vec::new();
        for (kind, name, _) in &used {
            let data = match *kind {
                "ConfigMap" => {
                    ctx.fetch::<ConfigMap>(namespace.as_deref(), name).await?.map(|it| json!(it.data))
                }
                _ => ctx.fetch::<Secret>(namespace.as_deref(), name).await?.map(|it| json!(it.data)),
            };
            seen.push((kind, name, data));
        }
        let digest = digest::of(&seen);
        self.lock().insert(ctx.key().clone(), (used, digest.clone()));
        Ok(Some(digest))
    }

    /// Forgets a WebApp that is gone.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.lock().remove(key);
    }

    fn known(&self, key: &ObjectKey, used: &Used) -> Option<String> {
        self.lock().get(key).filter(|(of, _)| of == used).map(|(_, digest)| digest.clone())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<ObjectKey, (Used, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The version of an object that a WebApp uses.
fn version<K: Object>(app: &WebApp, ctx: &Context<WebApp>, name: &str) -> windlass::Result<Option<String>>
where
    PartialObjectMeta<K>: Object,
{
    let found = ctx.get::<PartialObjectMeta<K>>(app.namespace().as_deref(), name)?;
    Ok(found.and_then(|found| found.resource_version()))
}

/// The ConfigMaps and Secrets that the Pods' environment comes from.
pub(super) fn uses(app: &WebApp) -> Vec<(&'static str, String)> {
    let mut used = Vec::new();
    for source in &app.spec.env_from {
        used.extend(source.config_map_ref.iter().map(|it| ("ConfigMap", it.name.clone())));
        used.extend(source.secret_ref.iter().map(|it| ("Secret", it.name.clone())));
    }
    for source in app.spec.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
        used.extend(source.config_map_key_ref.iter().map(|it| ("ConfigMap", it.name.clone())));
        used.extend(source.secret_key_ref.iter().map(|it| ("Secret", it.name.clone())));
    }
    used.sort();
    used.dedup();
    used
}
