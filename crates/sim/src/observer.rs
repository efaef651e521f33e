//! Watches the objects of a day as they change, and checks the invariants after every change.

use std::{
    fmt::Write as _,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::StreamExt;
use sha2::{Digest, Sha256};
use windlass::{
    Kind,
    kube::{
        Api, Client,
        api::{DynamicObject, WatchEvent, WatchParams},
    },
    serde_json::{self, Value},
};

use crate::{objects::Objects, setup::Setup, story::Story, user};

/// Puts one word in place of what is made with keys, which come from the system and never from a seed.
fn without_keys(mut value: Value) -> Value {
    /// How PEM begins in base64.
    const PEM: &str = "LS0tLS1CRUdJTi";
    match &mut value {
        Value::Object(fields) => fields.values_mut().for_each(|field| *field = without_keys(field.take())),
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_keys(item.take())),
        Value::String(text) if text.starts_with(PEM) => "<pem>".clone_into(text),
        _ => {}
    }
    value
}

/// What is known of the objects of a day. Clones share it.
#[derive(Clone)]
pub(crate) struct Observer {
    setup: Arc<Setup>,
    story: Story,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    objects: Objects,
    violations: Vec<String>,
    /// A digest of every version of every object, in the order of their arrival.
    history: Sha256,
    events: usize,
    /// The changes of what the operator works with.
    changes: usize,
}

impl Observer {
    /// Begins to watch these kinds. The changes of some are counted.
    pub(crate) async fn start(
        setup: &Arc<Setup>,
        client: &Client,
        story: &Story,
        kinds: &[Kind],
        counted: &[Kind],
    ) -> Result<Self, String> {
        let observer = Self { setup: setup.clone(), story: story.clone(), state: Arc::default() };
        let client = windlass::in_process(client.clone());
        for kind in kinds {
            let api = Api::<DynamicObject>::all_with(client.clone(), &kind.api_resource());
            let params = WatchParams::default().disable_bookmarks();
            let changes = match api.watch(&params, "0").await {
                Ok(changes) => changes,
                // A kind that may not be served is not.
                Err(windlass::kube::Error::Api(status)) if status.code == 404 => continue,
                Err(error) => return Err(error.to_string()),
            };
            let (observer, kind, counts) = (observer.clone(), kind.clone(), counted.contains(kind));
            tokio::spawn(async move {
                let mut changes = changes.boxed();
                while let Some(Ok(change)) = changes.next().await {
                    match change {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            observer.seen(&kind, &object, (true, counts));
                        }
                        WatchEvent::Deleted(object) => observer.seen(&kind, &object, (false, counts)),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                    }
                }
            });
        }
        Ok(observer)
    }

    fn seen(&self, kind: &Kind, object: &DynamicObject, (there, counts): (bool, bool)) {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        value["kind"] = kind.kind.clone().into();
        let mut state = self.lock();
        state.events += 1;
        state.changes += usize::from(counts);
        state.history.update(format!("{there} {} {}\n", kind.plural, without_keys(value.clone())));
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let meta = &object.metadata;
        let key = (kind.kind.clone(), text(&meta.namespace), text(&meta.name));
        self.honest(kind, &value, &mut state);
        if there {
            state.objects.0.insert(key, value);
        } else {
            state.objects.0.remove(&key);
        }
        for invariant in &self.setup.invariants {
            if let Err(why) = (invariant.check)(&state.objects) {
                self.violated(&mut state, format!("{}: {why}", invariant.name));
            }
        }
    }

    /// A status must not describe a generation that there has never been.
    fn honest(&self, kind: &Kind, value: &Value, state: &mut State) {
        let observed = value["status"]["observedGeneration"].as_i64();
        let generation = value["metadata"]["generation"].as_i64();
        if self.setup.reconciled.contains(kind)
            && let (Some(observed), Some(generation)) = (observed, generation)
            && observed > generation
        {
            let what = user::named(value);
            let why = format!("{what}: observedGeneration is {observed}, and the generation {generation}");
            self.violated(state, why);
        }
    }

    fn violated(&self, state: &mut State, why: String) {
        if state.violations.len() < 3 && !state.violations.contains(&why) {
            self.story.tell("invariant", format!("broken: {why}"));
            state.violations.push(why);
        }
    }

    /// How many changes there have been of what the operator works with: leases and events are none.
    pub(crate) fn changes(&self) -> usize {
        self.lock().changes
    }

    pub(crate) fn violations(&self) -> Vec<String> {
        self.lock().violations.clone()
    }

    /// How many changes were seen, and a digest of all of them.
    pub(crate) fn history(&self) -> (usize, String) {
        let state = self.lock();
        let digest = state.history.clone().finalize();
        let hex = digest.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        (state.events, hex)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
