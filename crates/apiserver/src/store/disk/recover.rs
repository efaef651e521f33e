//! From files back to a store: the newest checkpoint, then every log after it, in order.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::{
    super::State,
    DiskError,
    checkpoint::{self, checkpoint_path},
    frame::{self, Kind},
    log::{self, Tail, log_path},
    record::Record,
};
use crate::data_directory::failed;

/// The store's files, by the revision in their names.
#[derive(Debug, Default)]
struct Files {
    checkpoints: Vec<u64>,
    logs: Vec<u64>,
    unfinished: Vec<PathBuf>,
}

fn files(folder: &Path) -> Result<Files, DiskError> {
    let mut files = Files::default();
    for entry in fs::read_dir(folder).map_err(failed("list", folder))? {
        let path = entry.map_err(failed("list", folder))?.path();
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
pub(in crate::store) fn recover(folder: &Path, state: &mut State) -> Result<Tail, DiskError> {
    let mut files = files(folder)?;
    for path in &files.unfinished {
        fs::remove_file(path).map_err(failed("remove", path))?;
    }
    let mut checkpoint_size = 0;
    if let Some(&revision) = files.checkpoints.last() {
        state.begin_at(revision);
        let path = checkpoint_path(folder, revision);
        checkpoint_size = checkpoint::read(&path, |record| state.restore(record))?;
    }
    files.logs.retain(|base| *base >= state.revision);
    let Some(&first) = files.logs.first() else {
        return match files.checkpoints.last() {
            None => log::create(folder, state.revision),
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
    for (position, base) in files.logs.iter().enumerate() {
        let last = position + 1 == files.logs.len();
        length = replay(&log_path(folder, *base), *base, last, state)?;
    }
    if let Some(&revision) = files.checkpoints.last() {
        // A crash between writing a checkpoint and tidying up leaves them.
        checkpoint::remove_older(folder, revision)?;
    }
    let newest = files.logs.last().copied().unwrap_or(first);
    log::reopen(&log_path(folder, newest), length, checkpoint_size)
}

/// Applies one log to the state. Returns the length of what is good.
fn replay(path: &Path, base: u64, last: bool, state: &mut State) -> Result<u64, DiskError> {
    if state.revision != base {
        return Err(DiskError::Missing {
            path: log_path(path.parent().unwrap_or(path), state.revision),
            revision: state.revision,
        });
    }
    let file = fs::read(path).map_err(failed("read", path))?;
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
    loop {
        let bad = |what: &str, revision| {
            Err(DiskError::Damaged { path: path.into(), offset, what: what.into(), revision })
        };
        match frame::read(&file, offset, state.revision) {
            frame::Read::Frame(payload, next) => {
                let Some(record) = Record::decode(payload) else {
                    return bad("a record cannot be read", state.revision);
                };
                if record.object.revision != state.revision + 1 {
                    return bad("a record is out of order", state.revision);
                }
                state.replay(record);
                offset = next;
            }
            frame::Read::End => break,
            frame::Read::Torn if last => {
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
