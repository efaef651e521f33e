//! Waiting: until kinds are served, until the Deployment has rolled out, until the API server reaches the webhooks. What
//! is seen meanwhile is told once for each change.

use std::{collections::BTreeSet, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;
use windlass::{
    k8s_openapi::{
        api::{
            apps::v1::Deployment,
            core::v1::{Event, Node, Pod},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        self, Api, Client,
        api::{ListParams, LogParams, Patch, PatchParams},
    },
};

use crate::{
    Tell,
    error::Error,
    objects,
    reasons::{self, Reason},
    release::{Release, asks},
    target::Target,
};

/// How often it is looked.
const LOOK: Duration = Duration::from_millis(500);
/// How long a kind may take to be served.
const SERVED: Duration = Duration::from_secs(30);
/// For how long a container that is not ready yet is nothing to talk about.
const USUAL: Duration = Duration::from_secs(15);
/// What the nodes of the embedded cluster bear.
const SIMULATED: &str = "windlass.dev/simulated";
/// For how long something that will not mend itself is watched: somebody may be mending it.
const TIMEOUT: Duration = Duration::from_secs(45);

/// Waits until a definition is served.
pub(crate) async fn served(client: &Client, target: &Target) -> Result<(), Error> {
    let api = Api::<CustomResourceDefinition>::all(client.clone());
    let begin = Instant::now();
    loop {
        let found = api.get(&target.name).await.map_err(|error| target.failed("read", error))?;
        let conditions = found.status.into_iter().flat_map(|status| status.conditions.unwrap_or_default());
        let conditions: Vec<_> = conditions.collect();
        if conditions.iter().any(|it| it.type_ == "Established" && it.status == "True") {
            return Ok(());
        }
        if begin.elapsed() >= SERVED {
            let said = conditions.iter().filter(|it| it.status == "False");
            let said: Vec<String> = said.filter_map(|it| it.message.clone()).collect();
            let why = if said.is_empty() { "its conditions say nothing".into() } else { said.join("; ") };
            return Err(Error::NotServed { what: target.name.clone(), limit: SERVED, why });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Waits until the Deployments of a release have rolled out.
pub(crate) async fn rolled_out(
    client: &Client,
    release: &Release,
    limit: Duration,
    tell: Tell<'_>,
) -> Result<(), Error> {
    for (target, manifest) in release.targets().filter(|(target, _)| target.resource.kind == "Deployment") {
        let labels = manifest.pointer("/spec/selector/matchLabels").and_then(Value::as_object);
        let labels: Vec<String> = labels
            .into_iter()
            .flatten()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        Rollout { client, target: &target, selector: labels.join(","), tell }.wait(limit).await?;
        tell(&format!("{target} is ready"));
    }
    Ok(())
}

struct Rollout<'a> {
    client: &'a Client,
    target: &'a Target,
    selector: String,
    tell: Tell<'a>,
}

impl Rollout<'_> {
    async fn wait(&self, limit: Duration) -> Result<(), Error> {
        let namespace = self.target.namespace.clone().unwrap_or_default();
        let deployments = Api::<Deployment>::namespaced(self.client.clone(), &namespace);
        let begin = Instant::now();
        let (mut told, mut stuck) = (BTreeSet::new(), None::<Instant>);
        loop {
            let found = deployments.get(&self.target.name).await;
            let deployment = found.map_err(|error| self.target.failed("read", error))?;
            if reasons::is_done(&deployment) {
                return Ok(());
            }
            let reason = self.why(&namespace, &deployment).await;
            let reason = reason.filter(|reason| !reason.usual || begin.elapsed() >= USUAL);
            let text =
                reason.as_ref().map_or_else(|| reasons::progress(&deployment), |reason| reason.text.clone());
            // Each once: between two tries it says in turn that it failed and that it waits.
            if told.insert(text.clone()) {
                (self.tell)(&format!("{}: {text}", self.target));
            }
            let fatal = reason.as_ref().is_some_and(|reason| reason.fatal);
            stuck = if fatal { stuck.or_else(|| Some(Instant::now())) } else { None };
            let hopeless = stuck.is_some_and(|since| since.elapsed() >= TIMEOUT);
            if begin.elapsed() >= limit || hopeless {
                let what = self.target.to_string();
                return Err(Error::NotReady { what, after: begin.elapsed(), why: text });
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Why it is not ready, with the last line of a log where that is what there is to say. Whoever may not read Pods
    /// hears less.
    async fn why(&self, namespace: &str, deployment: &Deployment) -> Option<Reason> {
        let pods = Api::<Pod>::namespaced(self.client.clone(), namespace);
        let chosen = ListParams::default().labels(&self.selector);
        let found = pods.list(&chosen).await.map(|list| list.items).unwrap_or_default();
        let about = ListParams::default().fields("involvedObject.kind=Pod");
        let events = Api::<Event>::namespaced(self.client.clone(), namespace);
        let events = events.list(&about).await.map(|list| list.items).unwrap_or_default();
        let mut reason = reasons::why(deployment, &found, &events)?;
        if let Some((pod, container)) = &reason.log {
            let line = last_line(&pods, pod, container).await;
            if let Some(line) = line.filter(|line| !reason.text.contains(line.as_str())) {
                reason.text = format!("{}; its last line: {line}", reason.text);
            }
        }
        Some(reason)
    }
}

/// The last line that a container wrote: in the run before this one, or in this one if it is the first.
async fn last_line(pods: &Api<Pod>, pod: &str, container: &str) -> Option<String> {
    for previous in [true, false] {
        let params = LogParams {
            container: Some(container.to_owned()),
            previous,
            tail_lines: Some(5),
            ..LogParams::default()
        };
        let text = pods.logs(pod, &params).await.unwrap_or_default();
        let line = text.lines().map(str::trim).rfind(|line| !line.is_empty());
        if let Some(line) = line {
            return Some(line.to_owned());
        }
    }
    None
}

/// Waits until the API server knows whom to trust for each webhook, and reaches them for an object of each kind. Whether
/// somebody answers them: on simulated nodes no container runs.
pub(crate) async fn webhooks(
    client: &Client,
    release: &Release,
    limit: Duration,
    tell: Tell<'_>,
) -> Result<bool, Error> {
    let converts = |object: &Value| object["spec"]["conversion"]["strategy"] == "Webhook";
    let concerned: Vec<(Target, &Value)> =
        release.targets().filter(|(_, object)| asks(object) || converts(object)).collect();
    if concerned.is_empty() {
        return Ok(true);
    }
    if simulated(client).await {
        tell("the nodes of this cluster are simulated: nobody answers the webhooks");
        return Ok(false);
    }
    let (begin, mut told) = (Instant::now(), String::new());
    loop {
        let Some((what, why)) = unreachable(client, release, &concerned).await? else {
            tell("the API server reaches the webhooks");
            return Ok(true);
        };
        if why != told {
            tell(&format!("{what}: {why}"));
            told.clone_from(&why);
        }
        if begin.elapsed() >= limit {
            return Err(Error::NotReady { what, after: begin.elapsed(), why });
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Whether all nodes are simulated. Who may not see nodes is told nothing of them.
async fn simulated(client: &Client) -> bool {
    let nodes = Api::<Node>::all(client.clone()).list(&ListParams::default()).await;
    let nodes = nodes.map(|list| list.items).unwrap_or_default();
    let is = |node: &Node| node.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(SIMULATED));
    !nodes.is_empty() && nodes.iter().all(is)
}

async fn unreachable(
    client: &Client,
    release: &Release,
    concerned: &[(Target, &Value)],
) -> Result<Option<(String, String)>, Error> {
    for (target, _) in concerned {
        let found = target.found(client).await?;
        let found = found.map(|found| serde_json::to_value(found).unwrap_or_default()).unwrap_or_default();
        let configs = found["webhooks"].as_array().into_iter().flatten().map(|hook| &hook["clientConfig"]);
        let conversion = found.pointer("/spec/conversion/webhook/clientConfig");
        let untrusted = |config: &&Value| config["caBundle"].as_str().is_none_or(str::is_empty);
        if configs.chain(conversion).any(|config| untrusted(&config)) {
            let why = "it does not say whom to trust yet (caBundle); the operator's log says why".into();
            return Ok(Some((target.to_string(), why)));
        }
    }
    for definition in release.definitions() {
        let target = Target::of(definition);
        let Some(live) = target.found(client).await? else { continue };
        let live = serde_json::to_value(live).unwrap_or_default();
        let Some(kind) = objects::resource(&live) else { continue };
        if let Some(why) = refused(client, &kind).await {
            return Ok(Some((target.to_string(), why)));
        }
    }
    Ok(None)
}

/// What the API server says when it does not reach a webhook on the way to an object: nothing is changed.
async fn refused(client: &Client, kind: &kube::core::ApiResource) -> Option<String> {
    let all = Api::<kube::api::DynamicObject>::all_with(client.clone(), kind);
    let told = |error: kube::Error| match error {
        kube::Error::Api(status) if status.message.contains("webhook") && status.code >= 500 => {
            Some(status.message)
        }
        _ => None,
    };
    let first = match all.list(&ListParams::default().limit(1)).await {
        Ok(list) => list.items.into_iter().next()?,
        Err(error) => return told(error),
    };
    let target = Target {
        resource: kind.clone(),
        namespace: first.metadata.namespace.clone(),
        name: first.metadata.name.clone().unwrap_or_default(),
    };
    let asked = json!({"metadata": {"annotations": {"windlass.dev/asked": "true"}}});
    let params = PatchParams { dry_run: true, ..PatchParams::default() };
    target.api(client).patch(&target.name, &params, &Patch::Merge(asked)).await.err().and_then(told)
}
