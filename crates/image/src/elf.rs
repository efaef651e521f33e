//! Programs as images need them: an image of one file has no loader, and a node runs one architecture.
//!
//! Enter the bytes of a file; leaves for which platform it is a program, or why it is none for an image.

use crate::Platform;

/// What a program is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Where it runs.
    pub platform: Platform,
}

/// Why a file cannot be the program of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// Not for Linux, or not a program.
    #[error("it is no 64-bit ELF program")]
    NotElf,
    /// Of an architecture that images are not built for.
    #[error("it is a program of another architecture than amd64 and arm64 (ELF machine {0})")]
    Machine(u16),
    /// It asks for a loader and shared libraries.
    #[error("it is not statically linked, and the image has no libraries")]
    Dynamic,
}

const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// `PT_INTERP`: the segment that names the dynamic loader.
const INTERPRETER: u32 = 3;

/// Looks at the headers of a program.
pub fn inspect(content: &[u8]) -> Result<Program, ProgramError> {
    let (machine, types) = headers(content).ok_or(ProgramError::NotElf)?;
    let platform = match machine {
        X86_64 => Platform::amd64(),
        AARCH64 => Platform::arm64(),
        other => return Err(ProgramError::Machine(other)),
    };
    if types.contains(&INTERPRETER) {
        return Err(ProgramError::Dynamic);
    }
    Ok(Program { platform })
}

/// The machine and the types of the program headers; none if this is no 64-bit little-endian ELF file.
fn headers(content: &[u8]) -> Option<(u16, Vec<u32>)> {
    if !content.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(content.get(at..at + 2)?.try_into().ok()?));
    let offset = u64::from_le_bytes(content.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let offset = usize::try_from(offset).ok()?;
    let types = (0..count).map(|index| {
        let at = offset.checked_add(index * size)?;
        Some(u32::from_le_bytes(content.get(at..at.checked_add(4)?)?.try_into().ok()?))
    });
    Some((short(18)?, types.collect::<Option<_>>()?))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The smallest file that has the headers of a program.
    pub(crate) fn program(machine: u16, types: &[u32]) -> Vec<u8> {
        let mut content = vec![0; 64];
        content[..6].copy_from_slice(b"\x7fELF\x02\x01");
        content[18..20].copy_from_slice(&machine.to_le_bytes());
        content[32] = 64;
        content[54] = 56;
        content[56] = types.len() as u8;
        for kind in types {
            let mut header = vec![0; 56];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            content.extend(header);
        }
        content
    }

    #[test]
    fn a_program_with_an_interpreter_is_not_static() {
        assert_eq!(inspect(&program(62, &[1, 2, 1])), Ok(Program { platform: Platform::amd64() }));
        assert_eq!(inspect(&program(183, &[1])), Ok(Program { platform: Platform::arm64() }));
        assert_eq!(inspect(&program(62, &[6, 3, 1])), Err(ProgramError::Dynamic));
    }

    #[test]
    fn what_is_no_program_of_a_known_machine_is_refused() {
        assert_eq!(inspect(b""), Err(ProgramError::NotElf));
        assert_eq!(inspect(b"#!/bin/sh\n"), Err(ProgramError::NotElf));
        assert_eq!(inspect(&program(62, &[1, 2])[..100]), Err(ProgramError::NotElf));
        assert_eq!(inspect(&program(243, &[1])), Err(ProgramError::Machine(243)));
    }
}
