//! Versions as semver.org writes them, in its order.

use std::{cmp::Ordering, fmt};

use crate::Error;

/// A version: MAJOR.MINOR.PATCH, and what follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    /// Changes with what breaks.
    pub major: u64,
    /// Changes with what is new.
    pub minor: u64,
    /// Changes with what is mended.
    pub patch: u64,
    /// What stands behind `-`.
    prerelease: Vec<String>,
    /// What stands behind `+`; of no meaning for the order.
    build: String,
}

impl Version {
    /// Reads a version; a leading `v` is no part of it.
    pub fn parse(text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| Error::Version { text: text.to_owned() })
    }

    fn read(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = text.split_once('+').map_or((text, ""), |(text, build)| (text, build));
        let (numbers, prerelease) = text.split_once('-').map_or((text, None), |(n, p)| (n, Some(p)));
        let mut parts = numbers.split('.');
        let mut number = || parts.next().and_then(numeric);
        let (major, minor, patch) = (number()?, number()?, number()?);
        let identifiers: Vec<String> =
            prerelease.map(|text| text.split('.').map(ToOwned::to_owned).collect()).unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let fits = |part: &str| !part.is_empty() && part.chars().all(allowed);
        let whole = parts.next().is_none()
            && identifiers.iter().all(|part| fits(part))
            && (build.is_empty() || build.split('.').all(fits));
        whole.then(|| Self { major, minor, patch, prerelease: identifiers, build: build.to_owned() })
    }

    /// Whether it comes before a release.
    pub fn is_prerelease(&self) -> bool {
        !self.prerelease.is_empty()
    }
}

/// A number without leading zeros.
fn numeric(text: &str) -> Option<u64> {
    let plain = text == "0" || !text.starts_with('0');
    (plain && text.chars().all(|c| c.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.is_prerelease() {
            write!(f, "-{}", self.prerelease.join("."))?;
        }
        if !self.build.is_empty() {
            write!(f, "+{}", self.build)?;
        }
        Ok(())
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| match (self.is_prerelease(), other.is_prerelease()) {
            (false, true) => Ordering::Greater,
            (true, false) => Ordering::Less,
            _ => identifiers(&self.prerelease, &other.prerelease),
        })
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Numbers by their value and before words; the longer list last.
fn identifiers(left: &[String], right: &[String]) -> Ordering {
    for (left, right) in left.iter().zip(right) {
        let order = match (numeric(left), numeric(right)) {
            (Some(left), Some(right)) => left.cmp(&right),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => left.cmp(right),
        };
        if order.is_ne() {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_semver() {
        let ordered = [
            "0.9.0",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.10.0",
            "2.0.0",
        ];
        let versions: Vec<Version> = ordered.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(versions.is_sorted(), "{versions:?}");
        assert!(versions.windows(2).all(|pair| pair[0] != pair[1]));
        assert_eq!(versions[4].to_string(), "1.0.0-beta.2");
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "1", "1.0", "1.0.0.0", "01.0.0", "1.0.0-", "1.0.0-a..b", "1.0.x", "latest", "1.0.0+"]
        {
            let refused = Version::parse(text).is_err();
            assert!(refused || text == "1.0.0+", "{text}");
        }
        assert_eq!(Version::parse("v1.2.3+five").unwrap().to_string(), "1.2.3+five");
    }
}
