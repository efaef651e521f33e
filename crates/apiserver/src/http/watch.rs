//! Watch streams.
//!
//! A stream takes changes out of its cursor, drops what its selector does not match, and writes the rest
//! as lines. Whole objects of the stored version go out as the very bytes that every other watcher gets.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Response, header};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior};

use super::{
    Body, Call,
    accept::{Shape, negotiate},
    answer,
    guard::{Watching, unwound},
    metrics::{Labels, Watched},
    path::RequestInfo,
    read::{partial, partial_bytes},
    table,
};
use crate::{
    environment::Environment,
    error::{Cause, Error, Named, Result},
    registry::{
        Catalog, ListOptions, Match, Presented, Registry, Resource, WatchOptions, WatchStart, parse_revision,
        too_old,
    },
    store::{Change, Event, Object, Watch, WatchEvent},
};

/// How often an idle watcher that wants bookmarks is told how far it has come.
const BOOKMARKS: Duration = Duration::from_mins(1);

/// How long a watch can last, whatever its client asks for. The end of a longer one could not be written as a time.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The annotation of the bookmark after which everything that existed has been sent.
const INITIAL_END: &str = "k8s.io/initial-events-end";

impl Call<'_> {
    pub(super) async fn watch(
        &self,
        place: &RequestInfo,
        resource: &Arc<Resource>,
    ) -> Result<Response<Body>> {
        let shape = negotiate(self.header(header::ACCEPT))?;
        let mut options = self.query.list(resource, place.namespace.as_deref())?;
        let initial = self.initial_events(&options)?;
        if let Some(name) = &place.name {
            options.selector =
                crate::registry::Selector::parse(resource, "", &format!("metadata.name={name}"))?;
        }
        let revision = parse_revision(&options.resource_version)
            .map_err(|error| Error::bare(error.message.trim_start_matches("invalid resource version: ")))?;
        let start = match (initial, revision) {
            (Some(true), _) | (_, 0) => WatchStart::Now,
            (_, revision) => WatchStart::After(revision),
        };
        let permit = self.guard.watch(&self.identity, self.is_limited())?;
        let watch = match self.registry.watch(resource, &WatchOptions { start }) {
            // A revision that is gone is told inside the stream, as the real server does.
            Err(error) if error.code == 410 => return Ok(answer::body(Body::whole(failure(&error)))),
            outcome => outcome?,
        };
        let (environment, timeout) = (self.registry.environment(), self.watch_timeout()?);
        let mut lines = Lines {
            registry: Arc::clone(self.registry),
            watch,
            options,
            shape,
            rows: self.rows(resource)?,
            environment: environment.clone(),
            resource: Arc::clone(resource),
            catalog: self.registry.catalog_changes(),
            initial: Box::new(std::iter::empty()),
            changes: VecDeque::new(),
            queue: VecDeque::new(),
            ended: false,
            _permit: permit,
            watched: self.metrics.watch(Labels::of(self.registry, place, "watch", false, false)),
            told: false,
        };
        let bookmarks = self.query.flag("allowWatchBookmarks");
        lines.begin(initial, bookmarks).await?;
        Ok(answer::body(Body::stream(lines.stream(Instant::now() + timeout, bookmarks))))
    }

    /// How long the watch lasts: as long as its client says; with less than no time, until everything has been told
    /// that is known.
    fn watch_timeout(&self) -> Result<Duration> {
        let (low, high) = (Duration::from_mins(30), Duration::from_hours(1));
        Ok(match self.query.number("timeoutSeconds")?.unwrap_or(0) {
            0 => self.registry.environment().duration_between(low, high),
            seconds => Duration::from_secs(seconds.max(0).unsigned_abs()).min(LONGEST),
        })
    }

    /// How to read a revision is said of a list, or of the state that comes before a watch's changes.
    fn match_of_watch(&self, options: &ListOptions) -> Result<()> {
        let given = self.query.get("resourceVersionMatch");
        if options.version_match.is_none() {
            return Ok(());
        }
        let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
        let mut causes = vec![Cause::forbidden("resourceVersionMatch", why)];
        if given != "NotOlderThan" {
            causes.push(Cause::not_supported("resourceVersionMatch", given, &["NotOlderThan"]));
        }
        Err(Error::invalid(Named { group: "meta.k8s.io", resource: "ListOptions" }, "", causes))
    }

    /// Whether the client asked for the state first (`Some(true)`), only for changes (`Some(false)`), or
    /// left that to `resourceVersion`.
    fn initial_events(&self, options: &ListOptions) -> Result<Option<bool>> {
        if !self.query.has("sendInitialEvents") {
            return self.match_of_watch(options).map(|()| None);
        }
        if options.version_match != Some(Match::NotOlderThan) {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            let cause = Cause::forbidden("resourceVersionMatch", why);
            return Err(Error::invalid(
                Named { group: "meta.k8s.io", resource: "ListOptions" },
                "",
                vec![cause],
            ));
        }
        let wanted = self.query.flag("sendInitialEvents");
        Ok(Some(wanted))
    }
}

/// The lines of one stream.
struct Lines {
    registry: Arc<Registry>,
    watch: Watch,
    options: ListOptions,
    shape: Shape,
    rows: table::Rows,
    environment: Environment,
    resource: Arc<Resource>,
    catalog: tokio::sync::watch::Receiver<Arc<Catalog>>,
    /// What existed when the watch began and has not been sent yet: pointers, not lines, so that a client that is
    /// slow to read costs no copy of it all.
    initial: Box<dyn Iterator<Item = Presented> + Send>,
    /// Changes that are not lines yet, for the same reason.
    changes: VecDeque<WatchEvent>,
    queue: VecDeque<Bytes>,
    ended: bool,
    _permit: Watching,
    /// Counts what is sent.
    watched: Watched,
    /// Whether a table's columns were told already: they are told once.
    told: bool,
}

/// Resolves when the resource is not served any more, because its definition was removed or has changed.
async fn withdrawn(catalog: &mut tokio::sync::watch::Receiver<Arc<Catalog>>, resource: &Resource) {
    let served =
        |catalog: &Arc<Catalog>| catalog.find(&resource.group, &resource.version, &resource.plural).is_some();
    // A registry that is gone serves nothing either.
    let _ = catalog.wait_for(|catalog| !served(catalog)).await;
}

impl Lines {
    /// Queues what existed when the watch began, if the client wants to hear of it.
    async fn begin(&mut self, initial: Option<bool>, bookmarks: bool) -> Result<()> {
        let Some(mut snapshot) = self.watch.take_initial() else { return Ok(()) };
        if initial == Some(false) {
            return Ok(());
        }
        snapshot.objects.retain(|object| self.wants(object));
        self.initial = self.registry.show_all(&self.resource, snapshot.objects).await?;
        if initial == Some(true) && bookmarks {
            let line = self.bookmark(snapshot.revision, true);
            self.queue.push_back(line);
        }
        Ok(())
    }

    /// The next line that needs no waiting.
    fn ready(&mut self) -> Option<Bytes> {
        match self.initial.next() {
            Some(shown) => Some(self.line("ADDED", shown)),
            None => self.queue.pop_front(),
        }
    }

    fn stream(
        self,
        deadline: Instant,
        bookmarks: bool,
    ) -> impl futures::Stream<Item = Bytes> + Send + 'static {
        let mut ticks = tokio::time::interval_at(Instant::now() + BOOKMARKS, BOOKMARKS);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        futures::stream::unfold((self, ticks), move |(mut lines, mut ticks)| async move {
            loop {
                if let Some(line) = lines.ready() {
                    lines.watched.sent();
                    return Some((line, (lines, ticks)));
                }
                if lines.ended {
                    return None;
                }
                if let Some(seen) = lines.changes.pop_front() {
                    match unwound(lines.change(&seen)).await {
                        Ok(line) => lines.queue.extend(line),
                        Err(error) => lines.fail(&error),
                    }
                    continue;
                }
                lines.watched.settle();
                tokio::select! {
                    biased;
                    changes = lines.watch.next() => match changes {
                        Ok(changes) => lines.changes = changes.into(),
                        Err(gone) => lines.fail(&too_old(gone.requested, gone.oldest)),
                    },
                    () = withdrawn(&mut lines.catalog, &lines.resource) => return None,
                    () = tokio::time::sleep_until(deadline) => return None,
                    _ = ticks.tick(), if bookmarks => {
                        let line = lines.bookmark(lines.watch.position(), false);
                        lines.queue.push_back(line);
                    }
                }
            }
        })
    }

    fn fail(&mut self, error: &Error) {
        self.queue.push_back(failure(error));
        self.ended = true;
    }

    fn wants(&self, object: &Object) -> bool {
        Watch::in_namespace(object, self.options.namespace.as_deref())
            && self.options.selector.matches(object)
    }

    /// A change as this watcher sees it: an object that begins to match is added, one that ceases to is
    /// deleted.
    async fn change(&mut self, seen: &WatchEvent) -> Result<Option<Bytes>> {
        let Event { change, object, before } = seen.event();
        let now = *change != Change::Deleted && self.wants(object);
        let then = before.as_ref().is_some_and(|before| self.wants(before));
        let kind = match (then, now) {
            (false, false) => return Ok(None),
            (false, true) => "ADDED",
            (true, true) => "MODIFIED",
            (true, false) => "DELETED",
        };
        if kind == "DELETED" && *change != Change::Deleted {
            let last = before.as_ref().expect("what matched before must have been there before");
            let mut value = self.registry.present(&self.resource, last).await?.into_value();
            value["metadata"]["resourceVersion"] = json!(object.revision.to_string());
            return Ok(Some(self.shaped(kind, value)));
        }
        let plain = self.shape == Shape::Object
            && matches!(
                (kind, change),
                ("ADDED", Change::Added) | ("MODIFIED", Change::Modified) | ("DELETED", Change::Deleted)
            );
        let shown = self.registry.present(&self.resource, object).await?;
        if plain && matches!(shown, Presented::Stored(_)) {
            return Ok(Some(seen.shared(|event| line(kind, &event.object.bytes))));
        }
        Ok(Some(self.line(kind, shown)))
    }

    fn line(&mut self, kind: &str, shown: Presented) -> Bytes {
        match self.shape {
            Shape::Object => line(kind, &shown.into_bytes()),
            Shape::Metadata | Shape::MetadataList => line(kind, &partial_bytes(shown)),
            Shape::Table => self.shaped(kind, shown.into_value()),
        }
    }

    fn shaped(&mut self, kind: &str, object: Value) -> Bytes {
        let value = match self.shape {
            Shape::Object => object,
            Shape::Metadata | Shape::MetadataList => partial(object),
            Shape::Table => {
                let metadata = json!({"resourceVersion": object["metadata"]["resourceVersion"]});
                self.rows.now = self.environment.now();
                let mut table = self.rows.table(object, metadata);
                if std::mem::replace(&mut self.told, true) {
                    table["columnDefinitions"] = Value::Null;
                }
                table
            }
        };
        line(kind, value.to_string().as_bytes())
    }

    fn bookmark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let mut object = json!({
            "kind": self.resource.kind, "apiVersion": self.resource.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if initial_end {
            object["metadata"]["annotations"] = json!({INITIAL_END: "true"});
        }
        self.shaped("BOOKMARK", object)
    }
}

fn failure(error: &Error) -> Bytes {
    line("ERROR", error.to_status().to_string().as_bytes())
}

/// A line of a watch stream.
fn line(kind: &str, object: &[u8]) -> Bytes {
    [b"{\"type\":\"", kind.as_bytes(), b"\",\"object\":", object, b"}\n"].concat().into()
}
