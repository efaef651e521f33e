//! The log as the store sees it: records enter in revision order, and who waits is told when they are on the disk.
//!
//! Committed records wait in a queue. The thread of `writer` takes all that are there, writes them with one `write` and
//! one `fdatasync`, and wakes those whose records these were. While it waits for the disk the queue fills again: the
//! busier the store, the more writers share a sync.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
};

use tokio::sync::oneshot;

use super::{
    super::{Object, State},
    DiskError, DiskFailed, DiskOptions,
    files::{self, Files, Handle},
    frame::{self, Kind},
    record::Record,
    writer::Writer,
};
use crate::data_directory::{DataDirectory, failed};

/// So many ranges of revisions that were given up are remembered. Who asks about an older one has long had an answer.
const REMEMBERED: usize = 256;

/// The file of the log that begins after `revision`.
pub(super) fn log_path(folder: &Path, revision: u64) -> PathBuf {
    folder.join(format!("log-{revision:020}"))
}

/// The log file that is written to.
#[derive(Debug)]
pub(in crate::store) struct Tail {
    pub(super) path: PathBuf,
    pub(super) file: Box<dyn Handle>,
    pub(super) length: u64,
    pub(super) checkpoint_size: u64,
}

/// A new, empty log after `revision`. It takes the place of one that began there and never got further.
pub(super) fn create(files: &dyn Files, folder: &Path, revision: u64) -> Result<Tail, DiskError> {
    let path = log_path(folder, revision);
    let temporary = path.with_extension("tmp");
    let mut file = files.create(&temporary).map_err(failed("create", &temporary))?;
    let header = frame::header(Kind::Log, revision);
    file.write_at(&header, 0).map_err(failed("write", &temporary))?;
    files::publish(files, &mut *file, &temporary, &path)?;
    Ok(Tail { path, file, length: header.len() as u64, checkpoint_size: 0 })
}

/// An existing log of which the first `length` bytes are good.
pub(super) fn reopen(
    files: &dyn Files,
    path: &Path,
    length: u64,
    checkpoint_size: u64,
) -> Result<Tail, DiskError> {
    let mut file = files.open(path).map_err(failed("open", path))?;
    file.set_length(length).map_err(failed("cut", path))?;
    // What a killed process wrote may be in the system's cache only, and clients are about to see it.
    file.sync().map_err(failed("sync", path))?;
    Ok(Tail { path: path.into(), file, length, checkpoint_size })
}

/// Somebody who wants to know when a revision is on the disk.
#[derive(Debug)]
struct Waiter {
    revision: u64,
    told: oneshot::Sender<()>,
}

/// A record on its way to the disk, and what it replaced, should it never get there.
#[derive(Debug)]
pub(in crate::store) struct Pending {
    pub(in crate::store) record: Record,
    pub(in crate::store) before: Option<Arc<Object>>,
}

#[derive(Debug, Default)]
pub(super) struct Queue {
    pub(super) records: Vec<Pending>,
    pub(super) closed: bool,
}

/// What the disk takes.
#[derive(Debug, Clone, Default)]
pub(super) enum Condition {
    /// Everything.
    #[default]
    Well,
    /// Deletes.
    Full(DiskFailed),
    /// Nothing.
    Failed(DiskFailed),
}

/// Revisions that were handed out and are no more, and why.
#[derive(Debug)]
struct GivenUp {
    first: u64,
    last: u64,
    why: DiskFailed,
}

#[derive(Debug)]
pub(super) struct Shared {
    queue: Mutex<Queue>,
    pub(super) filled: Condvar,
    /// How far the disk is. Set before waiters are told.
    durable: AtomicU64,
    /// Changed under the store's lock, so that a commit knows it.
    condition: RwLock<Condition>,
    /// Set before waiters are told.
    given_up: RwLock<Vec<GivenUp>>,
    /// How often something was given up.
    losses: AtomicU64,
    waiters: Mutex<Vec<Waiter>>,
}

impl Shared {
    pub(super) fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn condition(&self) -> Condition {
        self.condition.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_condition(&self, condition: Condition) {
        *self.condition.write().unwrap_or_else(PoisonError::into_inner) = condition;
    }

    pub(super) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Acquire)
    }

    pub(super) fn set_durable(&self, revision: u64) {
        self.durable.store(revision, Ordering::Release);
    }

    /// Notes that the revisions from `first` to `last` never happened. The caller holds the store's lock.
    pub(super) fn give_up(&self, first: u64, last: u64, why: DiskFailed) {
        let mut given_up = self.given_up.write().unwrap_or_else(PoisonError::into_inner);
        if given_up.len() == REMEMBERED {
            given_up.remove(0);
        }
        given_up.push(GivenUp { first, last, why });
        self.losses.fetch_add(1, Ordering::Release);
    }

    /// Why a revision never happened, if it did not.
    fn loss_of(&self, revision: u64) -> Option<DiskFailed> {
        let given_up = self.given_up.read().unwrap_or_else(PoisonError::into_inner);
        let found = given_up.iter().find(|range| (range.first..=range.last).contains(&revision))?;
        Some(found.why.clone())
    }

    /// Wakes those who wait for a revision up to this one, and nobody else: there may be many.
    pub(super) fn tell(&self, revision: u64) {
        let told: Vec<Waiter> = self.waiters().extract_if(.., |waiter| waiter.revision <= revision).collect();
        for waiter in told {
            // Who does not wait any more does not mind.
            let _ = waiter.told.send(());
        }
    }
}

/// The running log. Dropping it writes what is queued and waits for the thread.
#[derive(Debug)]
pub(in crate::store) struct Log {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Log {
    /// Starts the thread. Everything in `state` is on the disk already.
    pub(in crate::store) fn start(
        directory: Option<DataDirectory>,
        files: Arc<dyn Files>,
        folder: PathBuf,
        tail: Tail,
        state: Arc<RwLock<State>>,
        options: DiskOptions,
    ) -> Result<Self, DiskError> {
        let durable = state.read().unwrap_or_else(PoisonError::into_inner).revision;
        let shared = Arc::new(Shared {
            queue: Mutex::default(),
            filled: Condvar::new(),
            durable: AtomicU64::new(durable),
            condition: RwLock::default(),
            given_up: RwLock::default(),
            losses: AtomicU64::new(0),
            waiters: Mutex::default(),
        });
        let writer = Writer::new(Arc::clone(&shared), directory, files, folder, tail, state, options);
        let thread = std::thread::Builder::new().name("windlass-log".into()).spawn(move || writer.run());
        Ok(Self { shared, thread: Some(thread.map_err(DiskError::Thread)?) })
    }

    /// Refuses what the disk would not take. The caller holds the store's lock, so that the answer is still true when
    /// the record is queued.
    pub(in crate::store) fn admit(&self, frees: bool) -> Result<(), DiskFailed> {
        match self.shared.condition() {
            Condition::Well => Ok(()),
            Condition::Full(_) if frees => Ok(()),
            Condition::Full(why) | Condition::Failed(why) => Err(why),
        }
    }

    /// Queues a record. The caller holds the store's lock, which keeps records in order.
    pub(in crate::store) fn append(&self, pending: Pending) {
        self.shared.queue().records.push(pending);
        self.shared.filled.notify_one();
    }

    /// Everything up to this revision is on the disk.
    pub(in crate::store) fn durable(&self) -> u64 {
        self.shared.durable()
    }

    /// How often writes that were seen in memory were given up.
    pub(in crate::store) fn losses(&self) -> u64 {
        self.shared.losses.load(Ordering::Acquire)
    }

    /// What is wrong with the disk, if anything.
    pub(in crate::store) fn failure(&self) -> Option<DiskFailed> {
        match self.shared.condition() {
            Condition::Well => None,
            Condition::Full(why) | Condition::Failed(why) => Some(why),
        }
    }

    /// Waits until everything up to `revision` is on the disk.
    pub(in crate::store) async fn wait(&self, revision: u64) -> Result<(), DiskFailed> {
        loop {
            let told = {
                let mut waiters = self.shared.waiters();
                // Asked under the lock, which the thread takes after it has noted how far it is. What was given up
                // comes first: later revisions may be on the disk already.
                if let Some(why) = self.shared.loss_of(revision) {
                    return Err(why);
                }
                if self.durable() >= revision {
                    return Ok(());
                }
                let (told, hears) = oneshot::channel();
                waiters.push(Waiter { revision, told });
                hears
            };
            told.await.map_err(|_| DiskFailed("the store is closed".into()))?;
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.filled.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told by the panic hook; there is nobody left to hear it here.
            let _ = thread.join();
        }
    }
}
