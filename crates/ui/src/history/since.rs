//! What has changed in a cluster since a moment: a time enters, objects with what they were and what they are leave.

use std::collections::BTreeMap;

use futures::{StreamExt, stream};
use serde_json::Value;
use windlass::{jiff::Timestamp, kube::Client};

use super::{Error, Happened, at, events, newest, revision, value, writers};
use crate::kinds::Kind;

/// An object that is not what it was.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, or empty.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// What it was; `None` if it was not there.
    pub before: Option<Value>,
    /// What it is; `None` if it is gone.
    pub after: Option<Value>,
    /// How often it was written since.
    pub writes: usize,
    /// By whom.
    pub writers: Vec<String>,
}

/// What has changed.
#[derive(Clone, Debug, Default)]
pub struct Since {
    /// By kind, namespace and name.
    pub changed: Vec<Changed>,
    /// Kinds whose history does not go back so far: what is told of them is less than what happened.
    pub partial: Vec<Kind>,
}

/// The changes of an object since the moment, and what it was then, if that was told.
type Seen = (Vec<(Happened, Value)>, Option<Value>);

/// All objects of these kinds that differ from what they were at `moment`.
pub async fn since(client: &Client, kinds: &[Kind], moment: Timestamp) -> Result<Since, Error> {
    let tasks = stream::iter(kinds.iter().cloned().map(|kind| of_kind(client.clone(), kind, moment)));
    let mut all = Since::default();
    let mut results = tasks.buffered(16);
    while let Some(result) = results.next().await {
        let (changed, partial) = result?;
        all.changed.extend(changed);
        all.partial.extend(partial);
    }
    Ok(all)
}

async fn of_kind(
    client: Client,
    kind: Kind,
    moment: Timestamp,
) -> Result<(Vec<Changed>, Option<Kind>), Error> {
    let api = kind.api(&client, None);
    let told = match events(&api, None, None, &kind.plural).await {
        Ok(told) => told,
        // Whoever may not watch a kind learns nothing of it, and all about the others.
        Err(Error::Read(_, error)) if is_refused(&error) => return Ok((Vec::new(), Some(kind))),
        Err(error) => return Err(error),
    };
    let partial =
        !told.complete() && told.events.first().is_none_or(|(_, object)| newest(object) > Some(moment));
    let mut found: BTreeMap<(String, String), Seen> = BTreeMap::new();
    let mut time = None;
    for (happened, object) in told.events {
        // Revisions grow with the time, also where an object does not say when it was deleted.
        time = newest(&object).max(time);
        let text = |name: &str| object["metadata"][name].as_str().unwrap_or_default().to_owned();
        let (since, before) = found.entry((text("namespace"), text("name"))).or_default();
        if time <= Some(moment) {
            *before = (happened != Happened::Deleted).then_some(object);
        } else {
            since.push((happened, object));
        }
    }
    let mut changed = Vec::new();
    for ((namespace, name), (since, before)) in found {
        let Some((first, object)) = since.first() else { continue };
        let before = match (before, first) {
            (Some(before), _) => Some(before),
            (None, Happened::Created) => None,
            // Older than all that is told: the version before the first that is.
            (None, _) => {
                let api = kind.api(&client, Some(&namespace));
                at(&api, &name, revision(object).saturating_sub(1)).await.ok().flatten()
            }
        };
        let mut names: Vec<String> = Vec::new();
        let mut known = before.as_ref();
        for (_, object) in &since {
            let new = writers(known, object);
            names.extend(new.into_iter().filter(|name| !name.is_empty()));
            known = Some(object);
        }
        names.sort_unstable();
        names.dedup();
        let writes = since.len();
        let after = since.into_iter().next_back().filter(|(happened, _)| *happened != Happened::Deleted);
        let after = after.map(|(_, object)| named(object, &kind));
        let before = before.map(|object| named(object, &kind));
        if before.is_none() && after.is_none() {
            continue;
        }
        changed.push(Changed { kind: kind.clone(), namespace, name, before, after, writes, writers: names });
    }
    Ok((changed, partial.then_some(kind)))
}

fn named(object: Value, kind: &Kind) -> Value {
    match serde_json::from_value(object.clone()) {
        Ok(dynamic) => value(dynamic, kind),
        Err(_) => object,
    }
}

fn is_refused(error: &windlass::kube::Error) -> bool {
    matches!(error, windlass::kube::Error::Api(status) if matches!(status.code, 401 | 403 | 404 | 405))
}
