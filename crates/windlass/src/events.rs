//! Kubernetes Events: recorded without waiting, counted instead of repeated, and limited per object.
//!
//! Enters: an [`Event`] about an object, from any run. Leaves: `events.k8s.io/v1` objects, or core `v1` ones where a
//! controller asks for them, sent by one task of the operator, so that shutdown can wait for what is still unsent.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use jiff::Timestamp;
use k8s_openapi::{
    api::{
        core::v1::{self as core, ObjectReference},
        events::v1 as api,
    },
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
};
use kube::{
    Client, Resource,
    api::{Patch, PatchParams},
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc;

use crate::{
    clock::Clock,
    object::{Kind, Object, ObjectKey},
    request,
};

/// How many events may wait to be sent; more are dropped.
const BACKLOG: usize = 1024;
/// An event that repeats within this time is counted rather than sent anew.
const SERIES: Duration = Duration::from_mins(6);
/// An object may have this many events at once …
const BURST: f64 = 25.0;
/// … and one more each of these seconds.
const REFILL_SECONDS: f64 = 300.0;
/// The API's limit on the length of a note.
const LONGEST_NOTE: usize = 1024;

/// Something worth telling the people who look at an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    warning: bool,
    reason: String,
    note: String,
    action: String,
    related: Option<ObjectReference>,
    field_path: Option<String>,
    instance: Option<String>,
}

impl Event {
    /// Something that went as it should. `reason` is a short constant in PascalCase.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            warning: false,
            action: reason.clone(),
            reason,
            note: note.into(),
            related: None,
            field_path: None,
            instance: None,
        }
    }

    /// Something that went wrong.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, note) }
    }

    /// What was being done; the reason, unless this is called.
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// A second object that the event concerns, such as a child.
    pub fn related<K: Resource<DynamicType = ()>>(mut self, object: &K) -> Self {
        self.related = Some(object.object_ref(&()));
        self
    }

    /// The part of the object that is meant, such as `spec.containers{web}`.
    pub fn field_path(mut self, path: impl Into<String>) -> Self {
        self.field_path = Some(path.into());
        self
    }

    /// Who reports it, in place of this instance of the operator: the node, for what happens on a node.
    pub fn instance(mut self, instance: impl Into<String>) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// The reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

/// Sends events from wherever it is cloned to.
#[derive(Clone, Debug)]
pub struct Recorder {
    reporter: Reporter,
    sender: mpsc::Sender<Record>,
}

/// In whose name events are sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reporter {
    pub(crate) controller: Arc<str>,
    /// The `source.component` of core `v1` events; events of `events.k8s.io/v1` without one.
    pub(crate) source: Option<Arc<str>>,
    /// The field manager of core `v1` events.
    pub(crate) manager: Arc<str>,
}

#[derive(Debug)]
struct Record {
    reporter: Reporter,
    regarding: ObjectReference,
    event: Event,
}

impl Recorder {
    /// A recorder, and the queue that [`Sender::run`] empties.
    pub(crate) fn new(controller: Arc<str>) -> (Self, Outbox) {
        let (sender, receiver) = mpsc::channel(BACKLOG);
        let reporter = Reporter { manager: controller.clone(), controller, source: None };
        (Self { reporter, sender }, Outbox { receiver })
    }

    /// The same recorder in another name.
    pub(crate) fn named(&self, reporter: Reporter) -> Self {
        Self { reporter, sender: self.sender.clone() }
    }

    /// Whether events are a component's of Kubernetes.
    pub(crate) fn is_of_component(&self) -> bool {
        self.reporter.source.is_some()
    }

    /// Records an event about an object. Never waits, never fails.
    pub fn publish(&self, regarding: ObjectReference, event: Event) {
        let record = Record { reporter: self.reporter.clone(), regarding, event };
        if let Err(mpsc::error::TrySendError::Full(record)) = self.sender.try_send(record) {
            tracing::debug!(reason = record.event.reason, "too many events, one was dropped");
        }
    }
}

/// The events that are still to be sent.
pub(crate) struct Outbox {
    receiver: mpsc::Receiver<Record>,
}

impl Outbox {
    /// Logs events until every recorder is gone, and sends none.
    pub(crate) async fn log(mut self) {
        while let Some(Record { event, .. }) = self.receiver.recv().await {
            tracing::info!(reason = event.reason, note = event.note, "dry run: would record an event");
        }
    }

    /// Sends events until every recorder is gone.
    pub(crate) async fn run(mut self, client: Client, clock: Arc<dyn Clock>, instance: String) {
        let mut log = Log::default();
        while let Some(record) = self.receiver.recv().await {
            send(&client, &mut log, clock.now(), &instance, record).await;
        }
    }
}

async fn send(client: &Client, log: &mut Log, now: Timestamp, instance: &str, record: Record) {
    let manager = record.reporter.manager.clone();
    let result = match log.decide(now, instance, record) {
        Step::Drop => return,
        Step::Create(event) => create(client, &*event, "windlass").await,
        Step::CreateCore(event) => create(client, &*event, &manager).await,
        Step::Count { key, count, core } => {
            let counted = if core {
                let body = json!({ "count": count, "lastTimestamp": Time(now) });
                change::<core::Event>(client, &key, &body).await
            } else {
                let body = json!({ "series": { "count": count, "lastObservedTime": MicroTime(now) } });
                change::<api::Event>(client, &key, &body).await
            };
            match counted {
                // It expired, or someone removed it: the next one starts anew.
                Err(error) if error.is_not_found() => {
                    log.forget(&key);
                    return;
                }
                other => other,
            }
        }
    };
    if let Err(error) = result {
        tracing::debug!(error = %crate::error::chain(&error), "failed to record an event");
    }
}

async fn create<K: Object>(client: &Client, event: &K, manager: &str) -> crate::error::Result<()> {
    let (key, kind) = (ObjectKey::of(event), Kind::of::<K>());
    let mut body = serde_json::to_value(event).unwrap_or_default();
    body["apiVersion"] = kind.api_version().into();
    body["kind"] = "Event".into();
    request::create::<K>(client, &kind, &key, &body, manager).await.map(drop)
}

async fn change<K: Object>(
    client: &Client,
    key: &ObjectKey,
    body: &serde_json::Value,
) -> crate::error::Result<()> {
    let (patch, params) = (Patch::Merge(body), PatchParams::default());
    request::patch::<K>(client, "patch", &Kind::of::<K>(), key, None, &patch, &params).await.map(drop)
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SeriesKey {
    reporter: Reporter,
    instance: Option<String>,
    regarding: String,
    field_path: Option<String>,
    related: Option<String>,
    warning: bool,
    reason: String,
    note: String,
}

#[derive(Debug)]
struct Series {
    key: ObjectKey,
    count: i32,
    last: Timestamp,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    at: Timestamp,
}

#[derive(Debug)]
enum Step {
    Create(Box<api::Event>),
    CreateCore(Box<core::Event>),
    Count { key: ObjectKey, count: i32, core: bool },
    Drop,
}

/// What was sent lately: decides whether an event is created, counted or dropped.
#[derive(Debug, Default)]
struct Log {
    series: BTreeMap<SeriesKey, Series>,
    buckets: BTreeMap<String, Bucket>,
    sent: u64,
}

impl Log {
    fn decide(&mut self, now: Timestamp, instance: &str, record: Record) -> Step {
        self.expire(now);
        let about = describe(&record.regarding);
        if !self.admit(now, &about) {
            return Step::Drop;
        }
        let key = SeriesKey {
            reporter: record.reporter.clone(),
            instance: record.event.instance.clone(),
            regarding: about,
            field_path: record.event.field_path.clone(),
            related: record.event.related.as_ref().map(describe),
            warning: record.event.warning,
            reason: record.event.reason.clone(),
            note: record.event.note.clone(),
        };
        if let Some(series) = self.series.get_mut(&key) {
            series.count += 1;
            series.last = now;
            let core = record.reporter.source.is_some();
            return Step::Count { key: series.key.clone(), count: series.count, core };
        }
        self.sent += 1;
        let event = self.build(now, instance, &record);
        let series = Series { key: ObjectKey::of(&event), count: 1, last: now };
        self.series.insert(key, series);
        match record.reporter.source {
            None => Step::Create(Box::new(event)),
            Some(source) => Step::CreateCore(Box::new(as_core(event, &source, record.event.instance, now))),
        }
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.series.retain(|_, series| series.key != *key);
    }

    fn expire(&mut self, now: Timestamp) {
        self.series.retain(|_, series| elapsed(series.last, now) < SERIES.as_secs_f64());
        self.buckets.retain(|_, bucket| elapsed(bucket.at, now) < BURST * REFILL_SECONDS);
    }

    /// Takes a token from the object's bucket.
    fn admit(&mut self, now: Timestamp, about: &str) -> bool {
        let bucket = self.buckets.entry(about.to_owned()).or_insert(Bucket { tokens: BURST, at: now });
        bucket.tokens = (bucket.tokens + elapsed(bucket.at, now) / REFILL_SECONDS).min(BURST);
        bucket.at = now;
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn build(&self, now: Timestamp, instance: &str, record: &Record) -> api::Event {
        let Record { reporter, regarding, event } = record;
        let instance = event.instance.as_deref().unwrap_or(instance);
        let regarding = &ObjectReference { field_path: event.field_path.clone(), ..regarding.clone() };
        let mut hash = Sha256::new();
        for part in [&*reporter.controller, instance, &describe(regarding), &event.reason, &event.note] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        hash.update(now.as_nanosecond().to_be_bytes());
        hash.update(self.sent.to_be_bytes());
        let suffix = u64::from_be_bytes(hash.finalize()[..8].try_into().expect("a digest must have 8 bytes"));
        let name = regarding.name.as_deref().unwrap_or("event");
        let mut note = event.note.clone();
        note.truncate(note.floor_char_boundary(LONGEST_NOTE));
        api::Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{suffix:016x}")),
                namespace: Some(regarding.namespace.clone().unwrap_or_else(|| "default".into())),
                ..ObjectMeta::default()
            },
            event_time: Some(MicroTime(now)),
            type_: Some(if event.warning { "Warning" } else { "Normal" }.into()),
            reason: Some(event.reason.clone()),
            action: Some(event.action.clone()),
            note: Some(note),
            regarding: Some(regarding.clone()),
            related: event.related.clone(),
            reporting_controller: Some(reporter.controller.to_string()),
            reporting_instance: Some(instance.to_owned()),
            ..api::Event::default()
        }
    }
}

/// The event as the components of a cluster write theirs: with a source, a count and two times.
fn as_core(event: api::Event, source: &str, host: Option<String>, now: Timestamp) -> core::Event {
    core::Event {
        metadata: event.metadata,
        involved_object: event.regarding.unwrap_or_default(),
        related: event.related,
        type_: event.type_,
        reason: event.reason,
        message: event.note,
        source: Some(core::EventSource { component: Some(source.to_owned()), host: host.clone() }),
        first_timestamp: Some(Time(now)),
        last_timestamp: Some(Time(now)),
        count: Some(1),
        reporting_component: Some(source.to_owned()),
        reporting_instance: Some(host.unwrap_or_default()),
        ..core::Event::default()
    }
}

fn elapsed(from: Timestamp, to: Timestamp) -> f64 {
    to.duration_since(from).as_secs_f64().max(0.0)
}

fn describe(object: &ObjectReference) -> String {
    [&object.api_version, &object.kind, &object.namespace, &object.name, &object.uid]
        .map(|part| part.as_deref().unwrap_or_default())
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(name: &str, event: Event) -> Record {
        let regarding = ObjectReference { name: Some(name.into()), ..ObjectReference::default() };
        Record {
            reporter: Reporter { controller: "c".into(), source: None, manager: "c".into() },
            regarding,
            event,
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_repeated_event_is_counted_and_a_late_one_starts_anew() {
        let mut log = Log::default();
        let failed = || record("a", Event::warning("Failed", "no"));
        let Step::Create(event) = log.decide(at(0), "i", failed()) else { panic!("the first is created") };
        assert_eq!((event.type_.as_deref(), event.reason.as_deref()), (Some("Warning"), Some("Failed")));
        assert!(matches!(log.decide(at(1), "i", failed()), Step::Count { count: 2, .. }));
        let other = record("a", Event::warning("Failed", "for another reason"));
        assert!(matches!(log.decide(at(1), "i", other), Step::Create(_)));
        assert!(matches!(log.decide(at(1000), "i", failed()), Step::Create(_)));
    }

    #[test]
    fn an_object_that_makes_too_many_events_is_throttled_alone() {
        let mut log = Log::default();
        let step = |log: &mut Log, now, name: &str, note: u32| {
            log.decide(at(now), "i", record(name, Event::normal("Did", note.to_string())))
        };
        let sent = (0..100).filter(|note| !matches!(step(&mut log, 0, "a", *note), Step::Drop)).count();
        assert_eq!(sent, 25);
        assert!(matches!(step(&mut log, 0, "b", 1), Step::Create(_)));
        assert!(matches!(step(&mut log, 301, "a", 101), Step::Create(_)));
        assert!(matches!(step(&mut log, 301, "a", 102), Step::Drop));
    }

    #[test]
    fn long_notes_are_cut_and_names_differ() {
        let mut log = Log::default();
        let long = "ü".repeat(2000);
        let create =
            |log: &mut Log, note: &str| match log.decide(at(0), "i", record("a", Event::normal("R", note))) {
                Step::Create(event) => event,
                other => panic!("{other:?}"),
            };
        let (one, two) = (create(&mut log, &long), create(&mut log, "short"));
        assert!(one.note.unwrap().len() <= LONGEST_NOTE);
        assert_ne!(one.metadata.name, two.metadata.name);
    }

    #[test]
    fn components_write_core_events_and_containers_are_told_apart() {
        let mut log = Log::default();
        let mut send = |path: &str| {
            let event = Event::normal("Created", "Container created").field_path(path).instance("n1");
            let mut record = record("a", event);
            record.reporter.source = Some("kubelet".into());
            log.decide(at(5), "i", record)
        };
        let Step::CreateCore(event) = send("spec.containers{a}") else { panic!("a core event is created") };
        let source = event.source.unwrap();
        assert_eq!((source.component.as_deref(), source.host.as_deref()), (Some("kubelet"), Some("n1")));
        assert_eq!(event.involved_object.field_path.as_deref(), Some("spec.containers{a}"));
        assert_eq!(
            (event.count, event.first_timestamp, event.event_time),
            (Some(1), Some(Time(at(5))), None)
        );
        assert!(matches!(send("spec.containers{b}"), Step::CreateCore(_)));
        assert!(matches!(send("spec.containers{a}"), Step::Count { count: 2, core: true, .. }));
    }
}
