//! Digests: the names of blobs. Bytes or text come in, `sha256:…` leaves.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of some bytes, written `sha256:` and 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Digest(String);

/// A text that is no digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no digest: it must be `sha256:` and 64 hexadecimal digits in lower case")]
pub struct InvalidDigest(String);

impl Digest {
    /// The digest of some bytes.
    pub fn of(content: &[u8]) -> Self {
        use fmt::Write as _;
        let sum = Sha256::digest(content);
        Self(sum.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    /// The digits alone.
    pub fn hex(&self) -> &str {
        &self.0
    }

    /// As many digits as people need to tell one from another.
    pub fn short(&self) -> &str {
        &self.0[..12]
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let hex = text.strip_prefix("sha256:").filter(|hex| {
            hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        });
        hex.map(|hex| Self(hex.to_owned())).ok_or_else(|| InvalidDigest(text.to_owned()))
    }
}

impl TryFrom<String> for Digest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_read_back_from_what_it_is_written_as() {
        let digest = Digest::of(b"{}");
        let text = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!((digest.to_string().as_str(), text.parse()), (text, Ok(digest.clone())));
        assert_eq!(digest.short(), "44136fa355b3");
    }

    #[test]
    fn what_could_lead_out_of_a_folder_is_no_digest() {
        for text in
            ["", "sha256:", "sha256:../../etc/passwd", "sha512:00", &format!("sha256:{}", "A".repeat(64))]
        {
            assert!(text.parse::<Digest>().is_err(), "{text}");
        }
    }
}
