//! Tells the API server which authority to trust: in webhook configurations and in the conversion of CRDs.
//!
//! In a cluster these objects come from the manifests, and only `caBundle` is set, on what is there. For an
//! operator outside the cluster (a URL) the configurations are made here, under a name of their own, and
//! removed at the end, since requests would fail at an address where nobody listens. The conversion that a CRD had
//! before is kept in an annotation, and put back at the end; after an end that left no time for it, at the next
//! start.

use futures::stream::BoxStream;
use k8s_openapi::{
    api::admissionregistration::v1::{
        MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};

use super::{Reach, Webhooks};
use crate::{
    changes::changes_of,
    error::chain,
    merge,
    object::{Kind, Object},
};

/// The conversion that a CRD had before a process outside the cluster took its place.
const BEFORE: &str = "windlass.dev/conversion-before";

/// Why the API server was not told.
#[derive(Debug, thiserror::Error)]
#[error("failed to {verb} {kind} {name} for the webhooks")]
pub(crate) struct Error {
    verb: &'static str,
    kind: String,
    name: String,
    #[source]
    source: Box<kube::Error>,
}

/// Both kinds of webhook configuration, seen alike.
trait Configuration: Object<Scope = k8s_openapi::ClusterResourceScope> {
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig>;
}

impl Configuration for ValidatingWebhookConfiguration {
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

impl Configuration for MutatingWebhookConfiguration {
    fn client_configs(&mut self) -> Vec<&mut WebhookClientConfig> {
        self.webhooks.iter_mut().flatten().map(|webhook| &mut webhook.client_config).collect()
    }
}

/// How often another writer of a CRD may come in between.
const RACES: usize = 5;

pub(super) struct Injector<'a> {
    pub(super) client: &'a Client,
    pub(super) operator: &'a str,
    pub(super) hooks: &'a Webhooks,
    pub(super) reach: &'a Reach,
}

impl Injector<'_> {
    /// Makes the API server trust these authorities. Sends nothing where it does already.
    pub(super) async fn inject(&self, trusted: &str) -> Result<(), Error> {
        let name = self.name();
        if let Some(wanted) = self.hooks.validating(&name, self.reach, Some(trusted)) {
            self.configure(wanted, trusted).await?;
        }
        if let Some(wanted) = self.hooks.mutating(&name, self.reach, Some(trusted)) {
            self.configure(wanted, trusted).await?;
        }
        for crd in self.crds() {
            self.convert(&crd, trusted).await?;
        }
        Ok(())
    }

    /// The name of the configurations. Those of a process outside the cluster never replace the cluster's own.
    fn name(&self) -> String {
        match self.reach {
            Reach::Service { .. } => self.operator.to_owned(),
            Reach::Url(_) => local(self.operator),
        }
    }

    fn crds(&self) -> Vec<String> {
        let name = |kind: &Kind| format!("{}.{}", kind.plural, kind.group);
        self.hooks.conversions.iter().map(|conversion| name(conversion.kind())).collect()
    }

    async fn configure<K: Configuration>(&self, wanted: K, trusted: &str) -> Result<(), Error> {
        let api = Api::<K>::all(self.client.clone());
        let name = wanted.name_any();
        let failed = |verb| move |source| failed::<K>(verb, &self.name(), source);
        let live = api.get_opt(&name).await.map_err(failed("read"))?;
        let params = PostParams::default();
        match (self.reach, live) {
            (Reach::Service { .. }, Some(mut live)) => {
                if trust(&mut live, trusted) {
                    let body = to_value(&live);
                    let patch = json!({
                        "metadata": { "resourceVersion": live.resource_version() },
                        "webhooks": body["webhooks"],
                    });
                    patch_or_conflict(&api, &name, &patch).await.map_err(failed("patch"))?;
                }
            }
            (Reach::Service { .. }, None) => {
                let kind = K::kind(&());
                tracing::warn!("{kind} {name} does not exist: apply what the `manifests` command prints");
            }
            (Reach::Url(_), None) => drop(api.create(&params, &wanted).await.map_err(failed("create"))?),
            (Reach::Url(_), Some(live)) => {
                if !holds(&to_value(&live), &to_value(&wanted)) {
                    let mut wanted = wanted;
                    wanted.meta_mut().resource_version = live.resource_version();
                    api.replace(&name, &params, &wanted).await.map_err(failed("replace"))?;
                }
            }
        }
        Ok(())
    }

    async fn convert(&self, name: &str, trusted: &str) -> Result<(), Error> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        let failed = |verb| move |source| failed::<CustomResourceDefinition>(verb, name, source);
        let Some(live) = api.get_opt(name).await.map_err(failed("read"))? else {
            tracing::warn!(
                "CustomResourceDefinition {name} does not exist: the `install` command applies it"
            );
            return Ok(());
        };
        let live = to_value(&live);
        let has = &live["spec"]["conversion"];
        let wanted = match self.reach {
            Reach::Url(_) => {
                let conversion = self.reach.conversion(Some(trusted));
                let mut wanted = live.clone();
                // What an earlier process left there is no conversion to go back to.
                if wanted["metadata"]["annotations"][BEFORE].is_null() {
                    wanted["metadata"]["annotations"][BEFORE] = has.to_string().into();
                }
                merge::apply(&mut wanted["spec"]["conversion"], &conversion);
                return self.replace_crd(name, &live, &wanted).await.map_err(failed("patch"));
            }
            Reach::Service { .. } if has["strategy"] != "Webhook" => {
                tracing::warn!(
                    "CustomResourceDefinition {name} has no conversion webhook: apply the manifests"
                );
                return Ok(());
            }
            Reach::Service { .. } => {
                let conversion = self.reach.conversion(Some(trusted));
                let bundle = &conversion["webhook"]["clientConfig"]["caBundle"];
                json!({ "webhook": { "clientConfig": { "caBundle": bundle } } })
            }
        };
        let mut changed = live.clone();
        merge::apply(&mut changed["spec"]["conversion"], &wanted);
        self.replace_crd(name, &live, &changed).await.map_err(failed("patch"))
    }

    /// Sends the difference, if there is one.
    async fn replace_crd(&self, name: &str, live: &Value, wanted: &Value) -> Result<(), kube::Error> {
        let Some(mut patch) = merge::diff(live, wanted) else { return Ok(()) };
        patch["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        patch_or_conflict(&api, name, &patch).await
    }

    /// Removes what only made sense while this process was there.
    pub(super) async fn remove(&self) {
        if let Reach::Url(_) = self.reach {
            self.clear().await;
        }
    }

    /// Removes what an earlier process outside the cluster left behind, which had no time to do so itself. One
    /// that is outside the cluster too takes its place instead.
    pub(super) async fn repair(&self) {
        if let Reach::Service { .. } = self.reach {
            self.clear().await;
        }
    }

    async fn clear(&self) {
        let name = local(self.operator);
        if self.hooks.validating(&name, self.reach, None).is_some() {
            remove::<ValidatingWebhookConfiguration>(self.client, &name).await;
        }
        if self.hooks.mutating(&name, self.reach, None).is_some() {
            remove::<MutatingWebhookConfiguration>(self.client, &name).await;
        }
        for crd in self.crds() {
            match self.restore(&crd).await {
                Ok(()) => {}
                // As with the configurations.
                Err(kube::Error::Api(status)) if status.is_forbidden() => {}
                Err(error) => {
                    tracing::warn!(error = chain(&error), crd, "failed to put the conversion of a kind back");
                }
            }
        }
    }

    /// Puts the conversion back that a CRD had before.
    async fn restore(&self, name: &str) -> Result<(), kube::Error> {
        let api = Api::<CustomResourceDefinition>::all(self.client.clone());
        for _ in 0..RACES {
            let Some(live) = api.get_opt(name).await? else { return Ok(()) };
            let live = to_value(&live);
            let Some(before) = live["metadata"]["annotations"][BEFORE].as_str() else { return Ok(()) };
            let before = serde_json::from_str(before).unwrap_or_else(|_| json!({ "strategy": "None" }));
            let mut wanted = live.clone();
            wanted["spec"]["conversion"] = before;
            wanted["metadata"]["annotations"][BEFORE] = Value::Null;
            // Looked at again: this is the last chance, and a conflict is no error.
            self.replace_crd(name, &live, &wanted).await?;
        }
        Ok(())
    }

    /// A stream for every object, with an item whenever it changes.
    pub(super) fn changes(&self, in_process: bool) -> Vec<BoxStream<'static, ()>> {
        let (client, name) = (self.client, self.name());
        let mut changes = Vec::new();
        if self.hooks.validating(&name, self.reach, None).is_some() {
            changes.push(changes_of::<ValidatingWebhookConfiguration>(client, None, &name, in_process));
        }
        if self.hooks.mutating(&name, self.reach, None).is_some() {
            changes.push(changes_of::<MutatingWebhookConfiguration>(client, None, &name, in_process));
        }
        for crd in self.crds() {
            changes.push(changes_of::<CustomResourceDefinition>(client, None, &crd, in_process));
        }
        changes
    }
}

/// The configurations of a process outside the cluster.
fn local(operator: &str) -> String {
    format!("{operator}-local")
}

/// Sets the bundle everywhere. Returns whether that changed anything.
fn trust<K: Configuration>(configuration: &mut K, trusted: &str) -> bool {
    let mut changed = false;
    for config in configuration.client_configs() {
        let bundle = k8s_openapi::ByteString(trusted.as_bytes().to_vec());
        if config.ca_bundle.as_ref() != Some(&bundle) {
            config.ca_bundle = Some(bundle);
            changed = true;
        }
    }
    changed
}

/// A lost race is no failure: whoever won it causes an event, and that brings us back.
async fn patch_or_conflict<K: Object>(api: &Api<K>, name: &str, patch: &Value) -> Result<(), kube::Error> {
    match api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await {
        Ok(_) => {
            tracing::info!(kind = %K::kind(&()), name, "the webhooks' authorities were put in");
            Ok(())
        }
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        Err(error) => Err(error),
    }
}

async fn remove<K: Configuration>(client: &Client, name: &str) {
    match Api::<K>::all(client.clone()).delete(name, &DeleteParams::default()).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_not_found() => {}
        // In a cluster the operator may not, and need not: what is local is a developer's.
        Err(kube::Error::Api(status)) if status.is_forbidden() => {}
        Err(error) => tracing::warn!(error = chain(&error), name, "failed to remove a webhook configuration"),
    }
}

fn failed<K: Object>(verb: &'static str, name: &str, source: kube::Error) -> Error {
    Error { verb, kind: K::kind(&()).into_owned(), name: name.to_owned(), source: Box::new(source) }
}

fn to_value(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).expect("an object must serialise")
}

/// Whether `live` has everything that is wanted; null is wanted to be absent. Lists are compared whole.
fn holds(live: &Value, wanted: &Value) -> bool {
    match (live, wanted) {
        (live, Value::Null) => live.is_null(),
        (Value::Object(live), Value::Object(wanted)) => {
            wanted.iter().all(|(name, wanted)| holds(live.get(name).unwrap_or(&Value::Null), wanted))
        }
        (Value::Array(live), Value::Array(wanted)) => {
            live.len() == wanted.len() && live.iter().zip(wanted).all(|(live, wanted)| holds(live, wanted))
        }
        (live, wanted) => live == wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_of_the_server_are_no_difference_and_a_leftover_is() {
        let wanted = json!({"a": {"url": "x", "service": null}, "l": [{"n": 1}]});
        assert!(holds(&json!({"a": {"url": "x", "more": 1}, "l": [{"n": 1, "d": 2}]}), &wanted));
        assert!(!holds(&json!({"a": {"url": "x", "service": {}}, "l": [{"n": 1}]}), &wanted));
        assert!(!holds(&json!({"a": {"url": "x"}, "l": [{"n": 1}, {"n": 2}]}), &wanted));
    }
}
