//! How files are divided: a header that says what the file is, then frames with a checksum each.
//!
//! ```text
//! header: "windlass" | kind (4) | format (u32) | base revision (u64) | crc32 of all that
//! frame:  length (u32) | the length's complement (u32), marked in all but the first of a batch |
//!         crc32 of the payload | payload
//! ```
//!
//! A writer that dies leaves a file whose end is cut off, or zeros where the file system had made room
//! already; a machine that dies may have written any sectors of the last batch and not others. That is a torn tail
//! and harmless: nothing of it was acknowledged. Anything else that does not check is damage, which must never be
//! mistaken for the end of the file; that is why a length has a check of its own, or one wrong bit in it could pass
//! for a cut, and why a frame tells whether a batch begins with it: what stands before that was on the disk.

use super::record::revision_of;

/// The version of the file formats that this code writes, and the newest that it reads.
pub(super) const FORMAT: u32 = 2;

/// The length of a file header.
pub(super) const HEADER: usize = 28;

/// What stands before a payload.
const PREFIX: usize = 12;

/// A disk writes a sector of so many bytes whole or not at all.
const SECTOR: usize = 512;

/// What the check of a length differs by in a frame that does not begin a batch.
const FOLLOWING: u32 = 0x5a5a_5a5a;

/// Where a frame stands among those that are written together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// It begins a batch.
    First,
    /// It follows another one of its batch.
    Following,
}

impl Mark {
    fn check(self, length: u32) -> u32 {
        match self {
            Self::First => !length,
            Self::Following => !length ^ FOLLOWING,
        }
    }
}

/// How many revisions one group commit can span at most: how far ahead of the last good record a record
/// behind a hole can be.
const AHEAD: u64 = 1 << 24;

/// What kind of file it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Log,
    Checkpoint,
}

impl Kind {
    fn mark(self) -> &'static [u8; 4] {
        match self {
            Self::Log => b"log ",
            Self::Checkpoint => b"ckpt",
        }
    }
}

/// The header of a file whose records come after revision `base`, or, in a checkpoint, are as of it.
pub(super) fn header(kind: Kind, base: u64) -> [u8; HEADER] {
    let mut out = [0; HEADER];
    out[..8].copy_from_slice(b"windlass");
    out[8..12].copy_from_slice(kind.mark());
    out[12..16].copy_from_slice(&FORMAT.to_le_bytes());
    out[16..24].copy_from_slice(&base.to_le_bytes());
    let sum = crc32fast::hash(&out[..24]);
    out[24..].copy_from_slice(&sum.to_le_bytes());
    out
}

/// Why a header is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BadHeader {
    Newer(u32),
    Damaged(&'static str),
}

/// The base revision of a file of this kind.
pub(super) fn read_header(file: &[u8], kind: Kind) -> Result<u64, BadHeader> {
    let header = file.get(..HEADER).ok_or(BadHeader::Damaged("the file is too short to have a header"))?;
    if &header[..8] != b"windlass" || &header[8..12] != kind.mark() {
        return Err(BadHeader::Damaged("it does not begin like a file of this store"));
    }
    // Before the checksum: a newer format may have another header from here on.
    let format = number(&header[12..16]);
    if format > FORMAT {
        return Err(BadHeader::Newer(format));
    }
    if crc32fast::hash(&header[..24]) != number(&header[24..]) {
        return Err(BadHeader::Damaged("the checksum of the header is wrong"));
    }
    Ok(u64::from_le_bytes(header[16..24].try_into().expect("eight bytes must be a u64")))
}

/// Appends a frame whose payload `write` writes.
pub(super) fn append(out: &mut Vec<u8>, mark: Mark, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; PREFIX]);
    write(out);
    let length = u32::try_from(out.len() - start - PREFIX).expect("a record must be smaller than 4 GiB");
    let sum = crc32fast::hash(&out[start + PREFIX..]);
    for (at, word) in [length, mark.check(length), sum].into_iter().enumerate() {
        out[start + 4 * at..start + 4 * at + 4].copy_from_slice(&word.to_le_bytes());
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes.try_into().expect("four bytes must be a u32"))
}

/// What stands at a place of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A frame that checks, and where the next one begins.
    Frame(&'a [u8], usize),
    /// The end of the file.
    End,
    /// The rest of a write that was never finished.
    Torn,
    /// Something that checks no longer.
    Damaged(&'static str),
}

/// Reads the frame at `offset`; `last` is the revision of the record before it.
pub(super) fn read(file: &[u8], offset: usize, last: u64) -> Read<'_> {
    let rest = &file[offset.min(file.len())..];
    if rest.is_empty() {
        return Read::End;
    }
    if let Some((payload, next, _)) = whole(file, offset) {
        return Read::Frame(payload, next);
    }
    if rest.iter().all(|byte| *byte == 0) {
        return Read::Torn;
    }
    // The end of what was lost of the last batch, as far as one can tell: the next frame of it that is whole.
    let following = match next_whole(file, offset + 1, last) {
        Some((_, Mark::First)) => return Read::Damaged("the checksum is wrong, and valid records follow"),
        Some((next, Mark::Following)) => Some(next),
        None => None,
    };
    if let Some(next) = following {
        let begun = first_after(file, next, last);
        return if has_hole(file, offset, next) && !begun {
            Read::Torn
        } else {
            Read::Damaged("the checksum is wrong, and valid records follow")
        };
    }
    match prefix(rest) {
        None => Read::Torn,
        Some((None, _)) if has_hole(file, offset, offset + PREFIX) => Read::Torn,
        Some((None, _)) => Read::Damaged("the length of the last record is wrong"),
        Some((Some((length, _)), _)) if length <= rest.len() - PREFIX => {
            if has_hole(file, offset, offset + PREFIX + length) {
                Read::Torn
            } else {
                Read::Damaged("the checksum of the last record is wrong")
            }
        }
        Some(_) => Read::Torn,
    }
}

/// Whether a sector, or what the range has of one, is nothing but zeros: it was never written.
fn has_hole(file: &[u8], from: usize, to: usize) -> bool {
    let mut at = from;
    while at < to {
        let end = (at / SECTOR + 1) * SECTOR;
        let part = &file[at..end.min(to).min(file.len())];
        if part.iter().all(|byte| *byte == 0) {
            return true;
        }
        at = end;
    }
    false
}

/// The length and the mark, if they check, and the checksum of the frame that `rest` begins with.
fn prefix(rest: &[u8]) -> Option<(Option<(usize, Mark)>, u32)> {
    let prefix = rest.get(..PREFIX)?;
    let (length, check) = (number(&prefix[..4]), number(&prefix[4..8]));
    let mark = [Mark::First, Mark::Following].into_iter().find(|mark| mark.check(length) == check);
    Some((mark.map(|mark| (length as usize, mark)), number(&prefix[8..])))
}

fn whole(file: &[u8], offset: usize) -> Option<(&[u8], usize, Mark)> {
    let (length, sum) = prefix(file.get(offset..)?)?;
    let ((length, mark), start) = (length?, offset + PREFIX);
    let end = start.checked_add(length)?;
    let payload = file.get(start..end)?;
    (crc32fast::hash(payload) == sum).then_some((payload, end, mark))
}

/// The next valid record at or behind `from`: then what is before it was once written too.
fn next_whole(file: &[u8], from: usize, last: u64) -> Option<(usize, Mark)> {
    (from..file.len().saturating_sub(PREFIX)).find_map(|offset| {
        // Almost every wrong place fails at the length or at the revision, without a checksum.
        let rest = &file[offset..];
        prefix(rest)?.0?;
        revision_of(&rest[PREFIX..]).filter(|found| *found > last && *found - last < AHEAD)?;
        whole(file, offset).map(|(_, _, mark)| (offset, mark))
    })
}

/// Whether another batch begins behind `from`.
fn first_after(file: &[u8], mut from: usize, last: u64) -> bool {
    while let Some((at, mark)) = next_whole(file, from, last) {
        if mark == Mark::First {
            return true;
        }
        from = at + PREFIX;
    }
    false
}
