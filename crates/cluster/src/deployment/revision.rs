//! Revisions: which ReplicaSet is the new one, how it is made, and the annotations that number the rollouts.

use std::{collections::BTreeMap, sync::Arc};

use windlass::{
    Event,
    k8s_openapi::{
        api::apps::v1::{Deployment, DeploymentSpec, ReplicaSet, ReplicaSetSpec},
        apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta},
    },
    owner,
};

use super::{
    Run, Sets, limits, rolling, status,
    template::{self, HASH_LABEL},
};

pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
pub(super) const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
pub(super) const DESIRED_REPLICAS: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX_REPLICAS: &str = "deployment.kubernetes.io/max-replicas";

/// Annotations of the Deployment that its ReplicaSets do not get.
const OWN_ANNOTATIONS: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
];

/// The longest history annotation, in characters.
const HISTORY_LIMIT: usize = 2000;

/// The longest name of an object.
const NAME_LIMIT: usize = 253;

type Annotations = BTreeMap<String, String>;

/// Tells the ReplicaSet of the present template from the others; the oldest first.
pub(super) fn split(spec: &DeploymentSpec, mut all: Vec<Arc<ReplicaSet>>) -> Sets {
    all.sort_by_key(|set| {
        let created = set.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (created, set.metadata.name.clone())
    });
    let is_new = |set: &&Arc<ReplicaSet>| {
        let template = set.spec.template.as_ref();
        template.is_some_and(|template| template::same(template, &spec.template))
    };
    // Of several with the same template the oldest is used, as Kubernetes does.
    let new = all.iter().find(is_new).cloned();
    let uid = new.as_ref().map(|set| set.metadata.uid.clone());
    let old = all.into_iter().filter(|set| Some(&set.metadata.uid) != uid.as_ref()).collect();
    Sets { new, old }
}

/// The revision of a ReplicaSet or a Deployment; 0 if it has none.
pub(super) fn number(meta: &ObjectMeta) -> i64 {
    let text = meta.annotations.as_ref().and_then(|annotations| annotations.get(REVISION));
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

fn next(old: &[Arc<ReplicaSet>]) -> i64 {
    old.iter().map(|set| number(&set.metadata)).max().unwrap_or(0).saturating_add(1)
}

/// The annotations of the new ReplicaSet: those of the Deployment, and the revision with its history.
fn annotations(current: &Annotations, deployment: &Deployment, revision: i64) -> Annotations {
    let mut wanted = current.clone();
    for (key, value) in deployment.metadata.annotations.iter().flatten() {
        if !OWN_ANNOTATIONS.contains(&key.as_str()) {
            wanted.insert(key.clone(), value.clone());
        }
    }
    let before = current.get(REVISION);
    let number = match before.map(|text| text.parse::<i64>()) {
        None => 0,
        Some(Ok(number)) => number,
        // Not ours: left alone.
        Some(Err(_)) => return wanted,
    };
    if number < revision {
        wanted.insert(REVISION.into(), revision.to_string());
        if let Some(before) = before {
            let history = current.get(REVISION_HISTORY).map_or("", String::as_str);
            wanted.insert(REVISION_HISTORY.into(), with_history(history, before));
        }
    }
    wanted
}

fn with_history(history: &str, revision: &str) -> String {
    if history.is_empty() {
        return revision.to_owned();
    }
    let mut kept = history;
    while kept.len() + revision.len() + 1 > HISTORY_LIMIT {
        match kept.split_once(',') {
            Some((_, rest)) => kept = rest,
            None => return revision.to_owned(),
        }
    }
    format!("{kept},{revision}")
}

/// The annotations by which scaling is told from rolling.
pub(super) fn note_sizes(annotations: &mut Annotations, spec: &DeploymentSpec) {
    let desired = limits::desired(spec);
    annotations.insert(DESIRED_REPLICAS.into(), desired.to_string());
    annotations.insert(MAX_REPLICAS.into(), limits::most(spec).to_string());
}

/// The ReplicaSet of the present template.
fn new_set(
    deployment: &Deployment,
    spec: &DeploymentSpec,
    hash: &str,
    old: &[Arc<ReplicaSet>],
) -> ReplicaSet {
    let label = || (HASH_LABEL.to_owned(), hash.to_owned());
    let mut template = spec.template.clone();
    let labels = template.metadata.get_or_insert_default().labels.get_or_insert_default();
    labels.extend([label()]);
    let labels = labels.clone();
    let mut selector: LabelSelector = spec.selector.clone();
    selector.match_labels.get_or_insert_default().extend([label()]);
    let mut annotations = annotations(&Annotations::new(), deployment, next(old));
    note_sizes(&mut annotations, spec);
    let mut name = deployment.metadata.name.clone().unwrap_or_default();
    name.truncate(NAME_LIMIT - 1 - hash.len());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{hash}")),
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        spec: ReplicaSetSpec {
            replicas: Some(rolling::initial_size(spec, old)),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        },
        status: None,
    }
}

impl Run<'_> {
    /// Brings an existing new ReplicaSet's annotations up to date, and the Deployment's revision with them.
    pub(super) async fn keep_revision(&mut self, sets: &mut Sets) -> windlass::Result<()> {
        let Some(new) = sets.new.clone() else { return Ok(()) };
        let current = new.metadata.annotations.clone().unwrap_or_default();
        let wanted = annotations(&current, &self.deployment, next(&sets.old));
        let min_ready = self.spec.min_ready_seconds;
        let kept = self
            .ctx
            .modify(&*new, |set| {
                set.metadata.annotations = Some(wanted).filter(|annotations| !annotations.is_empty());
                set.spec.min_ready_seconds = min_ready;
            })
            .await?;
        let revision = number(&kept.metadata);
        let name = kept.metadata.name.clone().unwrap_or_default();
        sets.put(kept);
        self.set_revision(revision).await?;
        status::note_found(&mut self.status, &self.spec, &name, self.ctx.now());
        Ok(())
    }

    async fn set_revision(&mut self, revision: i64) -> windlass::Result<()> {
        if revision == 0 || number(&self.deployment.metadata) == revision {
            return Ok(());
        }
        let revised = self.ctx.modify(&*self.deployment, |deployment| {
            let annotations = deployment.metadata.annotations.get_or_insert_default();
            annotations.insert(REVISION.into(), revision.to_string());
        });
        self.deployment = revised.await?;
        Ok(())
    }

    /// The new ReplicaSet, created if there is none.
    pub(super) async fn ensure_new(&mut self, sets: &mut Sets) -> windlass::Result<Arc<ReplicaSet>> {
        if let Some(new) = &sets.new {
            return Ok(new.clone());
        }
        let hash = template::hash(&self.spec.template, self.status.collision_count);
        let wanted = new_set(&self.deployment, &self.spec, &hash, &sets.old);
        let (name, size) = (wanted.metadata.name.clone().unwrap_or_default(), limits::replicas(&wanted));
        let created = match self.ctx.create_child(wanted).await {
            Ok(created) => created,
            Err(error) if error.is_already_exists() => return self.collided(sets, &name, error).await,
            Err(error) => return Err(self.not_created(&name, error).await),
        };
        if size > 0 {
            let note = format!("Scaled up replica set {name} from 0 to {size}");
            self.ctx.event(Event::normal("ScalingReplicaSet", note).action("ScalingReplicaSet"));
        }
        if !self.resumed {
            status::note_created(&mut self.status, &self.spec, &name, self.ctx.now());
            // A rollout of nothing is over in the same run, and its beginning is told all the same.
            if limits::desired(&self.spec) == 0 {
                self.deployment = self.ctx.patch_status(&*self.deployment, &self.status).await?;
            }
        }
        self.set_revision(number(&created.metadata)).await?;
        sets.new = Some(created.clone());
        Ok(created)
    }

    /// The name is taken: by our own set that the cache has not seen, or by another template's.
    async fn collided(
        &mut self,
        sets: &mut Sets,
        name: &str,
        error: windlass::Error,
    ) -> windlass::Result<Arc<ReplicaSet>> {
        let live = self.ctx.fetch::<ReplicaSet>(self.ctx.key().namespace(), name).await?;
        let uid = self.deployment.metadata.uid.as_deref().unwrap_or_default();
        let own = live.filter(|set| {
            let template = set.spec.template.as_ref();
            owner::is_controlled_by(&set.metadata, uid)
                && template.is_some_and(|template| template::same(template, &self.spec.template))
        });
        if let Some(own) = own {
            let own = Arc::new(own);
            sets.new = Some(own.clone());
            return Ok(own);
        }
        self.status.collision_count = Some(self.status.collision_count.unwrap_or(0).wrapping_add(1));
        self.ctx.patch_status(&*self.deployment, &self.status).await?;
        Err(error)
    }

    async fn not_created(&mut self, name: &str, error: windlass::Error) -> windlass::Error {
        let said = error.status().map_or_else(|| error.to_string(), |status| status.message.clone());
        let message = format!("Failed to create new replica set \"{name}\": {said}");
        status::note_create_failure(&mut self.status, &self.spec, &message, self.ctx.now());
        self.ctx.event(Event::warning("ReplicaSetCreateError", message).action("ScalingReplicaSet"));
        match self.ctx.patch_status(&*self.deployment, &self.status).await {
            Ok(_) => error,
            Err(status_error) => status_error,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Annotations {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn deployment(annotations: &[(&str, &str)]) -> Deployment {
        let mut deployment = Deployment::default();
        deployment.metadata.annotations = Some(pairs(annotations));
        deployment
    }

    #[test]
    fn a_set_gets_the_deployments_annotations_but_not_its_bookkeeping() {
        let deployment = deployment(&[("team", "a"), (REVISION, "7"), (OWN_ANNOTATIONS[0], "{}")]);
        assert_eq!(
            annotations(&Annotations::new(), &deployment, 3),
            pairs(&[("team", "a"), (REVISION, "3")])
        );
    }

    #[test]
    fn a_set_that_returns_remembers_the_revisions_it_had() {
        let once = annotations(&pairs(&[(REVISION, "1")]), &deployment(&[]), 3);
        assert_eq!(once, pairs(&[(REVISION, "3"), (REVISION_HISTORY, "1")]));
        let twice = annotations(&once, &deployment(&[]), 5);
        assert_eq!(twice, pairs(&[(REVISION, "5"), (REVISION_HISTORY, "1,3")]));
        assert_eq!(annotations(&twice, &deployment(&[]), 4), twice);
    }

    #[test]
    fn the_history_forgets_its_oldest_revisions() {
        let long = vec!["12345"; 400].join(",");
        let history = with_history(&long, "999");
        assert!(history.len() <= HISTORY_LIMIT && history.ends_with(",999"));
    }
}
