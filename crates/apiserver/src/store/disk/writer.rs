//! The thread that writes the log, and what it does when the disk does not take it.
//!
//! A batch that cannot be written is given up: the store goes back to what the disk has, in one step under its lock, and
//! those who wait for the batch are told why. So memory and disk say the same again at once, and everything can be read.
//!
//! - No room: whatever is not a delete is refused until there is room again. Deletes may use the [`Reserve`].
//! - Anything else, a failed sync above all: nobody knows what is on the disk behind the last good record. The system may
//!   have dropped what it could not write, and a second sync would succeed for nothing. So that file is left alone, and
//!   a new log takes over: where a log begins, the one before it ends. A checkpoint then makes the old one needless.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use super::{
    super::State,
    DiskError, DiskFailed, DiskOptions,
    checkpoint::Capture,
    files::{Files, is_full},
    frame,
    log::{Condition, Pending, Shared, Tail, create, log_path},
    record::Seal,
    reserve::Reserve,
};
use crate::data_directory::{DataDirectory, Error};

/// How long the thread waits before it tries a disk again that failed.
const RETRY: Duration = Duration::from_millis(500);

/// A buffer that one large batch has grown beyond this is given back.
const BUFFER: usize = 1 << 20;

/// What the thread owns.
pub(super) struct Writer {
    shared: Arc<Shared>,
    /// Held so that no other process opens the directory while this one may still write.
    _directory: Option<DataDirectory>,
    files: Arc<dyn Files>,
    folder: PathBuf,
    state: Arc<RwLock<State>>,
    tail: Tail,
    /// What stands behind the good part of the tail is not known.
    spoiled: bool,
    options: DiskOptions,
    seal: Seal,
    reserve: Reserve,
    /// Encoded, but not known to be on the disk.
    buffer: Vec<u8>,
    /// The records in `buffer`.
    batch: Vec<Pending>,
    checkpoint: Option<JoinHandle<Result<u64, Error>>>,
    /// When the disk was last asked whether it takes writes again.
    tried: Option<Instant>,
}

/// How a batch failed.
enum Failure {
    /// It was not written, and the file can be cut to what it was.
    Write(io::Error),
    /// Nobody knows what is on the disk now.
    Sync(io::Error),
}

impl Writer {
    pub(super) fn new(
        shared: Arc<Shared>,
        directory: Option<DataDirectory>,
        files: Arc<dyn Files>,
        folder: PathBuf,
        tail: Tail,
        state: Arc<RwLock<State>>,
        options: DiskOptions,
    ) -> Self {
        let reserve = Reserve::find(&*files, &folder, options.reserve);
        let seal = state.read().unwrap_or_else(PoisonError::into_inner).seal.clone();
        Self {
            shared,
            _directory: directory,
            files,
            folder,
            state,
            tail,
            spoiled: false,
            options,
            seal,
            reserve,
            buffer: Vec::new(),
            batch: Vec::new(),
            checkpoint: None,
            tried: None,
        }
    }

    pub(super) fn run(mut self) {
        self.first_reserve();
        while self.next_batch() {
            if !self.batch.is_empty() {
                if let Err(failure) = self.flush() {
                    self.give_up(failure);
                } else if !matches!(self.shared.condition(), Condition::Full(_)) {
                    self.rotate_if_long();
                }
            }
            self.mend();
        }
        if let Some(checkpoint) = self.checkpoint.take() {
            let _ = checkpoint.join();
        }
    }

    /// Takes the room for deletes. Where there is none, the disk is full from the start.
    fn first_reserve(&mut self) {
        match self.reserve.take(&*self.files, false) {
            Ok(()) => {}
            Err(error) if is_full(&error) => {
                let condition = Condition::Full(self.full(&error));
                let state = Arc::clone(&self.state);
                let _guard = state.write().unwrap_or_else(PoisonError::into_inner);
                self.shared.set_condition(condition);
            }
            Err(error) => tracing::warn!(%error, "failed to reserve room for deletes on a full disk"),
        }
    }

    /// Moves queued records into the batch, and waits for some while all is well. Returns false when there will be no
    /// more.
    fn next_batch(&mut self) -> bool {
        let shared = Arc::clone(&self.shared);
        let mut queue = shared.queue();
        let well = matches!(shared.condition(), Condition::Well);
        if well {
            while queue.records.is_empty() && !queue.closed {
                queue = shared.filled.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
        } else if queue.records.is_empty() && !queue.closed {
            queue = shared.filled.wait_timeout(queue, RETRY).unwrap_or_else(PoisonError::into_inner).0;
        }
        let go_on = !queue.closed || !queue.records.is_empty();
        let records = std::mem::take(&mut queue.records);
        drop(queue);
        self.encode(records);
        go_on
    }

    fn encode(&mut self, records: Vec<Pending>) {
        for pending in records {
            // One that begins a batch says so: what a crash tears apart is the last batch and no other.
            let mark = if self.batch.is_empty() { frame::Mark::First } else { frame::Mark::Following };
            frame::append(&mut self.buffer, mark, |out| pending.record.sealed(&self.seal).encode(out));
            self.batch.push(pending);
        }
    }

    /// Brings the batch to the disk and tells everybody.
    fn flush(&mut self) -> Result<(), Failure> {
        let Some(last) = self.batch.last().map(|pending| pending.record.object.revision) else {
            return Ok(());
        };
        self.write().map_err(Failure::Write)?;
        if self.options.sync {
            self.tail.file.sync().map_err(Failure::Sync)?;
        }
        self.tail.length += self.buffer.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER);
        self.shared.set_durable(last);
        self.shared.tell(last);
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        state.announce(self.batch.iter().map(|pending| &pending.record.table));
        drop(state);
        self.batch.clear();
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        match self.tail.file.write_at(&self.buffer, self.tail.length) {
            // On a disk that is known to be full there are deletes only.
            Err(error) if is_full(&error) && matches!(self.shared.condition(), Condition::Full(_)) => {
                self.tail.file.set_length(self.tail.length)?;
                if !self.reserve.release(&*self.files, self.buffer.len() as u64) {
                    return Err(error);
                }
                self.tail.file.write_at(&self.buffer, self.tail.length)
            }
            outcome => outcome,
        }
    }

    /// Goes back to what the disk has: the batch and all that was committed after it never happened.
    fn give_up(&mut self, failure: Failure) {
        let (error, synced) = match failure {
            Failure::Write(error) => (error, false),
            Failure::Sync(error) => (error, true),
        };
        // Cut off what was written of the batch, on the disk as well: the next one is another.
        self.spoiled = synced || !is_full(&error) || self.cut().is_err();
        let full = is_full(&error);
        let why = if full { self.full(&error) } else { self.failed(&error) };
        tracing::error!("{why}");
        let state = Arc::clone(&self.state);
        let mut state = state.write().unwrap_or_else(PoisonError::into_inner);
        self.batch.append(&mut self.shared.queue().records);
        let (durable, last) = (self.shared.durable(), state.next - 1);
        state.give_up(self.batch.drain(..), durable);
        self.buffer.clear();
        self.shared.give_up(durable + 1, last, why.clone());
        let usable = full && !self.spoiled;
        self.shared.set_condition(if usable { Condition::Full(why) } else { Condition::Failed(why) });
        drop(state);
        self.shared.tell(u64::MAX);
    }

    fn cut(&mut self) -> io::Result<()> {
        self.tail.file.set_length(self.tail.length)?;
        self.tail.file.sync()
    }

    fn full(&self, error: &io::Error) -> DiskFailed {
        let file = self.tail.path.display();
        let text = format!(
            "the disk of the data directory is full: failed to write {file}: {error}. Until there is room, objects can \
             be read and deleted, and nothing else can be changed"
        );
        DiskFailed(text.into())
    }

    fn failed(&self, error: &io::Error) -> DiskFailed {
        let file = self.tail.path.display();
        DiskFailed(format!("the disk of the data directory failed: failed to write {file}: {error}").into())
    }

    /// Tries whether the disk takes writes again, if it did not.
    #[expect(clippy::disallowed_methods, reason = "a disk has no other clock than the machine's")]
    fn mend(&mut self) {
        let condition = self.shared.condition();
        if matches!(condition, Condition::Well) {
            return;
        }
        // A disk that is busy with deletes is not asked at every one of them.
        if !self.spoiled && self.tried.is_some_and(|tried| tried.elapsed() < RETRY) {
            return;
        }
        self.tried = Some(Instant::now());
        if self.spoiled {
            if let Err(error) = self.take_over() {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(error, "the disk still fails");
                return;
            }
            self.spoiled = false;
        }
        let next = match self.reserve.take(&*self.files, true) {
            Ok(()) => Condition::Well,
            Err(error) if is_full(&error) => Condition::Full(self.full(&error)),
            // The log was written, and that is what counts.
            Err(_) if matches!(condition, Condition::Failed(_)) => Condition::Well,
            Err(_) => return,
        };
        if matches!(next, Condition::Well) {
            tracing::info!("the disk of the data directory takes writes again");
        }
        let state = Arc::clone(&self.state);
        let _guard = state.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.set_condition(next);
    }

    /// A new log in place of one whose end is not known. Nothing is admitted meanwhile, so the state is what the disk has.
    fn take_over(&mut self) -> Result<(), DiskError> {
        let capture = Capture::of(&self.state.read().unwrap_or_else(PoisonError::into_inner));
        let mut begun = create(&*self.files, &self.folder, capture.revision);
        if begun.is_err() && self.reserve.release(&*self.files, 0) {
            begun = create(&*self.files, &self.folder, capture.revision);
        }
        self.tail = Tail { checkpoint_size: self.tail.checkpoint_size, ..begun? };
        self.write_checkpoint(capture);
        Ok(())
    }

    /// Begins a new log and a checkpoint that makes the old one needless, if the log is long.
    fn rotate_if_long(&mut self) {
        if self.tail.length < self.options.checkpoint_after.max(2 * self.tail.checkpoint_size) {
            return;
        }
        if let Some(ended) = self.checkpoint.take_if(|running| running.is_finished()) {
            self.note(ended.join());
        }
        if self.checkpoint.is_some() {
            return;
        }
        // With the state locked nothing is queued, so the capture and the drained queue end at one revision.
        let state = Arc::clone(&self.state);
        let guard = state.read().unwrap_or_else(PoisonError::into_inner);
        let records = std::mem::take(&mut self.shared.queue().records);
        let capture = Capture::of(&guard);
        drop(guard);
        self.encode(records);
        if let Err(failure) = self.flush() {
            return self.give_up(failure);
        }
        match create(&*self.files, &self.folder, capture.revision) {
            Ok(tail) => {
                self.tail = Tail { checkpoint_size: self.tail.checkpoint_size, ..tail };
                self.write_checkpoint(capture);
            }
            Err(error) => self.stay(capture.revision, &error),
        }
    }

    /// Goes on in the log that is there. Nothing may claim to follow it: what comes after that would be ignored.
    fn stay(&mut self, revision: u64, error: &DiskError) {
        tracing::warn!(error = error as &dyn std::error::Error, "failed to begin a new log");
        let path = log_path(&self.folder, revision);
        let gone = match self.files.remove(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome.and_then(|()| self.files.sync_folder(&self.folder)),
        };
        if let Err(error) = gone {
            self.give_up(Failure::Sync(error));
        }
    }

    fn write_checkpoint(&mut self, capture: Capture) {
        if let Some(running) = self.checkpoint.take() {
            let ended = running.join();
            self.note(ended);
        }
        let (files, folder) = (Arc::clone(&self.files), self.folder.clone());
        let thread = std::thread::Builder::new().name("windlass-checkpoint".into());
        match thread.spawn(move || capture.write(&*files, &folder)) {
            Ok(running) => self.checkpoint = Some(running),
            Err(error) => tracing::warn!(%error, "failed to start a checkpoint; the log goes on growing"),
        }
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
