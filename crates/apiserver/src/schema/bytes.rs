//! Bytes in JSON: base64, read as Go reads it.
//!
//! Line breaks mean nothing anywhere, so that what a program wrapped at 76 columns is taken; bits behind the last byte
//! mean nothing either. What is stored is the canonical text.

use base64::{
    DecodeError, Engine,
    engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
};

const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// The bytes, or where the text is wrong.
pub(super) fn decode(text: &str) -> Result<Vec<u8>, usize> {
    let foreign = |byte: &u8| !(byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(byte));
    if let Some(at) = text.bytes().position(|byte| foreign(&byte)) {
        return Err(at);
    }
    let plain: String;
    let joined = if text.contains(['\r', '\n']) {
        plain = text.chars().filter(|character| !is_break(*character)).collect();
        &plain
    } else {
        text
    };
    LENIENT.decode(joined).map_err(|error| match error {
        DecodeError::InvalidByte(at, _) | DecodeError::InvalidLastSymbol { offset: at, .. } => {
            place(text, at)
        }
        // It ends within a group of four.
        _ => place(text, joined.len() / 4 * 4),
    })
}

/// The text as it is stored; `None` if it is wrong, or canonical already.
pub(super) fn canonical(text: &str) -> Option<String> {
    let bytes = decode(text).ok()?;
    Some(STANDARD.encode(bytes)).filter(|canonical| canonical != text)
}

fn is_break(character: char) -> bool {
    matches!(character, '\r' | '\n')
}

/// Where a byte of the joined text stands in the original.
fn place(text: &str, at: usize) -> usize {
    let kept = text.char_indices().filter(|(_, character)| !is_break(*character)).map(|(place, _)| place);
    kept.take(at + 1).last().unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bytes_survive_any_wrapping(
            bytes in prop::collection::vec(any::<u8>(), 0..100), width in 1usize..80,
            line_break in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let text = STANDARD.encode(&bytes);
            let lines: Vec<&str> =
                text.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
            let wrapped = lines.join(line_break) + line_break;
            prop_assert_eq!(decode(&wrapped), Ok(bytes));
            prop_assert_eq!(canonical(&wrapped), Some(text.clone()));
            prop_assert_eq!(canonical(&text), None);
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,40}") {
            let _ = decode(&text);
        }
    }

    #[test]
    fn a_wrong_byte_is_told_by_its_place() {
        assert_eq!(decode("aGVs\nb G8="), Err(6));
        assert_eq!(decode("!"), Err(0));
    }
}
