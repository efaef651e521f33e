//! What an object was before, from the history that the API server keeps for its watchers: a kind and a name enter,
//! versions leave.
//!
//! Nothing but the Kubernetes API is asked: a watch from the oldest revision that the server still knows tells of every
//! version since, and a list at an exact revision of the one before. The embedded cluster keeps its last changes; a real
//! cluster keeps about five minutes of them.

mod earlier;
mod fields;
mod since;

use std::time::Duration;

use futures::StreamExt;
use serde_json::Value;
use windlass::{
    jiff::Timestamp,
    kube::{
        self, Client,
        api::{Api, DynamicObject, ListParams, VersionMatch, WatchEvent, WatchParams},
    },
};

pub(crate) use self::earlier::{Earlier, earlier};
pub use self::{
    fields::{Write, unified, writers, writes},
    since::{Changed, Since, since},
};
use crate::kinds::Kind;

/// How long a server may take to tell the next of the changes that it knows already.
const TIMEOUT: Duration = Duration::from_secs(2);
/// For so many seconds a server is listened to for changes whose end is not known.
const LISTEN: u32 = 1;
/// How often the beginning of the history is looked for: it moves on while one looks.
const TRIES: usize = 5;

/// Why a history could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The server did not answer, or refused.
    #[error("failed to read the history of {0}")]
    Read(String, #[source] Box<kube::Error>),
    /// The server has forgotten what it knew a moment before.
    #[error("the history of {0} moves on faster than it can be read")]
    Moving(String),
    /// The kinds that the cluster serves could not be had.
    #[error("failed to discover the kinds of the cluster")]
    Discover(#[source] Box<kube::Error>),
}

/// What happened at a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The object was there already when the history begins.
    Known,
    /// It was created.
    Created,
    /// It was changed.
    Changed,
    /// It was deleted.
    Deleted,
}

impl Happened {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Known => "known",
            Self::Created => "created",
            Self::Changed => "changed",
            Self::Deleted => "deleted",
        }
    }
}

/// One version of an object.
#[derive(Clone, Debug)]
pub struct Version {
    /// Its revision.
    pub revision: u64,
    /// What happened.
    pub happened: Happened,
    /// When, to the second, as far as the object says.
    pub time: Option<Timestamp>,
    /// Who wrote it: the field managers whose entries have changed.
    pub writers: Vec<String>,
    /// The object.
    pub object: Value,
}

/// The versions of an object, oldest first.
#[derive(Clone, Debug)]
pub struct History {
    /// All that are known.
    pub versions: Vec<Version>,
    /// Whether the history goes back to the beginning.
    pub complete: bool,
}

impl History {
    /// The version of a revision.
    pub fn version(&self, revision: u64) -> Option<&Version> {
        self.versions.iter().find(|version| version.revision == revision)
    }
}

/// What the server tells of the changes of a kind, or of one object.
#[derive(Debug)]
struct Events {
    events: Vec<(Happened, Value)>,
    /// The revision after which they begin.
    begin: u64,
}

impl Events {
    fn complete(&self) -> bool {
        self.begin <= 1
    }
}

/// The history of an object.
pub async fn history(
    client: &Client,
    kind: &Kind,
    namespace: Option<&str>,
    name: &str,
) -> Result<History, Error> {
    let api = kind.api(client, namespace);
    let what = format!("{} {name}", kind.plural);
    let failed = |error: kube::Error| Error::Read(what.clone(), Box::new(error));
    let now = api.get_opt(name).await.map_err(failed)?;
    let last = now.as_ref().and_then(|object| object.metadata.resource_version.as_deref()?.parse().ok());
    let selector = format!("metadata.name={name}");
    let told = events(&api, Some(&selector), last, &what).await?;
    let complete = told.complete();
    let mut versions: Vec<Version> = Vec::new();
    if !complete {
        let before = at(&api, name, told.begin).await.ok().flatten();
        versions.extend(before.map(|object| version(Happened::Known, object, None)));
    }
    for (happened, object) in told.events {
        let next = version(happened, object, versions.last());
        versions.push(next);
    }
    if versions.is_empty()
        && let Some(now) = now
    {
        versions.push(version(Happened::Known, value(now, kind), None));
    }
    Ok(History { versions, complete })
}

/// An object as it was at a revision; `None` if there was none.
pub async fn at(api: &Api<DynamicObject>, name: &str, revision: u64) -> Result<Option<Value>, kube::Error> {
    let params = ListParams {
        field_selector: Some(format!("metadata.name={name}")),
        resource_version: Some(revision.to_string()),
        version_match: Some(VersionMatch::Exact),
        ..ListParams::default()
    };
    let list = api.list(&params).await?;
    let types = list.types.clone();
    Ok(list.items.into_iter().next().map(|object| {
        let mut value = serde_json::to_value(object).unwrap_or_default();
        // Objects in lists of built-in kinds do not say what they are.
        if value["kind"].is_null() {
            value["apiVersion"] = types.api_version.into();
            value["kind"] = types.kind.trim_end_matches("List").into();
        }
        value
    }))
}

fn value(object: DynamicObject, kind: &Kind) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if value["kind"].is_null() {
        value["apiVersion"] = kind.resource().api_version.into();
        value["kind"] = kind.kind.clone().into();
    }
    value
}

fn version(happened: Happened, object: Value, before: Option<&Version>) -> Version {
    let writers = writers(before.map(|version| &version.object), &object);
    let time = newest(&object).max(before.and_then(|version| version.time));
    Version { revision: revision(&object), happened, time, writers, object }
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The newest time that an object mentions about itself.
fn newest(object: &Value) -> Option<Timestamp> {
    let metadata = &object["metadata"];
    let entries = metadata["managedFields"].as_array().into_iter().flatten().map(|entry| &entry["time"]);
    let times = entries.chain([&metadata["creationTimestamp"], &metadata["deletionTimestamp"]]);
    times.filter_map(|time| time.as_str()?.parse().ok()).max()
}

/// Every change that the server still knows, up to revision `last`, or for a moment if that is not known.
async fn events(
    api: &Api<DynamicObject>,
    selector: Option<&str>,
    last: Option<u64>,
    what: &str,
) -> Result<Events, Error> {
    let mut begin = 1;
    for _ in 0..TRIES {
        if last.is_some_and(|last| last <= begin) {
            return Ok(Events { events: Vec::new(), begin });
        }
        match from(api, selector, begin, last).await {
            Ok(events) => return Ok(Events { events, begin }),
            Err(kube::Error::Api(status)) if status.code == 410 => {
                // "too old resource version: 1 (4711)": the second one is where the history begins.
                let told = status
                    .message
                    .rsplit_once('(')
                    .and_then(|(_, rest)| rest.split_once(')')?.0.parse().ok());
                begin = match told {
                    Some(told) if told > begin => told,
                    // One that does not say so: nothing is known but the present.
                    _ => latest(api).await.map_err(|error| Error::Read(what.to_owned(), Box::new(error)))?,
                };
            }
            Err(error) => return Err(Error::Read(what.to_owned(), Box::new(error))),
        }
    }
    Err(Error::Moving(what.to_owned()))
}

async fn latest(api: &Api<DynamicObject>) -> Result<u64, kube::Error> {
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(list.metadata.resource_version.and_then(|text| text.parse().ok()).unwrap_or(u64::MAX))
}

/// The changes after a revision.
async fn from(
    api: &Api<DynamicObject>,
    selector: Option<&str>,
    begin: u64,
    last: Option<u64>,
) -> Result<Vec<(Happened, Value)>, kube::Error> {
    let mut params = WatchParams::default().timeout(last.map_or(LISTEN, |_| 10)).disable_bookmarks();
    params.field_selector = selector.map(ToOwned::to_owned);
    let mut stream = std::pin::pin!(api.watch(&params, &begin.to_string()).await?);
    let mut events = Vec::new();
    // What is known is sent at once; a server that is silent for so long knows no more.
    while let Ok(Some(event)) = tokio::time::timeout(TIMEOUT, stream.next()).await {
        let (happened, object) = match event? {
            WatchEvent::Added(object) => (Happened::Created, object),
            WatchEvent::Modified(object) => (Happened::Changed, object),
            WatchEvent::Deleted(object) => (Happened::Deleted, object),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(status) => return Err(kube::Error::Api(status)),
        };
        let object = serde_json::to_value(object).unwrap_or_default();
        let reached = last.is_some_and(|last| revision(&object) >= last);
        events.push((happened, object));
        if reached {
            break;
        }
    }
    Ok(events)
}
