//! The log and the thread that writes it.
//!
//! Committed records wait in a queue, in revision order. The thread takes all that are there, writes them
//! with one `write` and one `fdatasync`, and wakes those whose records these were. While it waits for the disk
//! the queue fills again: the busier the store, the more writers share a sync.

use std::{
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use tokio::sync::oneshot;

use super::{
    super::State,
    DiskError, DiskFailed, DiskOptions,
    checkpoint::Capture,
    frame::{self, Kind},
    record::Record,
};
use crate::{
    data_directory::{DataDirectory, Error, create_private, failed, publish},
    platform::write_all_at,
};

/// How long the thread waits before it tries a full disk again.
const RETRY: Duration = Duration::from_secs(1);

/// A buffer that one large batch has grown beyond this is given back.
const BUFFER: usize = 1 << 20;

/// The file of the log that begins after `revision`.
pub(super) fn log_path(folder: &Path, revision: u64) -> PathBuf {
    folder.join(format!("log-{revision:020}"))
}

/// The log file that is written to.
#[derive(Debug)]
pub(in crate::store) struct Tail {
    path: PathBuf,
    file: File,
    length: u64,
    checkpoint_size: u64,
}

/// A new, empty log after `revision`.
pub(super) fn create(folder: &Path, revision: u64) -> Result<Tail, DiskError> {
    let path = log_path(folder, revision);
    let temporary = path.with_extension("tmp");
    let file = create_private(&temporary)?;
    let header = frame::header(Kind::Log, revision);
    write_all_at(&file, &header, 0).map_err(failed("write", &temporary))?;
    publish(&file, &temporary, &path)?;
    Ok(Tail { path, file, length: header.len() as u64, checkpoint_size: 0 })
}

/// An existing log of which the first `length` bytes are good.
pub(super) fn reopen(path: &Path, length: u64, checkpoint_size: u64) -> Result<Tail, DiskError> {
    let file = OpenOptions::new().read(true).write(true).open(path).map_err(failed("open", path))?;
    file.set_len(length).map_err(failed("cut", path))?;
    // What a killed process wrote may be in the system's cache only, and clients are about to see it.
    file.sync_all().map_err(failed("sync", path))?;
    Ok(Tail { path: path.into(), file, length, checkpoint_size })
}

/// Somebody who wants to know when a revision is on the disk.
#[derive(Debug)]
struct Waiter {
    revision: u64,
    told: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Queue {
    records: Vec<Record>,
    closed: bool,
}

#[derive(Debug)]
struct Shared {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// How far the disk is. Set before waiters are told.
    durable: AtomicU64,
    /// What is wrong with it. Set before waiters are told.
    failed: RwLock<Option<Arc<str>>>,
    waiters: Mutex<Vec<Waiter>>,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiters(&self) -> MutexGuard<'_, Vec<Waiter>> {
        self.waiters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn failure(&self) -> Option<DiskFailed> {
        self.failed.read().unwrap_or_else(PoisonError::into_inner).clone().map(DiskFailed)
    }

    fn set_failed(&self, failed: Option<Arc<str>>) {
        *self.failed.write().unwrap_or_else(PoisonError::into_inner) = failed;
    }

    /// Wakes those who wait for a revision up to this one, and nobody else: there may be many.
    fn tell(&self, revision: u64) {
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
        directory: DataDirectory,
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
            failed: RwLock::default(),
            waiters: Mutex::default(),
        });
        let writer = Writer {
            shared: Arc::clone(&shared),
            _directory: directory,
            folder,
            state,
            tail,
            options,
            buffer: Vec::new(),
            batch: Vec::new(),
            checkpoint: None,
        };
        let thread = std::thread::Builder::new().name("windlass-log".into()).spawn(move || writer.run());
        Ok(Self { shared, thread: Some(thread.map_err(DiskError::Thread)?) })
    }

    /// Queues a record. The caller holds the store's lock, which keeps records in order.
    pub(in crate::store) fn append(&self, record: Record) {
        self.shared.queue().records.push(record);
        self.shared.filled.notify_one();
    }

    /// Everything up to this revision is on the disk.
    pub(in crate::store) fn durable(&self) -> u64 {
        self.shared.durable.load(Ordering::Acquire)
    }

    /// What is wrong with the disk, if anything.
    pub(in crate::store) fn failure(&self) -> Option<DiskFailed> {
        self.shared.failure()
    }

    /// Waits until everything up to `revision` is on the disk.
    pub(in crate::store) async fn wait(&self, revision: u64) -> Result<(), DiskFailed> {
        while self.durable() < revision {
            let told = {
                let mut waiters = self.shared.waiters();
                // Asked again under the lock: the thread takes it after it has noted how far it is.
                if self.durable() >= revision {
                    return Ok(());
                }
                if let Some(failure) = self.failure() {
                    return Err(failure);
                }
                let (told, hears) = oneshot::channel();
                waiters.push(Waiter { revision, told });
                hears
            };
            told.await.map_err(|_| DiskFailed("the store is closed".into()))?;
        }
        Ok(())
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

/// What the thread owns.
struct Writer {
    shared: Arc<Shared>,
    /// Held so that no other process opens the directory while this one may still write.
    _directory: DataDirectory,
    folder: PathBuf,
    state: Arc<RwLock<State>>,
    tail: Tail,
    options: DiskOptions,
    /// Encoded, but not known to be on the disk.
    buffer: Vec<u8>,
    /// The records in `buffer`.
    batch: Vec<Record>,
    checkpoint: Option<JoinHandle<Result<u64, Error>>>,
}

/// How a write failed.
enum Failure {
    /// It can be tried again: the bytes are still here.
    Write(io::Error),
    /// Nobody knows what is on the disk now. Trying again could succeed without having written anything.
    Sync(io::Error),
}

impl Writer {
    fn run(mut self) {
        while self.next_batch() {
            match self.flush().and_then(|()| self.rotate_if_long()) {
                Ok(()) => {}
                Err(Failure::Write(error)) => self.report(&error, "It is tried again every second"),
                Err(Failure::Sync(error)) => {
                    self.report(&error, "Restart the server when the disk works again");
                    self.wait_for_close();
                    break;
                }
            }
        }
        if let Some(checkpoint) = self.checkpoint.take() {
            let _ = checkpoint.join();
        }
    }

    /// Moves queued records into the batch. Returns false when there will be no more.
    fn next_batch(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.queue();
        if self.batch.is_empty() {
            while queue.records.is_empty() && !queue.closed {
                queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        } else if !queue.closed {
            queue = shared.filled.wait_timeout(queue, RETRY).unwrap_or_else(PoisonError::into_inner).0;
        }
        // What a full disk has not taken by the end was never acknowledged.
        let go_on = !queue.closed || (self.batch.is_empty() && !queue.records.is_empty());
        let records = std::mem::take(&mut queue.records);
        drop(queue);
        self.encode(records);
        go_on
    }

    fn encode(&mut self, records: Vec<Record>) {
        for record in &records {
            frame::append(&mut self.buffer, |out| record.encode(out));
        }
        self.batch.extend(records);
    }

    /// Brings the batch to the disk and tells everybody.
    fn flush(&mut self) -> Result<(), Failure> {
        let Some(last) = self.batch.last().map(|record| record.object.revision) else { return Ok(()) };
        // At a fixed place: a second try overwrites what the first one left.
        write_all_at(&self.tail.file, &self.buffer, self.tail.length).map_err(Failure::Write)?;
        if self.options.sync {
            self.tail.file.sync_data().map_err(Failure::Sync)?;
        }
        self.tail.length += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        self.shared.durable.store(last, Ordering::Release);
        if self.shared.failure().is_some() {
            self.shared.set_failed(None);
        }
        self.shared.tell(last);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.announce(self.batch.iter().map(|record| &record.table), last);
        drop(state);
        self.batch.clear();
        Ok(())
    }

    fn report(&self, error: &io::Error, then: &str) {
        let file = self.tail.path.display();
        let text = format!("failed to write {file}: {error}. {then}; until then nothing can be changed");
        if self.shared.failure().is_none_or(|known| *known.0 != *text) {
            tracing::error!("{text}");
            self.shared.set_failed(Some(text.into()));
        }
        self.shared.tell(u64::MAX);
    }

    fn wait_for_close(&self) {
        let mut queue = self.shared.queue();
        while !queue.closed {
            queue.records.clear();
            queue = self.shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Begins a new log and a checkpoint that makes the old one needless, if the log is long.
    fn rotate_if_long(&mut self) -> Result<(), Failure> {
        if self.tail.length < self.options.checkpoint_after.max(2 * self.tail.checkpoint_size) {
            return Ok(());
        }
        if let Some(ended) = self.checkpoint.take_if(|running| running.is_finished()) {
            self.note(ended.join());
        }
        if self.checkpoint.is_some() {
            return Ok(());
        }
        // With the state locked nothing is queued, so the capture and the drained queue end at one revision.
        let state = Arc::clone(&self.state);
        let guard = state.read().unwrap_or_else(PoisonError::into_inner);
        let records = std::mem::take(&mut self.shared.queue().records);
        let capture = Capture::of(&guard);
        drop(guard);
        self.encode(records);
        self.flush()?;
        let revision = capture.revision;
        if let Err(error) = self.begin(capture) {
            // The log that is there goes on being good, if nothing claims to follow it.
            let _ = std::fs::remove_file(log_path(&self.folder, revision));
            tracing::warn!(error = &error as &dyn std::error::Error, "failed to begin a new log");
        }
        Ok(())
    }

    /// Goes on in a new log, and has the captured state written beside it.
    fn begin(&mut self, capture: Capture) -> Result<(), DiskError> {
        let folder = self.folder.clone();
        let tail = create(&folder, capture.revision)?;
        let thread = std::thread::Builder::new().name("windlass-checkpoint".into());
        self.checkpoint = Some(thread.spawn(move || capture.write(&folder)).map_err(DiskError::Thread)?);
        self.tail = Tail { checkpoint_size: self.tail.checkpoint_size, ..tail };
        Ok(())
    }

    fn note(&mut self, ended: std::thread::Result<Result<u64, Error>>) {
        match ended {
            Ok(Ok(size)) => self.tail.checkpoint_size = size,
            Ok(Err(error)) => {
                let error = &error as &dyn std::error::Error;
                tracing::warn!(error, "failed to write a checkpoint; the log goes on growing");
            }
            Err(_) => tracing::warn!("the thread that wrote a checkpoint panicked"),
        }
    }
}
