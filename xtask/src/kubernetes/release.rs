//! The versions of Kubernetes that a testbed can be made of.
//!
//! Each is pinned by a Go module of its own. Most of what is done here is done with the newest; the oldest is the one that
//! the README says the operators need.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Release {
    /// What everything is measured by.
    #[default]
    #[value(name = "1.37.1")]
    #[serde(rename = "1.37.1")]
    Newest,
    /// The oldest that is supported.
    #[value(name = "1.30.14")]
    #[serde(rename = "1.30.14")]
    Oldest,
}

impl Release {
    pub(crate) const fn version(self) -> &'static str {
        match self {
            Self::Newest => super::VERSION,
            Self::Oldest => "1.30.14",
        }
    }

    /// The folder of its Go module, below `xtask`.
    pub(super) const fn module(self) -> &'static str {
        match self {
            Self::Newest => "testbed",
            Self::Oldest => "testbed/oldest",
        }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_chosen_and_kept_by_its_version() {
        for release in Release::value_variants() {
            let named = release.to_possible_value().unwrap();
            assert_eq!(named.get_name(), release.version());
            assert_eq!(serde_json::to_value(release).unwrap(), release.version());
        }
    }

    #[test]
    fn the_oldest_is_the_one_that_the_operators_need() {
        let source = include_str!("../../../operators/src/lib.rs");
        let line = source.lines().find(|line| line.contains("const KUBERNETES")).unwrap();
        let minor = Release::Oldest.version().split('.').nth(1).unwrap();
        assert!(line.contains(minor), "{line}");
    }
}
