//! What the labels of a namespace demand.

use std::fmt;

use serde_json::json;

use crate::error::Cause;

const PREFIX: &str = "pod-security.kubernetes.io/";

/// How much a Pod may do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Everything.
    #[default]
    Privileged,
    /// Nothing that is known to lead out of a container.
    Baseline,
    /// What good practice allows.
    Restricted,
}

/// The minor version whose rules are meant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Version {
    /// The newest.
    #[default]
    Latest,
    /// That of 1.x.
    Minor(u32),
}

/// A level in a version.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) level: Level,
    pub(super) version: Version,
}

impl Bound {
    /// Whether a rule that came with 1.x is among the rules.
    pub(super) fn since(self, minor: u32) -> bool {
        match self.version {
            Version::Latest => true,
            Version::Minor(own) => own >= minor,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Latest => write!(formatter, "{level}:latest"),
            Version::Minor(minor) => write!(formatter, "{level}:v1.{minor}"),
        }
    }
}

/// What a namespace demands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) enforce: Bound,
    pub(super) audit: Bound,
    pub(super) warn: Bound,
}

impl Policy {
    /// Whether nothing is demanded.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|bound| bound.level == Level::Privileged)
    }

    /// Reads labels. What makes no sense is told, and taken for strict where it is enforced.
    pub(super) fn read<'a>(labels: impl Iterator<Item = (&'a str, &'a str)>) -> (Self, Vec<Cause>) {
        let own: Vec<(&str, &str)> =
            labels.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?, value))).collect();
        let label = |name: &str| own.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        let mut wrong = Vec::new();
        let mut bound = |mode: &str, otherwise: Level| {
            let level = label(mode).map(|text| (text, level(text)));
            if let Some((text, None)) = level {
                let why = "must be one of privileged, baseline, restricted";
                wrong.push(Cause::invalid(format!("metadata.labels[{PREFIX}{mode}]"), &json!(text), why));
            }
            let key = format!("{mode}-version");
            let version = label(&key).map(|text| (text, version(text)));
            if let Some((text, None)) = version {
                let why = "must be \"latest\" or \"v1.x\"";
                wrong.push(Cause::invalid(format!("metadata.labels[{PREFIX}{key}]"), &json!(text), why));
            }
            Bound {
                level: level.map_or(Level::Privileged, |(_, level)| level.unwrap_or(otherwise)),
                version: version.and_then(|(_, version)| version).unwrap_or_default(),
            }
        };
        let mut policy = Self {
            enforce: bound("enforce", Level::Restricted),
            audit: bound("audit", Level::Privileged),
            warn: bound("warn", Level::Privileged),
        };
        // Who is to be refused is to be warned as well.
        let said = label("enforce").and_then(level).is_some();
        if said && label("warn").is_none() && policy.enforce.level > policy.warn.level {
            policy.warn.level = policy.enforce.level;
            if label("warn-version").is_none() {
                policy.warn.version = policy.enforce.version;
            }
        }
        (policy, wrong)
    }
}

fn level(text: &str) -> Option<Level> {
    match text {
        "privileged" => Some(Level::Privileged),
        "baseline" => Some(Level::Baseline),
        "restricted" => Some(Level::Restricted),
        _ => None,
    }
}

fn version(text: &str) -> Option<Version> {
    if text == "latest" {
        return Some(Version::Latest);
    }
    let minor = text.strip_prefix("v1.")?;
    let plain = minor.bytes().all(|byte| byte.is_ascii_digit()) && (minor == "0" || !minor.starts_with('0'));
    minor.parse().ok().filter(|_| plain).map(Version::Minor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_enforced_is_warned_of() {
        let labels = [("pod-security.kubernetes.io/enforce", "baseline"), ("other", "x")];
        let (policy, wrong) = Policy::read(labels.into_iter());
        assert!(wrong.is_empty());
        assert_eq!(policy.warn.to_string(), "baseline:latest");
        assert_eq!(policy.audit.level, Level::Privileged);
    }

    #[test]
    fn nonsense_is_strict_where_enforced() {
        let labels = [
            ("pod-security.kubernetes.io/enforce", "odd"),
            ("pod-security.kubernetes.io/warn", "odd"),
            ("pod-security.kubernetes.io/warn-version", "v1.07"),
        ];
        let (policy, wrong) = Policy::read(labels.into_iter());
        assert_eq!((policy.enforce.level, policy.warn.level), (Level::Restricted, Level::Privileged));
        assert_eq!(wrong.len(), 3);
    }
}
