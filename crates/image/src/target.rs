//! The platforms that images are for: `linux/amd64` and `linux/arm64`, and what Rust calls them.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// An operating system and an architecture, in the words of images.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Platform {
    /// `amd64` or `arm64`.
    pub architecture: String,
    /// `linux`.
    pub os: String,
    /// Of ARM processors; never written here, read from images of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
}

/// A platform that no image is built for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no platform that images are built for: linux/amd64, linux/arm64")]
pub struct InvalidPlatform(String);

impl Platform {
    /// Linux on x86-64.
    pub fn amd64() -> Self {
        Self::linux("amd64")
    }

    /// Linux on 64-bit ARM.
    pub fn arm64() -> Self {
        Self::linux("arm64")
    }

    fn linux(architecture: &str) -> Self {
        Self { architecture: architecture.into(), os: "linux".into(), variant: None }
    }

    /// Linux on this machine's architecture; amd64 where images are not built for it.
    pub fn of_this_machine() -> Self {
        if std::env::consts::ARCH == "aarch64" { Self::arm64() } else { Self::amd64() }
    }

    /// The target that Rust builds static programs of this platform for.
    pub fn rust_target(&self) -> &'static str {
        match self.architecture.as_str() {
            "arm64" => "aarch64-unknown-linux-musl",
            _ => "x86_64-unknown-linux-musl",
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

impl FromStr for Platform {
    type Err = InvalidPlatform;

    fn from_str(text: &str) -> Result<Self, InvalidPlatform> {
        match text {
            "linux/amd64" | "amd64" => Ok(Self::amd64()),
            "linux/arm64" | "linux/arm64/v8" | "arm64" => Ok(Self::arm64()),
            _ => Err(InvalidPlatform(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_is_read_back_from_what_it_is_written_as() {
        for platform in [Platform::amd64(), Platform::arm64()] {
            assert_eq!(platform.to_string().parse(), Ok(platform));
        }
        assert!("linux/riscv64".parse::<Platform>().unwrap_err().to_string().contains("linux/arm64"));
    }
}
