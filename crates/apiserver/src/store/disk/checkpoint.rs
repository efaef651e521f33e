//! A checkpoint: every object as of one revision, in one file that appears whole or not at all.

use std::path::{Path, PathBuf};

use super::{
    super::{Change, State},
    DiskError,
    files::{self, Files},
    frame::{self, Kind, Mark},
    log::log_path,
    record::{Record, Seal},
};
use crate::data_directory::{Error, failed};

/// Records are written in pieces of about this size.
const PIECE: usize = 1 << 16;

/// What a checkpoint ends with, so that a shorter file is known to be cut.
const END: &[u8] = b"end of checkpoint";

/// The file of the checkpoint at `revision`.
pub(super) fn checkpoint_path(folder: &Path, revision: u64) -> PathBuf {
    folder.join(format!("checkpoint-{revision:020}"))
}

/// The objects of a store at one revision: pointers, not copies.
#[derive(Debug)]
pub(super) struct Capture {
    pub(super) revision: u64,
    records: Vec<Record>,
    seal: Seal,
}

impl Capture {
    pub(super) fn of(state: &State) -> Self {
        let objects = |(name, table): (&super::super::TableName, &super::super::Table)| {
            let name = name.clone();
            let objects: Vec<_> = table.objects.values().cloned().collect();
            objects.into_iter().map(move |object| Record {
                table: name.clone(),
                change: Change::Added,
                object,
            })
        };
        let records = state.tables.iter().flat_map(objects).collect();
        Self { revision: state.revision, records, seal: state.seal.clone() }
    }

    /// Writes the checkpoint, then removes the files that it replaces. Returns its size.
    pub(super) fn write(&self, files: &dyn Files, folder: &Path) -> Result<u64, Error> {
        let path = checkpoint_path(folder, self.revision);
        let temporary = path.with_extension("tmp");
        let written = self.write_to(files, &temporary, &path);
        if written.is_err() {
            // On a full disk the half of a checkpoint would take the room that the log needs.
            let _ = files.remove(&temporary);
        }
        let size = written?;
        remove_older(files, folder, self.revision)?;
        Ok(size)
    }

    /// How many objects there are.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Writes the file under one name, and gives it the other one when it is whole and on the disk.
    pub(super) fn write_to(&self, files: &dyn Files, temporary: &Path, path: &Path) -> Result<u64, Error> {
        let mut file = files.create(temporary).map_err(failed("create", temporary))?;
        let mut buffer = frame::header(Kind::Checkpoint, self.revision).to_vec();
        let end = |out: &mut Vec<u8>| {
            out.extend_from_slice(&(self.records.len() as u64).to_le_bytes());
            out.extend_from_slice(END);
        };
        let mut size = 0;
        for record in self.records.iter().map(Some).chain([None]) {
            match record {
                Some(record) => {
                    frame::append(&mut buffer, Mark::First, |out| record.sealed(&self.seal).encode(out));
                }
                None => frame::append(&mut buffer, Mark::First, end),
            }
            if buffer.len() >= PIECE || record.is_none() {
                file.write_at(&buffer, size).map_err(failed("write", temporary))?;
                size += buffer.len() as u64;
                buffer.clear();
            }
        }
        files::publish(files, &mut *file, temporary, path)?;
        Ok(size)
    }
}

/// Reads a checkpoint, handing over each record.
pub(super) fn read(
    files: &dyn Files,
    path: &Path,
    mut take: impl FnMut(Record) -> Result<(), DiskError>,
) -> Result<u64, DiskError> {
    let file = files.read(path).map_err(failed("read", path))?;
    let bad = |offset, what: &str| DiskError::Unreadable { path: path.into(), offset, what: what.into() };
    frame::read_header(&file, Kind::Checkpoint).map_err(|error| match error {
        frame::BadHeader::Newer(found) => DiskError::Newer { path: path.into(), found },
        frame::BadHeader::Damaged(what) => bad(0, what),
    })?;
    let (mut offset, mut count) = (frame::HEADER, 0_u64);
    loop {
        match frame::read(&file, offset, 0) {
            frame::Read::Frame(payload, next) if payload.ends_with(END) && payload.len() == 8 + END.len() => {
                let complete = payload[..8] == count.to_le_bytes() && next == file.len();
                return if complete { Ok(next as u64) } else { Err(bad(offset, "it ends too early")) };
            }
            frame::Read::Frame(payload, next) => {
                take(Record::decode(payload).ok_or_else(|| bad(offset, "a record cannot be read"))?)?;
                (offset, count) = (next, count + 1);
            }
            frame::Read::Damaged(what) => return Err(bad(offset, what)),
            frame::Read::End | frame::Read::Torn => return Err(bad(offset, "the file is cut off")),
        }
    }
}

/// Removes what a checkpoint at `revision` makes needless.
pub(super) fn remove_older(files: &dyn Files, folder: &Path, revision: u64) -> Result<(), Error> {
    let (checkpoint, log) = (checkpoint_path(folder, revision), log_path(folder, revision));
    for path in files.list(folder).map_err(failed("list", folder))? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        // Names are padded with zeros: their order is that of the revisions.
        let older = |prefix: &str, than: &Path| name.starts_with(prefix) && path.as_path() < than;
        if older("checkpoint-", &checkpoint) || older("log-", &log) {
            files.remove(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}
