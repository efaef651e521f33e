//! What is gathered of one request, and the events that it becomes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use serde_json::{Map, Value, json};

use super::{AuditLog, Decision, Level, Stage};
use crate::environment::Environment;

/// What is known of a request before anybody has looked at it.
#[derive(Debug)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) uri: String,
    pub(crate) verb: String,
    /// Nothing, if it is not known who asks.
    pub(crate) user: Value,
    pub(crate) source: Vec<String>,
    pub(crate) agent: String,
    /// What a request for a resource is about.
    pub(crate) target: Option<Map<String, Value>>,
    /// Whether its answer lasts.
    pub(crate) lasts: bool,
    pub(crate) at: Timestamp,
}

/// One request on its way into the log.
#[derive(Debug)]
pub(crate) struct Record {
    log: Arc<AuditLog>,
    environment: Environment,
    decision: Decision,
    received: Received,
    gathered: Mutex<Gathered>,
    complete: AtomicBool,
}

#[derive(Debug, Default)]
struct Gathered {
    impersonated: Option<Value>,
    constrained: bool,
    target: Option<Map<String, Value>>,
    request: Option<Value>,
    status: Option<Value>,
    response: Option<Value>,
    annotations: BTreeMap<String, String>,
}

impl Record {
    /// Begins a record, unless the policy wants nothing of the request.
    pub(crate) fn begin(
        log: &Arc<AuditLog>,
        environment: &Environment,
        decision: Decision,
        received: Received,
    ) -> Option<Arc<Self>> {
        if decision.level == Level::None {
            return None;
        }
        let gathered = Gathered { target: received.target.clone(), ..Gathered::default() };
        Some(Arc::new(Self {
            log: Arc::clone(log),
            environment: environment.clone(),
            decision,
            received,
            gathered: Mutex::new(gathered),
            complete: AtomicBool::new(false),
        }))
    }

    fn gathered(&self) -> MutexGuard<'_, Gathered> {
        self.gathered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn id(&self) -> &str {
        &self.received.id
    }

    pub(crate) fn lasts(&self) -> bool {
        self.received.lasts
    }

    pub(crate) fn has(&self, level: Level) -> bool {
        self.decision.level >= level
    }

    /// Who the request is answered as, if that is somebody else.
    pub(crate) fn impersonated(&self, who: Value, constrained: bool) {
        let mut gathered = self.gathered();
        gathered.impersonated = Some(who);
        gathered.constrained = constrained;
    }

    /// Adds an annotation; one that is there already stays.
    pub(crate) fn annotate(&self, key: &str, value: String) {
        self.gathered().annotations.entry(key.to_owned()).or_insert(value);
    }

    /// What was sent. It completes what is known of the object.
    pub(crate) fn request(&self, object: &Value, is_object: bool) {
        let mut gathered = self.gathered();
        if is_object && let Some(target) = &mut gathered.target {
            for (known, pointer) in [
                ("namespace", "/metadata/namespace"),
                ("name", "/metadata/name"),
                ("uid", "/metadata/uid"),
                ("resourceVersion", "/metadata/resourceVersion"),
            ] {
                let said = object.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
                if let Some(said) = said {
                    target.entry(known).or_insert_with(|| json!(said));
                }
            }
        }
        if self.has(Level::Request) {
            gathered.request = Some(self.shown(object.clone()));
        }
    }

    /// What was answered: its code, and its body where that is JSON.
    pub(crate) fn response(&self, code: u16, body: Option<Value>) {
        let mut status = json!({"metadata": {}});
        if let Some(body) =
            body.as_ref().filter(|body| body["kind"] == "Status" && body["apiVersion"] == "v1")
        {
            for field in ["status", "message", "reason", "details"] {
                if let Some(value) = body.get(field) {
                    status[field] = value.clone();
                }
            }
        }
        status["code"] = json!(code);
        let mut gathered = self.gathered();
        gathered.status = Some(status);
        gathered.response = body.filter(|_| self.has(Level::RequestResponse)).map(|body| self.shown(body));
    }

    fn shown(&self, mut object: Value) -> Value {
        let without = |object: &mut Value| {
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.remove("managedFields");
            }
        };
        if self.decision.omit_managed_fields {
            without(&mut object);
            for item in object.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
                without(item);
            }
        }
        object
    }

    /// Writes the event of a stage.
    pub(crate) fn write(&self, stage: Stage) {
        if self.decision.omit_stages.contains(&stage) {
            return;
        }
        let now = self.environment.now();
        let at = if stage == Stage::RequestReceived { self.received.at } else { now };
        self.log.write(&self.event(stage, at), now);
    }

    /// Writes the last event, once.
    pub(crate) fn complete(&self) {
        if !self.complete.swap(true, Ordering::AcqRel) {
            self.write(Stage::ResponseComplete);
        }
    }

    fn event(&self, stage: Stage, at: Timestamp) -> Value {
        const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));
        let gathered = self.gathered();
        let Received { id, uri, verb, user, source, agent, .. } = &self.received;
        let mut event = json!({"kind": "Event", "apiVersion": "audit.k8s.io/v1",
            "level": self.decision.level.name(), "auditID": id, "stage": stage.name(), "requestURI": uri,
            "verb": verb, "user": user});
        if let Some(impersonated) = &gathered.impersonated {
            event["impersonatedUser"] = impersonated.clone();
            if gathered.constrained {
                let constraint = json!({"impersonationConstraint": "impersonate:user-info"});
                event["authenticationMetadata"] = constraint;
            }
        }
        if !source.is_empty() {
            event["sourceIPs"] = json!(source);
        }
        if !agent.is_empty() {
            event["userAgent"] = json!(agent);
        }
        let target = if stage == Stage::RequestReceived { &self.received.target } else { &gathered.target };
        if let Some(target) = target {
            event["objectRef"] = Value::Object(target.clone());
        }
        if stage != Stage::RequestReceived {
            for (field, value) in [
                ("responseStatus", &gathered.status),
                ("requestObject", &gathered.request),
                ("responseObject", &gathered.response),
            ] {
                if let Some(value) = value {
                    event[field] = value.clone();
                }
            }
        }
        event["requestReceivedTimestamp"] = json!(MICROSECONDS.timestamp_to_string(&self.received.at));
        event["stageTimestamp"] = json!(MICROSECONDS.timestamp_to_string(&at));
        if stage != Stage::RequestReceived && !gathered.annotations.is_empty() {
            event["annotations"] = json!(gathered.annotations);
        }
        event
    }
}

/// What those who carry out a request say about it for the log. Without a record it is not even made.
#[derive(Debug, Clone, Default)]
pub(crate) struct Notes(Option<Arc<Record>>);

impl Notes {
    pub(crate) fn of(record: Option<Arc<Record>>) -> Self {
        Self(record)
    }

    pub(crate) fn annotate(&self, key: &str, value: impl FnOnce() -> String) {
        if let Some(record) = &self.0 {
            record.annotate(key, value());
        }
    }

    /// What was sent, if anybody wants to know.
    pub(crate) fn request(&self, is_object: bool, make: impl FnOnce() -> Option<Value>) {
        if let Some(record) = &self.0
            && let Some(object) = make()
        {
            record.request(&object, is_object);
        }
    }
}

/// Completes a record when an answer that lasts ends, however it ends.
#[derive(Debug)]
pub(crate) struct Ending(pub(crate) Arc<Record>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.complete();
    }
}
