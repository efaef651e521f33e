//! What systems do differently with files. Everything else in this crate is the same on all of them.
//!
//! Files that are private, writes at a place, and directory entries that are on the disk come in as one call each, and
//! leave as the system has them.

use std::{
    fs::{DirBuilder, File, OpenOptions},
    io,
    path::Path,
};

/// Makes a directory that only its owner may enter, and the ones above it.
///
/// Windows has no modes: what is made there has the access list of the folder it is made in, and that of a folder in a
/// user's profile names the user, the administrators and the system alone.
pub(crate) fn make_private_directory(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path)
}

/// Files opened with these options are readable by their owner alone from the first moment, if they are new. On Windows
/// their folder says so, as above.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Writes all of `bytes` at `place`, wherever the file was read or written last.
pub(crate) fn write_all_at(file: &File, bytes: &[u8], place: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, place);
    #[cfg(windows)]
    return write_pieces(bytes, place, |rest, at| std::os::windows::fs::FileExt::seek_write(file, rest, at));
}

/// Calls `write` until it has taken everything: one call may take a part only, or be interrupted.
#[cfg(any(windows, test))]
fn write_pieces(
    mut bytes: &[u8],
    mut place: u64,
    mut write: impl FnMut(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match write(bytes, place) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                bytes = &bytes[taken..];
                place += taken as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until the entries of a directory are on the disk.
///
/// Windows opens no directory as a file; its file system writes changes of names to a journal by itself.
pub(crate) fn sync_directory(folder: &Path) -> io::Result<()> {
    if cfg!(windows) { Ok(()) } else { File::open(folder)?.sync_all() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_at_a_place_leaves_the_rest() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut file, b"0123456789").unwrap();
        write_all_at(file.as_file(), b"ab", 3).unwrap();
        write_all_at(file.as_file(), b"z", 10).unwrap();
        assert_eq!(std::fs::read(file.path()).unwrap(), b"012ab56789z");
    }

    #[test]
    fn what_a_system_takes_in_pieces_arrives_whole() {
        let (mut taken, mut calls) = (vec![0; 8], 0);
        let write = |rest: &[u8], at: u64| {
            calls += 1;
            if calls == 2 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let (at, length) = (usize::try_from(at).unwrap(), rest.len().min(2));
            taken[at..at + length].copy_from_slice(&rest[..length]);
            Ok(length)
        };
        write_pieces(b"abcde", 3, write).unwrap();
        assert_eq!((taken.as_slice(), calls), (b"\0\0\0abcde".as_slice(), 4));
        assert_eq!(write_pieces(b"a", 0, |_, _| Ok(0)).unwrap_err().kind(), io::ErrorKind::WriteZero);
    }
}
