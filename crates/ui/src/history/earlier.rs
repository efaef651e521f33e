//! What happened before anybody looked: kinds enter, their last changes leave, oldest first.

use futures::{StreamExt, stream};
use serde_json::Value;
use windlass::{jiff::Timestamp, kube::Client};

use super::{Happened, events, newest, revision, writers};
use crate::kinds::Kind;

/// A change that the server still knows.
#[derive(Clone, Debug)]
pub(crate) struct Earlier {
    pub(crate) revision: u64,
    /// The index of the kind that it was asked for by.
    pub(crate) kind: usize,
    pub(crate) happened: Happened,
    pub(crate) time: Option<Timestamp>,
    pub(crate) writer: Option<String>,
    pub(crate) object: Value,
}

/// The last `most` changes of all of these kinds. One that cannot be asked for hides no other.
pub(crate) async fn earlier(client: &Client, kinds: Vec<(usize, Kind)>, most: usize) -> Vec<Earlier> {
    let tasks = stream::iter(kinds.into_iter().map(|(index, kind)| of_kind(client.clone(), kind, index)));
    let mut all: Vec<Earlier> = tasks.buffer_unordered(16).collect::<Vec<_>>().await.concat();
    all.sort_unstable_by_key(|change| change.revision);
    all.split_off(all.len().saturating_sub(most))
}

async fn of_kind(client: Client, kind: Kind, index: usize) -> Vec<Earlier> {
    let Ok(told) = events(&kind.api(&client, None), None, None, &kind.plural).await else {
        return Vec::new();
    };
    let mut time = None;
    let changes = told.events.into_iter().map(|(happened, object)| {
        // Revisions grow with the time, also where an object does not say when it was deleted.
        time = newest(&object).max(time);
        let writer = writers(None, &object).into_iter().next_back();
        Earlier { revision: revision(&object), kind: index, happened, time, writer, object }
    });
    changes.collect()
}
