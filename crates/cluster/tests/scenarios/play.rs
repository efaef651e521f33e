//! Playing the steps of a scenario with a client, whoever answers it.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::k8s_openapi::api::core::v1::Pod;
use windlass::kube::{
    Api, Client,
    api::{
        DeleteParams, DynamicObject, EvictParams, ListParams, Patch, PatchParams, PostParams,
        PropagationPolicy,
    },
};

use super::{
    kinds,
    objects::{change, containers, created},
    scenario::{Scenario, Step},
};

/// How long nothing more is done after something was waited for, so that what follows from it is seen.
const CALM: Duration = Duration::from_secs(2);
/// For how long is waited at most, unless the step says.
const LIMIT: u64 = 60;

/// The place where a scenario is played.
pub(crate) struct Stage {
    pub(crate) client: Client,
    pub(crate) namespace: String,
}

/// An object that a step names.
struct Reference<'a> {
    kind: &'static kinds::Kind,
    name: &'a str,
}

/// The kind and the name of `Kind/name`.
pub(crate) fn split(reference: &str) -> (&str, &str) {
    reference.split_once('/').unwrap_or_else(|| panic!("{reference:?} is not Kind/name"))
}

/// The objects outside of the namespace that a scenario creates.
pub(crate) fn global(scenario: &Scenario) -> Vec<(&'static kinds::Kind, String)> {
    let created = scenario.steps.iter().filter_map(|step| step.create.as_deref()).map(split);
    created
        .map(|(kind, name)| (kinds::named(kind), name.to_owned()))
        .filter(|(kind, _)| !kind.namespaced)
        .collect()
}

impl Stage {
    /// Plays all steps, and tells what was refused or did not come.
    pub(crate) async fn play(&self, scenario: &Scenario) -> Vec<String> {
        let mut notes = Vec::new();
        for (number, step) in scenario.steps.iter().enumerate() {
            if let Some(note) = Box::pin(self.step(step)).await {
                notes.push(format!("step {}: {note}", number + 1));
            }
        }
        notes
    }

    async fn step(&self, step: &Step) -> Option<String> {
        if let Some(seconds) = step.sleep {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            return None;
        }
        if let Some(reference) = &step.wait {
            return self.wait(reference, step).await;
        }
        let answer = Box::pin(self.ask(step)).await;
        match answer {
            Ok(()) => None,
            Err(windlass::kube::Error::Api(status)) => {
                let message = status.message.lines().next().unwrap_or_default();
                Some(format!("{} {}: {message}", status.code, status.reason))
            }
            Err(error) => panic!("{step:?}: {error}"),
        }
    }

    async fn ask(&self, step: &Step) -> windlass::kube::Result<()> {
        if let Some(reference) = &step.create {
            let at = Self::at(reference);
            let object = created(step, at.kind.name, at.name);
            let object = serde_json::from_value(self.local(&object).await).unwrap();
            self.api(&at).create(&PostParams::default(), &object).await?;
        } else if let Some(reference) = &step.patch {
            let change = self.local(&change(step)).await;
            self.patch(&Self::at(reference), &change, step.subresource.as_deref()).await?;
        } else if let Some(reference) = &step.image {
            let at = Self::at(reference);
            let containers = containers(at.name, step.tag.as_deref().unwrap_or("2"));
            let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
            self.patch(&at, &patch, None).await?;
        } else if let Some(reference) = &step.scale {
            let patch = json!({"spec": {"replicas": step.replicas}});
            self.patch(&Self::at(reference), &patch, Some("scale")).await?;
        } else if let Some(reference) = &step.delete {
            let at = Self::at(reference);
            let propagation_policy = step.propagation.as_deref().map(|policy| match policy {
                "Foreground" => PropagationPolicy::Foreground,
                "Orphan" => PropagationPolicy::Orphan,
                _ => PropagationPolicy::Background,
            });
            let params = DeleteParams {
                propagation_policy,
                grace_period_seconds: step.grace,
                ..DeleteParams::default()
            };
            let name = self.resolve(&at).await;
            self.api(&at).delete(&name, &params).await?;
        } else if let Some(reference) = &step.evict {
            let name = self.resolve(&Self::at(reference)).await;
            let pods: Api<Pod> = Api::namespaced(self.client.clone(), &self.namespace);
            pods.evict(&name, &EvictParams::default()).await?;
        } else {
            panic!("a step that does nothing: {step:?}");
        }
        Ok(())
    }

    async fn patch(
        &self,
        at: &Reference<'_>,
        patch: &Value,
        subresource: Option<&str>,
    ) -> windlass::kube::Result<()> {
        let (name, params) = (self.resolve(at).await, PatchParams::default());
        match subresource {
            Some(part) => self.api(at).patch_subresource(part, &name, &params, &Patch::Merge(patch)).await?,
            None => self.api(at).patch(&name, &params, &Patch::Merge(patch)).await?,
        };
        Ok(())
    }

    /// A value with the namespace and the uids of objects, where a scenario speaks of them.
    async fn local(&self, value: &Value) -> Value {
        let mut text = value.to_string().replace("$NAMESPACE", &self.namespace);
        while let Some(start) = text.find("$UID:") {
            let word: String = text[start..].chars().take_while(|c| *c != '"').collect();
            let at = Self::at(&word["$UID:".len()..]);
            let owner = self.api(&at).get(at.name).await.unwrap();
            text = text.replace(&word, &owner.metadata.uid.unwrap_or_default());
        }
        serde_json::from_str(&text).unwrap()
    }

    fn at(reference: &str) -> Reference<'_> {
        let (kind, name) = split(reference);
        Reference { kind: kinds::named(kind), name }
    }

    fn api(&self, at: &Reference<'_>) -> Api<DynamicObject> {
        at.kind.api(&self.client, &self.namespace)
    }

    /// The name of an object: as it is written, or that of the first one with a label.
    async fn resolve(&self, at: &Reference<'_>) -> String {
        if !at.name.starts_with('?') {
            return at.name.replace("$NAMESPACE", &self.namespace);
        }
        let mut found = self.found(at).await;
        found.retain(|object| object["metadata"]["deletionTimestamp"].is_null());
        let first = found.first().unwrap_or_else(|| panic!("there is no {} {}", at.kind.name, at.name));
        first["metadata"]["name"].as_str().unwrap().to_owned()
    }

    /// The objects that a reference means, in their order of names.
    async fn found(&self, at: &Reference<'_>) -> Vec<Value> {
        let api = self.api(at);
        let objects = match at.name.strip_prefix('?') {
            Some(label) => api.list(&ListParams::default().labels(label)).await.unwrap().items,
            None => {
                let name = at.name.replace("$NAMESPACE", &self.namespace);
                api.get_opt(&name).await.unwrap().into_iter().collect()
            }
        };
        let mut objects: Vec<Value> =
            objects.into_iter().map(|object| serde_json::to_value(object).unwrap()).collect();
        objects.sort_by_key(|object| object["metadata"]["name"].to_string());
        objects
    }

    async fn wait(&self, reference: &str, step: &Step) -> Option<String> {
        let at = Self::at(reference);
        let wanted = |object: &Value| step.until.iter().all(|(path, value)| holds(object, path, value));
        let tries = step.within.unwrap_or(LIMIT) * 10;
        for _ in 0..tries {
            let found = self.found(&at).await;
            let matching = found.iter().filter(|object| wanted(object)).count();
            let reached = match step.count {
                Some(count) => matching == count,
                None if step.gone => found.is_empty(),
                None => matching > 0 && matching == found.len(),
            };
            if reached {
                tokio::time::sleep(CALM).await;
                return None;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        let found: Vec<Value> = self.found(&at).await.iter().map(|object| object["status"].clone()).collect();
        if std::env::var_os("WINDLASS_SCENARIOS_PRINT").is_some() {
            println!("{reference} {:?} is not reached: {found:?}", step.until);
        }
        Some(format!("{reference} did not get there"))
    }
}

/// Whether an object has a value at a path.
fn holds(object: &Value, path: &str, value: &Value) -> bool {
    if path == "observed" {
        return object["status"]["observedGeneration"] == object["metadata"]["generation"];
    }
    if let Some(type_) = path.strip_prefix("condition.") {
        let conditions = object["status"]["conditions"].as_array();
        let condition = conditions.into_iter().flatten().find(|condition| condition["type"] == type_);
        return condition.map_or(&Value::Null, |condition| &condition["status"]) == value;
    }
    let found = path.split('.').fold(object, |value, part| match part.parse::<usize>() {
        Ok(index) => &value[index],
        Err(_) => &value[part],
    });
    match value.as_str() {
        Some("any") => !found.is_null(),
        // Zero and nothing are the same in many statuses.
        _ => found == value || (*value == json!(0) && found.is_null()),
    }
}
