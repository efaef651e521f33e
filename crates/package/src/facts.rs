//! What a person says about an operator: who makes it, what it is for, which version this is.

use crate::{Error, Version};

/// What is told about an operator to those who choose and install it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// The name of the package: that of the chart, and the first part of the bundle's.
    pub name: String,
    /// The version, as MAJOR.MINOR.PATCH.
    pub version: String,
    /// The image of the operator.
    pub image: String,
    /// The namespace that the operator is meant for.
    pub namespace: String,
    /// The name for people; made from the name unless given.
    pub display_name: Option<String>,
    /// One sentence.
    pub description: String,
    /// Who provides the operator; its name for people unless given.
    pub provider: Option<String>,
    /// Who can be asked. None are invented.
    pub maintainers: Vec<Maintainer>,
    /// Where to read on.
    pub links: Vec<Link>,
    /// Words to find the operator by.
    pub keywords: Vec<String>,
    /// The licence, as SPDX writes it.
    pub license: Option<String>,
    /// A picture; the first letter of the name unless given.
    pub icon: Option<Icon>,
    /// The oldest Kubernetes that the operator works with, as MAJOR.MINOR.PATCH.
    pub min_kube_version: String,
    /// The categories of OperatorHub.
    pub categories: Vec<String>,
    /// The capability level of OperatorHub.
    pub capabilities: Option<String>,
    /// `alpha`, `beta`, `stable`; follows from the version unless given.
    pub maturity: Option<String>,
    /// The command that makes the files again.
    pub command: String,
}

/// Who can be asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintainer {
    /// The name.
    pub name: String,
    /// The address of mail, if any.
    pub email: Option<String>,
}

/// Where to read on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// What is there.
    pub name: String,
    /// Where it is.
    pub url: String,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Icon {
    /// `image/svg+xml`, `image/png`, `image/jpeg` or `image/gif`.
    pub media_type: String,
    /// The bytes of the file.
    pub data: Vec<u8>,
}

/// CRDs with rules in CEL are stable since this version.
const OLDEST: &str = "1.29.0";

impl Facts {
    /// What there must be; the rest is empty or follows from it.
    ///
    /// # Errors
    ///
    /// When the name or the version cannot be that of a chart and a bundle.
    pub fn new(name: impl Into<String>, version: &str, image: impl Into<String>) -> Result<Self, Error> {
        let (name, version) = (name.into(), Version::parse(version)?);
        if !is_label(&name) || name.len() > 50 {
            return Err(Error::Name { name, what: "the package" });
        }
        Ok(Self {
            namespace: format!("{name}-system"),
            name,
            version: version.to_string(),
            image: image.into(),
            min_kube_version: OLDEST.to_owned(),
            ..Self::default()
        })
    }

    /// The name for people: `memcached-operator` is "Memcached Operator".
    pub fn title(&self) -> String {
        self.display_name.clone().unwrap_or_else(|| words(&self.name))
    }

    /// Who provides the operator.
    pub(crate) fn provider(&self) -> String {
        self.provider.clone().unwrap_or_else(|| self.title())
    }

    pub(crate) fn sentence(&self) -> String {
        if self.description.is_empty() {
            format!("{} for Kubernetes", self.title())
        } else {
            self.description.clone()
        }
    }

    /// How far the operator is, by its version unless it is told.
    pub(crate) fn maturity(&self) -> String {
        let by_version = || match Version::parse(&self.version) {
            Ok(version) if version.is_prerelease() => "beta",
            Ok(version) if version.major > 0 => "stable",
            _ => "alpha",
        };
        self.maturity.clone().unwrap_or_else(|| by_version().to_owned())
    }
}

/// A name that is one part of a DNS name.
pub(crate) fn is_label(name: &str) -> bool {
    let ends = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inside = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    inside && ends(name.chars().next()) && ends(name.chars().last())
}

/// `memcached-operator` and `readyReplicas` in words that begin with a capital.
pub(crate) fn words(name: &str) -> String {
    let mut text = String::new();
    let mut last: Option<char> = None;
    let characters: Vec<char> = name.chars().collect();
    for (at, c) in characters.iter().enumerate() {
        let c = *c;
        if matches!(c, '-' | '_' | '.' | ' ') {
            last = None;
            continue;
        }
        let lower_follows = characters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        // `podCIDRList` is three words.
        let begins = match last {
            None => true,
            Some(last) => c.is_uppercase() && (last.is_lowercase() || last.is_ascii_digit() || lower_follows),
        };
        if begins && !text.is_empty() {
            text.push(' ');
        }
        if begins {
            text.extend(c.to_uppercase());
        } else {
            text.push(c);
        }
        last = Some(c);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        let cases = [
            ("memcached-operator", "Memcached Operator"),
            ("readyReplicas", "Ready Replicas"),
            ("podCIDRList", "Pod CIDR List"),
            ("WebServer", "Web Server"),
            ("PodManager", "Pod Manager"),
        ];
        for (name, expected) in cases {
            assert_eq!(words(name), expected);
        }
    }

    #[test]
    fn what_kubernetes_would_refuse_is_refused() {
        assert!(Facts::new("Shop", "1.0.0", "shop:1").is_err());
        assert!(Facts::new("shop", "1.0", "shop:1").is_err());
        assert!(Facts::new("shop", "v1.0.0", "shop:1").is_ok());
    }

    #[test]
    fn the_maturity_follows_from_the_version() {
        let of = |version: &str| Facts::new("shop", version, "shop:1").unwrap().maturity();
        assert_eq!([of("0.3.0"), of("1.0.0-rc.1"), of("1.0.0")], ["alpha", "beta", "stable"]);
    }
}
