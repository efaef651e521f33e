//! Tells a static program from one that needs a loader, which an image of one file does not have.

/// Whether `content` is a program that runs without a loader: a 64-bit ELF file without an interpreter.
pub(in crate::kubernetes) fn is_static(content: &[u8]) -> bool {
    program_types(content).is_some_and(|types| !types.contains(&INTERPRETER))
}

/// `PT_INTERP`: the segment that names the dynamic loader.
const INTERPRETER: u32 = 3;

/// The types of the program headers; none if this is no 64-bit little-endian ELF file.
fn program_types(content: &[u8]) -> Option<Vec<u32>> {
    if !content.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let short = |at: usize| Some(u16::from_le_bytes(content.get(at..at + 2)?.try_into().ok()?));
    let offset = u64::from_le_bytes(content.get(32..40)?.try_into().ok()?);
    let (size, count) = (usize::from(short(54)?), usize::from(short(56)?));
    let offset = usize::try_from(offset).ok()?;
    (0..count)
        .map(|index| {
            let at = offset.checked_add(index * size)?;
            Some(u32::from_le_bytes(content.get(at..at.checked_add(4)?)?.try_into().ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(types: &[u32]) -> Vec<u8> {
        let mut content = vec![0; 64];
        content[..6].copy_from_slice(b"\x7fELF\x02\x01");
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
        assert!(is_static(&program(&[1, 2, 1])));
        assert!(!is_static(&program(&[6, 3, 1])));
    }

    #[test]
    fn what_is_no_program_is_not_static() {
        assert!(!is_static(b""));
        assert!(!is_static(b"#!/bin/sh\n"));
        assert!(!is_static(&program(&[1, 2])[..100]));
    }
}
