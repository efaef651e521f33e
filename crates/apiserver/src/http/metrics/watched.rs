//! The watches that are open, and what they have sent.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{Labels, Page};

/// All watches of a server.
#[derive(Debug, Default)]
pub(in crate::http) struct Watches(Mutex<BTreeMap<Labels, Kept>>);

#[derive(Debug, Default)]
struct Kept {
    open: u64,
    /// Watches count for themselves, and add to this when they have nothing to send.
    events: Arc<AtomicU64>,
}

/// One watch, for as long as it is open.
#[derive(Debug)]
pub(in crate::http) struct Watched {
    all: Arc<Watches>,
    labels: Labels,
    events: Arc<AtomicU64>,
    sent: u64,
}

impl Watches {
    fn kept(&self) -> MutexGuard<'_, BTreeMap<Labels, Kept>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::http) fn begin(self: &Arc<Self>, labels: Labels) -> Watched {
        let mut kept = self.kept();
        let entry = kept.entry(labels.clone()).or_default();
        entry.open += 1;
        let events = Arc::clone(&entry.events);
        drop(kept);
        Watched { all: Arc::clone(self), labels, events, sent: 0 }
    }

    /// How many are open, of each kind.
    pub(super) fn write_open(&self, page: &mut Page) {
        for (labels, kept) in self.kept().iter().filter(|(_, kept)| kept.open > 0) {
            // All but whether it is dry, which no watch is.
            let pairs = labels.pairs();
            let pairs: Vec<_> = pairs.iter().copied().filter(|(name, _)| *name != "dry_run").collect();
            page.line("apiserver_longrunning_requests", &pairs, kept.open as f64);
        }
    }

    /// What they have sent.
    pub(super) fn write_events(&self, page: &mut Page) {
        let name = "apiserver_watch_events_total";
        page.family(name, "counter", "Number of events sent in watch clients");
        let mut sums: BTreeMap<[Arc<str>; 3], u64> = BTreeMap::new();
        for (labels, kept) in self.kept().iter() {
            let key = [&labels.group, &labels.resource, &labels.version].map(Arc::clone);
            *sums.entry(key).or_default() += kept.events.load(Ordering::Relaxed);
        }
        for ([group, resource, version], sum) in sums.iter().filter(|(_, sum)| **sum > 0) {
            let pairs = [("group", &**group), ("resource", &**resource), ("version", &**version)];
            page.line(name, &pairs, *sum as f64);
        }
    }
}

impl Watched {
    /// Counts an event.
    pub(in crate::http) fn sent(&mut self) {
        self.sent += 1;
    }

    /// Tells the others of what was sent.
    pub(in crate::http) fn settle(&mut self) {
        if self.sent > 0 {
            self.events.fetch_add(std::mem::take(&mut self.sent), Ordering::Relaxed);
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.settle();
        if let Some(kept) = self.all.kept().get_mut(&self.labels) {
            kept.open = kept.open.saturating_sub(1);
        }
    }
}
