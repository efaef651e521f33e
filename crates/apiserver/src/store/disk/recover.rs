//! From files back to a store: the newest checkpoint, then every log after it, in order.

use std::path::{Path, PathBuf};

use super::{
    super::State,
    DiskError,
    checkpoint::{self, Capture, checkpoint_path},
    files::Files,
    frame::{self, Kind},
    log::{self, Tail, log_path},
    record::Record,
};
use crate::data_directory::failed;

/// The store's files, by the revision in their names.
#[derive(Debug, Default)]
struct Found {
    checkpoints: Vec<u64>,
    logs: Vec<u64>,
    unfinished: Vec<PathBuf>,
}

fn find(disk: &dyn Files, folder: &Path) -> Result<Found, DiskError> {
    let mut files = Found::default();
    for path in disk.list(folder).map_err(failed("list", folder))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".tmp") {
            files.unfinished.push(path);
        } else if let Some(revision) = name.strip_prefix("checkpoint-").and_then(|text| text.parse().ok()) {
            files.checkpoints.push(revision);
        } else if let Some(revision) = name.strip_prefix("log-").and_then(|text| text.parse().ok()) {
            files.logs.push(revision);
        }
    }
    files.checkpoints.sort_unstable();
    files.logs.sort_unstable();
    Ok(files)
}

/// Fills `state` from the folder's files and tells where the log goes on.
pub(in crate::store) fn recover(
    disk: &dyn Files,
    folder: &Path,
    state: &mut State,
) -> Result<Tail, DiskError> {
    let files = find(disk, folder)?;
    for path in &files.unfinished {
        disk.remove(path).map_err(failed("remove", path))?;
    }
    let Some(end) = load(disk, folder, &files, state)? else {
        return log::create(disk, folder, state.revision);
    };
    if let Some(&revision) = files.checkpoints.last() {
        // A crash between writing a checkpoint and tidying up leaves them.
        checkpoint::remove_older(disk, folder, revision)?;
    }
    if state.stale {
        return rewritten(disk, folder, state);
    }
    log::reopen(disk, &end.log, end.length, end.checkpoint_size)
}

/// Writes everything anew, because a part is encrypted otherwise than it would be now: what a key opened that is about to
/// go must not stay behind.
fn rewritten(disk: &dyn Files, folder: &Path, state: &State) -> Result<Tail, DiskError> {
    let tail = log::create(disk, folder, state.revision)?;
    let checkpoint_size = Capture::of(state).write(disk, folder)?;
    Ok(Tail { checkpoint_size, ..tail })
}

/// Fills `state` from the folder's files and changes none of them; another process may be writing there. Whether there
/// were any.
pub(super) fn read_only(disk: &dyn Files, folder: &Path, state: &mut State) -> Result<bool, DiskError> {
    let files = find(disk, folder)?;
    Ok(load(disk, folder, &files, state)?.is_some())
}

/// Where the newest log ends, and how large the checkpoint before it is.
struct End {
    log: PathBuf,
    length: u64,
    checkpoint_size: u64,
}

fn load(disk: &dyn Files, folder: &Path, files: &Found, state: &mut State) -> Result<Option<End>, DiskError> {
    let mut checkpoint_size = 0;
    if let Some(&revision) = files.checkpoints.last() {
        state.begin_at(revision);
        let path = checkpoint_path(folder, revision);
        checkpoint_size = checkpoint::read(disk, &path, |record| {
            let record = opened(&path, record, state)?;
            state.restore(record);
            Ok(())
        })?;
    }
    let logs: Vec<u64> = files.logs.iter().copied().filter(|base| *base >= state.revision).collect();
    let Some(&first) = logs.first() else {
        return match files.checkpoints.last() {
            None => Ok(None),
            Some(&revision) => Err(DiskError::Missing { path: log_path(folder, revision), revision }),
        };
    };
    if first > state.revision {
        let path = match files.checkpoints.last() {
            Some(_) => log_path(folder, state.revision),
            None => checkpoint_path(folder, first),
        };
        return Err(DiskError::Missing { path, revision: state.revision });
    }
    let mut length = 0;
    for (position, base) in logs.iter().enumerate() {
        let next = logs.get(position + 1).copied();
        length = replay(disk, &log_path(folder, *base), *base, next, state)?;
    }
    let newest = logs.last().copied().unwrap_or(first);
    Ok(Some(End { log: log_path(folder, newest), length, checkpoint_size }))
}

/// The object of a record as memory has it. Notes if the disk should have it in another form.
pub(super) fn opened(path: &Path, record: Record, state: &mut State) -> Result<Record, DiskError> {
    let (table, key) = (&record.table, &record.object.key);
    let named = format!("{} {}/{}", table.plural, key.namespace, key.name);
    let (record, fresh) = record.opened(&state.seal).map_err(|why| DiskError::Sealed {
        path: path.into(),
        what: named,
        why,
    })?;
    state.stale |= !fresh;
    Ok(record)
}

/// Applies one log to the state, up to where the next one begins. Returns the length of what is good.
fn replay(
    disk: &dyn Files,
    path: &Path,
    base: u64,
    next_log: Option<u64>,
    state: &mut State,
) -> Result<u64, DiskError> {
    if state.revision != base {
        return Err(DiskError::Missing {
            path: log_path(path.parent().unwrap_or(path), state.revision),
            revision: state.revision,
        });
    }
    let file = disk.read(path).map_err(failed("read", path))?;
    let found = frame::read_header(&file, Kind::Log).map_err(|error| match error {
        frame::BadHeader::Newer(found) => DiskError::Newer { path: path.into(), found },
        frame::BadHeader::Damaged(what) => {
            DiskError::Unreadable { path: path.into(), offset: 0, what: what.into() }
        }
    })?;
    if found != base {
        let what = format!("it begins at revision {found}, not at the one in its name");
        return Err(DiskError::Unreadable { path: path.into(), offset: 16, what });
    }
    let mut offset = frame::HEADER;
    // What stands behind the beginning of the next log was given up when that was begun.
    while next_log != Some(state.revision) {
        let bad = |what: &str, revision| {
            Err(DiskError::Damaged { path: path.into(), offset, what: what.into(), revision })
        };
        match frame::read(&file, offset, state.revision) {
            frame::Read::Frame(payload, next) => {
                let Some(record) = Record::decode(payload) else {
                    return bad("a record cannot be read", state.revision);
                };
                // Revisions that were given up are missing, and there is no way back.
                if record.object.revision <= state.revision {
                    return bad("a record is out of order", state.revision);
                }
                let record = opened(path, record, state)?;
                state.replay(record);
                offset = next;
            }
            frame::Read::End => break,
            frame::Read::Torn if next_log.is_none() => {
                let bytes = file.len() - offset;
                tracing::info!(file = %path.display(), bytes, "cut off a write that was never finished");
                break;
            }
            frame::Read::Torn => return bad("the file is cut off, and a later log exists", state.revision),
            frame::Read::Damaged(what) => return bad(what, state.revision),
        }
    }
    Ok(offset as u64)
}
