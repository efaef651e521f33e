//! Those who act beside the operator: the user who wants something, and the surroundings in which things go wrong.
//!
//! All of them are administrators whose own requests always arrive; what they do is what a plan says, and which object they
//! take follows from the plan and from what there is.

use std::time::Duration;

use windlass::{
    Kind,
    k8s_openapi::api::{
        coordination::v1::Lease,
        core::v1::{Node, Pod},
    },
    kube::{
        Api, Client, Error,
        api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams},
        core::Status,
    },
    serde_json::{Value, json},
};
use windlass_apiserver::{ApiServer, webhook::ServicePort};
use windlass_cluster::testing::apply;

use crate::{plan::Act, replica::Replica, setup::Setup, story::Story};

pub(crate) const NAMESPACE: &str = "default";
const SIMULATE: &str = "windlass.dev/simulate";
/// How long a user waits for a deletion, and how often is looked.
const PATIENCE: Duration = Duration::from_mins(20);
const LOOK: Duration = Duration::from_secs(1);

/// Everybody beside the operator, on one day.
pub(crate) struct User<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) client: Client,
    pub(crate) server: ApiServer,
    pub(crate) replica: Replica,
    pub(crate) story: Story,
    /// The main object as the user wants it.
    pub(crate) wanted: Value,
    pub(crate) webhooks: Option<ServicePort>,
    /// When the last of what was broken for some time is whole again.
    pub(crate) until: Duration,
}

impl User<'_> {
    /// Creates every object of the scenario.
    pub(crate) async fn create(&self) -> Result<(), String> {
        for object in &self.setup.objects[1..] {
            self.apply(object).await?;
        }
        self.apply(&self.wanted).await
    }

    /// Deletes every object of the scenario, the main one first.
    pub(crate) async fn delete(&self) -> Result<(), String> {
        for object in [&self.wanted].into_iter().chain(&self.setup.objects[1..]) {
            self.story.tell("user", format!("deletes {}", named(object)));
            self.retried(|| windlass_cluster::testing::delete(&self.client, NAMESPACE, object)).await?;
        }
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<(), String> {
        self.story.tell("user", format!("creates {} {}", named(object), object["spec"]));
        self.retried(|| apply(&self.client, NAMESPACE, object)).await
    }

    /// A user tries again what failed for no reason of theirs, such as a webhook that is down.
    async fn retried<T, F: Future<Output = Result<T, Error>>>(
        &self,
        mut request: impl FnMut() -> F,
    ) -> Result<(), String> {
        let mut last = String::new();
        for _ in 0..120 {
            match request().await {
                Ok(_) => return Ok(()),
                Err(Error::Api(status)) if !passes(&status) => {
                    return Err(format!("the API server refuses what the user does: {}", status.message));
                }
                Err(error) => last = error.to_string(),
            }
            self.story.tell("user", "is refused, and tries again");
            tokio::time::sleep(LOOK).await;
        }
        Err(format!("the user is refused again and again: {last}"))
    }

    /// Does what the plan says.
    pub(crate) async fn act(&mut self, act: Act) -> Result<(), String> {
        match act {
            Act::Change(index) => self.change(index).await,
            Act::Recreate => self.recreate().await,
            Act::DeleteChild(pick) => self.delete_child(pick).await,
            Act::EditChild(pick) => self.edit_child(pick).await,
            Act::DeletePod(pick) => self.delete_pod(pick).await,
            Act::EvictPod(pick) => self.simulate_pod(pick, "evict", None).await,
            Act::CrashPod(pick, time) => self.simulate_pod(pick, "crash-loop", Some(time)).await,
            Act::NodeDown(pick, time) => self.node_down(pick, time).await,
            Act::LoseLease => self.lose_lease().await,
            Act::Restart => {
                self.story.tell("cluster", "restarts the operator, as a rollout does");
                self.replica.restart();
                Ok(())
            }
            Act::WebhooksDown(time) => {
                self.lasts(time);
                let Some(service) = &self.webhooks else { return Ok(()) };
                self.story.tell("cluster", format!("cannot reach the webhooks for {time:?}"));
                self.server.registry().routes().remove(service);
                // Whoever serves them says so again: that is what a restart does.
                let (replica, story) = (self.replica.clone(), self.story.clone());
                tokio::spawn(async move {
                    tokio::time::sleep(time).await;
                    story.tell("cluster", "restarts the operator, whose webhooks can be reached again");
                    replica.restart();
                });
                Ok(())
            }
        }
    }

    async fn change(&mut self, index: usize) -> Result<(), String> {
        let change = &self.setup.changes[index];
        self.story.tell("user", format!("changes {}: {change}", named(&self.wanted)));
        merge(&mut self.wanted, change);
        let (api, name) = self.main();
        let params = PatchParams { field_manager: Some("kubectl".into()), ..PatchParams::default() };
        let patch = Patch::Merge(change);
        self.retried(|| api.patch(&name, &params, &patch)).await
    }

    async fn recreate(&mut self) -> Result<(), String> {
        self.story.tell("user", format!("deletes {}, to create it anew", named(&self.wanted)));
        self.retried(|| windlass_cluster::testing::delete(&self.client, NAMESPACE, &self.wanted)).await?;
        let (api, name) = self.main();
        let began = self.story.now();
        while api.get_opt(&name).await.map_err(|error| error.to_string())?.is_some() {
            if self.story.now() > began + PATIENCE {
                return Err(format!("{} is not gone {PATIENCE:?} after it was deleted", named(&self.wanted)));
            }
            tokio::time::sleep(LOOK).await;
        }
        self.apply(&self.wanted).await
    }

    async fn delete_child(&self, pick: u64) -> Result<(), String> {
        let Some((api, name, what)) = self.child(pick, |_| true).await? else { return Ok(()) };
        self.story.tell("somebody", format!("deletes {what}"));
        ignore_missing(api.delete(&name, &DeleteParams::background()).await)
    }

    async fn edit_child(&self, pick: u64) -> Result<(), String> {
        let known = |kind: &Kind| ["Deployment", "StatefulSet", "Service"].contains(&kind.kind.as_str());
        let Some((api, name, what)) = self.child(pick, known).await? else { return Ok(()) };
        let edit = if what.starts_with("Service") {
            json!({"spec": {"selector": {"somebody": "edited"}}})
        } else {
            json!({"spec": {"replicas": pick % 5}})
        };
        self.story.tell("somebody", format!("edits {what}: {edit}"));
        let params = PatchParams { field_manager: Some("kubectl-edit".into()), ..PatchParams::default() };
        ignore_missing(api.patch(&name, &params, &Patch::Merge(&edit)).await)
    }

    async fn delete_pod(&self, pick: u64) -> Result<(), String> {
        let Some((api, name)) = self.pod(pick).await? else { return Ok(()) };
        self.story.tell("somebody", format!("deletes Pod {name}"));
        ignore_missing(api.delete(&name, &DeleteParams::default()).await)
    }

    fn lasts(&mut self, time: Duration) {
        self.until = self.until.max(self.story.now() + time);
    }

    async fn simulate_pod(&mut self, pick: u64, how: &str, time: Option<Duration>) -> Result<(), String> {
        let Some((api, name)) = self.pod(pick).await? else { return Ok(()) };
        let until = time.map_or(String::new(), |time| format!(" for {time:?}"));
        self.story.tell("node", format!("Pod {name}: {how}{until}"));
        let annotate = |value: Value| json!({"metadata": {"annotations": {SIMULATE: value}}});
        let params = PatchParams::default();
        ignore_missing(api.patch(&name, &params, &Patch::Merge(annotate(how.into()))).await)?;
        if let Some(time) = time {
            self.lasts(time);
            tokio::spawn(async move {
                tokio::time::sleep(time).await;
                let _ = api.patch(&name, &params, &Patch::Merge(annotate(Value::Null))).await;
            });
        }
        Ok(())
    }

    async fn node_down(&mut self, pick: u64, time: Duration) -> Result<(), String> {
        let api = Api::<Node>::all(self.client.clone());
        let nodes = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let Some(name) = picked(&nodes, pick).and_then(|node| node.metadata.name.clone()) else {
            return Ok(());
        };
        self.story.tell("node", format!("{name} is down for {time:?}"));
        let annotate = |value: Value| json!({"metadata": {"annotations": {SIMULATE: value}}});
        let params = PatchParams::default();
        ignore_missing(api.patch(&name, &params, &Patch::Merge(annotate("down".into()))).await)?;
        self.lasts(time);
        let story = self.story.clone();
        tokio::spawn(async move {
            tokio::time::sleep(time).await;
            story.tell("node", format!("{name} is up again"));
            let _ = api.patch(&name, &params, &Patch::Merge(annotate(Value::Null))).await;
        });
        Ok(())
    }

    async fn lose_lease(&self) -> Result<(), String> {
        let operator = (self.setup.operator)();
        let api = Api::<Lease>::namespaced(self.client.clone(), &crate::replica::system(&operator));
        self.story.tell("cluster", "gives the lease to another replica, which dies at once");
        let stolen = json!({"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 15}});
        ignore_missing(api.patch(operator.name(), &PatchParams::default(), &Patch::Merge(stolen)).await)
    }

    /// The main object's API and name.
    fn main(&self) -> (Api<DynamicObject>, String) {
        let kind = &self.setup.main;
        let name = self.wanted["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        (self.api(kind), name)
    }

    fn api(&self, kind: &Kind) -> Api<DynamicObject> {
        let (client, resource) = (self.client.clone(), kind.api_resource());
        if kind.namespaced {
            Api::namespaced_with(client, NAMESPACE, &resource)
        } else {
            Api::all_with(client, &resource)
        }
    }

    /// One of the objects that the operator has made.
    async fn child(
        &self,
        pick: u64,
        of: impl Fn(&Kind) -> bool,
    ) -> Result<Option<(Api<DynamicObject>, String, String)>, String> {
        let mut found = Vec::new();
        for kind in self.setup.children.iter().filter(|kind| of(kind)) {
            let api = self.api(kind);
            let list = match api.list(&ListParams::default()).await {
                Ok(list) => list.items,
                // A kind that may not be served is not.
                Err(Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(error.to_string()),
            };
            let owned = list.into_iter().filter(|one| one.metadata.owner_references.is_some());
            found.extend(owned.filter_map(|one| Some((kind.clone(), one.metadata.name?))));
        }
        Ok(picked(&found, pick)
            .map(|(kind, name)| (self.api(kind), name.clone(), format!("{} {name}", kind.kind))))
    }

    async fn pod(&self, pick: u64) -> Result<Option<(Api<Pod>, String)>, String> {
        let api = Api::<Pod>::namespaced(self.client.clone(), NAMESPACE);
        let pods = api.list(&ListParams::default()).await.map_err(|error| error.to_string())?.items;
        let name = picked(&pods, pick).and_then(|pod| pod.metadata.name.clone());
        Ok(name.map(|name| (api, name)))
    }
}

fn picked<T>(list: &[T], pick: u64) -> Option<&T> {
    let index = pick.checked_rem(list.len() as u64)?;
    list.get(index as usize)
}

/// Whether trying again may help.
fn passes(status: &Status) -> bool {
    matches!(status.code, 409 | 429 | 500 | 503 | 504)
}

/// What was to be touched may be gone by now.
fn ignore_missing<T>(result: Result<T, Error>) -> Result<(), String> {
    match result {
        Err(Error::Api(status)) if matches!(status.code, 404 | 409) => Ok(()),
        other => other.map(drop).map_err(|error| error.to_string()),
    }
}

pub(crate) fn named(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("?").to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// A JSON merge patch on a copy of the user's own.
fn merge(into: &mut Value, change: &Value) {
    let Value::Object(change) = change else {
        *into = change.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (key, value) in change {
        if value.is_null() {
            into.as_object_mut().map(|fields| fields.remove(key));
        } else {
            merge(&mut into[key], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_made_as_the_api_server_makes_it() {
        let mut object = json!({"spec": {"a": 1, "b": {"c": 2}}});
        merge(&mut object, &json!({"spec": {"a": null, "b": {"d": 3}, "e": [1]}}));
        assert_eq!(object, json!({"spec": {"b": {"c": 2, "d": 3}, "e": [1]}}));
    }
}
