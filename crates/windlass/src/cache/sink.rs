//! Where a watch delivers to: a store, whatever its kind.
//!
//! A feed lists, watches, waits and retries; none of that depends on the kind. What does is behind [`Sink`], so that
//! the compiler makes one feed for all kinds and a few small functions for each.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::Status;
use tokio::sync::watch;

use super::{
    Health, Scope, Store,
    listing::{self, Event, Item},
    store::{AnyChange, Listed},
};
use crate::object::{AnyObject, Kind, ObjectKey};

/// What an event said of the watch itself.
pub(super) enum Received {
    /// It has come to this version.
    Version(Option<String>),
    /// It has come to this version, and nothing happened.
    Bookmark(String),
    /// It ended with an error.
    Failed(Box<Status>),
}

/// A store that a watch feeds.
pub(super) trait Sink: Send + Sync {
    fn kind(&self) -> &Kind;
    fn scope(&self) -> &Scope;
    /// Whether the server is asked for metadata alone.
    fn metadata_only(&self) -> bool;
    fn health(&self) -> &watch::Sender<Health>;
    /// A list begins.
    fn list_started(&self, part: usize);
    /// Enters an item of the list.
    fn list_item(&self, part: usize, text: &[u8]) -> serde_json::Result<()>;
    /// The list is complete. Returns what an own write entered since and the list does not have, with its version.
    fn list_finished(&self, part: usize, initial: bool, at: u64) -> Vec<(ObjectKey, u64)>;
    /// What the server has of such an object. Returns whether the server has gone back in time.
    fn resolve(&self, key: &ObjectKey, seen: u64, found: Option<&ObjectMeta>) -> bool;
    /// The next list is to be believed in everything.
    fn distrust(&self, part: usize);
    /// Enters an event.
    fn event(&self, part: usize, line: &str) -> serde_json::Result<Received>;
    /// The kind is not served, as an answer says: all its objects are gone.
    fn vanished(&self, part: usize, answer: String);
    /// Tells the subscribers whether the kind is served.
    fn served(&self, served: bool);
}

impl<K: AnyObject> Sink for Store<K> {
    fn kind(&self) -> &Kind {
        &self.kind
    }

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn metadata_only(&self) -> bool {
        K::metadata_api()
    }

    fn health(&self) -> &watch::Sender<Health> {
        &self.health
    }

    fn list_started(&self, part: usize) {
        self.write().list_started(part);
    }

    fn list_item(&self, part: usize, text: &[u8]) -> serde_json::Result<()> {
        match listing::item::<K>(text)? {
            Item::Read(object) => self.write().listed(part, object),
            Item::Unreadable { meta, reason } => {
                if self.write().listed_unreadable(part, &meta) {
                    report_unreadable(&self.kind, &meta, &reason);
                }
            }
        }
        Ok(())
    }

    fn list_finished(&self, part: usize, initial: bool, at: u64) -> Vec<(ObjectKey, u64)> {
        let Listed { changes, doubtful, restored } = self.write().list_finished(part, initial, at);
        if restored {
            tracing::warn!(
                kind = %self.kind, version = at,
                "the API server has gone back in time; what it has now counts"
            );
        }
        self.tell(&changes);
        doubtful
    }

    fn distrust(&self, part: usize) {
        self.write().distrust(part);
    }

    fn resolve(&self, key: &ObjectKey, seen: u64, found: Option<&ObjectMeta>) -> bool {
        let (change, restored) = self.write().resolve(key, seen, found);
        self.tell(change.as_slice());
        restored
    }

    fn event(&self, part: usize, line: &str) -> serde_json::Result<Received> {
        let (change, version) = match listing::event(line)? {
            Event::Failed(status) => return Ok(Received::Failed(status)),
            Event::Bookmark(version) => {
                self.write().watched(part, version.parse().unwrap_or(0));
                return Ok(Received::Bookmark(version));
            }
            Event::Applied(head, text) => {
                let version = head.version().to_owned();
                // What is known is not read further: it may be the echo of an own write.
                if self.write().watch_known(&head.key(), version.parse().unwrap_or(0)) {
                    return Ok(Received::Version(Some(version)));
                }
                let change = match listing::read::<K>(&head, text)? {
                    Item::Read(fresh) => self.write().watch_applied(fresh),
                    Item::Unreadable { meta, reason } => {
                        if self.write().watch_unreadable(&meta) {
                            report_unreadable(&self.kind, &meta, &reason);
                        }
                        None
                    }
                };
                (change, Some(version).filter(|version| !version.is_empty()))
            }
            Event::Deleted(meta) => {
                let change = self.write().watch_deleted(&meta);
                (change, meta.resource_version)
            }
        };
        self.tell(change.as_slice());
        Ok(Received::Version(version))
    }

    fn vanished(&self, part: usize, answer: String) {
        let changes = self.write().vanished(part);
        // Whoever hears of the objects finds the kind absent already.
        self.health.send_modify(|health| health.missing(part, answer));
        self.tell(&changes);
    }

    fn served(&self, served: bool) {
        self.notify_served(served);
    }
}

impl<K: AnyObject> Store<K> {
    /// One after the other: what was a text is typed only for as long as it is told of.
    fn tell(&self, news: &[AnyChange]) {
        for one in news {
            self.notify(&self.opened(one), None);
        }
    }
}

fn report_unreadable(kind: &Kind, meta: &ObjectMeta, reason: &str) {
    let key = ObjectKey::of_meta(meta);
    tracing::error!(
        %kind, object = %key, error = reason,
        "an object cannot be read and is left out; does the CRD's schema fit this program?"
    );
}
