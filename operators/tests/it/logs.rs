//! What an operator logs at the usual level: each step of a change once, and nothing where nothing changes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{Arc, Mutex},
};

use kube::{
    Api,
    api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};
use windlass_cluster::{Cluster, testing::Environment};
use windlass_operators::{catalogue, operator};

use crate::{bed::eventually, children::kind_api, suite::condition_of, whole};

const NAMESPACE: &str = "default";

/// Keeps the lines of the operators: the message, by the key of the object that it is about.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<(String, String)>>>);

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::INFO && metadata.target().starts_with("windlass_operators")
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let text = |name: &str| fields.0.get(name).cloned().unwrap_or_default();
        // Several volumes and Jobs may be spoken of in one change.
        let what: Vec<String> =
            ["message", "claim", "job"].map(text).into_iter().filter(|it| !it.is_empty()).collect();
        self.0.lock().unwrap().push((text("key"), what.join(" ")));
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

impl Lines {
    /// Takes what was said of an object.
    fn take(&self, name: &str) -> Vec<String> {
        let mut lines = self.0.lock().unwrap();
        let key = format!("{NAMESPACE}/{name}");
        let (own, others): (Vec<_>, Vec<_>) = lines.drain(..).partition(|(of, _)| *of == key);
        *lines = others;
        own.into_iter().map(|(_, message)| message).collect()
    }
}

/// How many lines say this.
fn count(said: &[String], word: &str) -> usize {
    said.iter().filter(|line| line.contains(word)).count()
}

/// No step is told twice. A status may change several times while one change goes its way, and so may the children.
fn each_step_once(said: &[String]) {
    let steps = said
        .iter()
        .filter(|line| !line.starts_with("updated the status") && !line.starts_with("applied the children"));
    let mut seen = BTreeSet::new();
    for step in steps {
        assert!(seen.insert(step), "{step:?} is said twice: {said:#?}");
    }
    assert!(count(said, "updated the status") > 0, "{said:#?}");
}

/// The word of each kind for another number of Pods.
fn resized(kind: &str) -> &'static str {
    match kind {
        "podmanager" | "imoocpod" => "changing the Pods",
        _ => "resized the Deployment",
    }
}

// On one thread, whose subscriber this is.
#[tokio::test]
async fn each_step_of_a_change_is_logged_once_and_rest_not_at_all() {
    let lines = Lines::default();
    // With one subscriber alone, a line that a test on another thread comes to first would be turned off for all.
    let _second = tracing::Dispatch::new(Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    let env = Environment::on(Cluster::start().await.unwrap(), || operator("windlass", catalogue())).await;
    env.allow_failures(|failure| failure.reason == "Conflict");
    let sizes = [
        ("podmanager", "replicas"),
        ("webserver", "replicas"),
        ("imoocpod", "replicas"),
        ("memcached", "size"),
        ("helloworld", "size"),
        ("webapp", "replicas"),
    ];
    for (kind, size) in sizes {
        let entry = windlass_operators::entry(kind).unwrap();
        let (api, name) = (kind_api(&env.client(), NAMESPACE, entry), whole::name(kind));
        let mut spec = whole::spec(kind);
        // Else the number would be the autoscaler's.
        spec.as_object_mut().unwrap().remove("autoscaling");
        let object = whole::object(entry, &name, &spec);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
        let settled = |wanted: i64| {
            let (api, name) = (&api, &name);
            async move {
                eventually(&format!("{name} has settled"), || async {
                    let object = api.get(name).await.unwrap();
                    let status = &object.data["status"];
                    let is =
                        |type_, value| condition_of(status, type_).is_some_and(|it| it["status"] == value);
                    let right = status["observedGeneration"].as_i64() == object.metadata.generation
                        && status["readyReplicas"] == wanted
                        && is("Ready", "True")
                        && is("Progressing", "False");
                    right.then_some(())
                })
                .await;
            }
        };
        settled(2).await;
        env.settled().await;
        let said = lines.take(&name);
        assert_eq!(count(&said, "called for a new spec"), 1, "{kind}: {said:#?}");
        let made =
            if resized(kind) == "changing the Pods" { "changing the Pods" } else { "created the Deployment" };
        assert_eq!(count(&said, made), 1, "{kind}: {said:#?}");
        each_step_once(&said);

        env.running().handle().requeue_all();
        env.settled().await;
        assert_eq!(lines.take(&name), [""; 0], "{kind}: nothing is said where nothing changes");

        let three = Patch::Merge(json!({"spec": {size: 3}}));
        api.patch(&name, &PatchParams::default(), &three).await.unwrap();
        settled(3).await;
        env.settled().await;
        let said = lines.take(&name);
        assert_eq!(count(&said, "called for a new spec"), 1, "{kind}: {said:#?}");
        assert_eq!(count(&said, resized(kind)), 1, "{kind}: {said:#?}");
        each_step_once(&said);

        api.delete(&name, &DeleteParams::default()).await.unwrap();
        eventually(&format!("{name} is gone"), || async {
            api.list(&ListParams::default()).await.unwrap().items.is_empty().then_some(())
        })
        .await;
        env.settled().await;
        let said = lines.take(&name);
        assert_eq!(count(&said, "gone"), 1, "{kind}: {said:#?}");
        let finalized = usize::from(kind == "podmanager");
        assert_eq!(count(&said, "Cleaned up resources"), finalized, "{kind}: {said:#?}");
    }
    env.stop().await;
}

/// Waits until an object says of its newest generation what it is to say.
async fn says(api: &Api<DynamicObject>, name: &str, conditions: &[(&str, &str)]) {
    eventually(&format!("{name} has settled"), || async {
        let object = api.get(name).await.unwrap();
        let status = &object.data["status"];
        let is = |(type_, value): &(&str, &str)| {
            condition_of(status, type_).is_some_and(|it| it["status"] == *value)
        };
        let right =
            status["observedGeneration"].as_i64() == object.metadata.generation && conditions.iter().all(is);
        right.then_some(())
    })
    .await;
}

async fn is_gone(api: &Api<DynamicObject>, name: &str) {
    api.delete(name, &DeleteParams::default()).await.unwrap();
    eventually(&format!("{name} is gone"), || async {
        api.get_opt(name).await.unwrap().is_none().then_some(())
    })
    .await;
}

#[tokio::test]
async fn each_step_of_a_database_and_of_its_backups_is_logged_once() {
    let lines = Lines::default();
    let _second = tracing::Dispatch::new(Lines::default());
    let _guard = tracing::subscriber::set_default(lines.clone());
    let env = Environment::on(Cluster::start().await.unwrap(), || operator("windlass", catalogue())).await;
    env.allow_failures(|failure| failure.reason == "Conflict");
    let entry = |kind: &str| windlass_operators::entry(kind).unwrap();
    let made = |kind: &str, name: &str, spec: &Value| {
        serde_json::from_value::<DynamicObject>(whole::object(entry(kind), name, spec)).unwrap()
    };
    let said = |name: &str, steps: &[&str]| {
        let said = lines.take(name);
        for step in steps {
            assert_eq!(count(&said, step), 1, "{step:?} of {name}: {said:#?}");
        }
        said
    };
    let (ready, done) = ([("Ready", "True"), ("Progressing", "False")], [("Ready", "True")]);
    let databases = kind_api(&env.client(), NAMESPACE, entry("database"));
    let object = made("database", "db", &json!({"version": "15", "storage": {"size": "1Gi"}}));
    databases.create(&PostParams::default(), &object).await.unwrap();
    says(&databases, "db", &ready).await;
    env.settled().await;
    let steps = ["called for a new spec", "created the credentials", "created the StatefulSet"];
    each_step_once(&said("db", &steps));

    env.running().handle().requeue_all();
    env.settled().await;
    assert_eq!(lines.take("db"), [""; 0], "nothing is said where nothing changes");

    let more = Patch::Merge(json!({"spec": {"storage": {"size": "2Gi"}}}));
    databases.patch("db", &PatchParams::default(), &more).await.unwrap();
    says(&databases, "db", &ready).await;
    env.settled().await;
    each_step_once(&said("db", &["called for a new spec", "resized the volume \"data-db-0\""]));

    let backups = kind_api(&env.client(), NAMESPACE, entry("databasebackup"));
    let object = made("databasebackup", "copy", &json!({"databaseRef": {"name": "db"}}));
    backups.create(&PostParams::default(), &object).await.unwrap();
    says(&backups, "copy", &done).await;
    env.settled().await;
    each_step_once(&said("copy", &["called for a new spec", "created the Job"]));
    is_gone(&backups, "copy").await;
    env.settled().await;
    said("copy", &["gone"]);

    lines.take("db");
    is_gone(&databases, "db").await;
    env.settled().await;
    said("db", &["deleting the StatefulSet", "gone"]);
    env.stop().await;
}
