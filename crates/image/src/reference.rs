//! Names of images, as docker and Kubernetes read them: `shop:1.2` is `docker.io/library/shop:1.2`.

use std::{fmt, str::FromStr};

use crate::Digest;

/// The registry of names that name none.
const DOCKER: &str = "docker.io";
const LONGEST_NAME: usize = 255;
const LONGEST_TAG: usize = 128;

/// The name of an image: a registry, a repository, and a tag or a digest or both.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

/// A text that is no name of an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no name of an image: {why}")]
pub struct InvalidReference {
    text: String,
    why: &'static str,
}

impl Reference {
    /// The host, and the port if one is given.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// The host that serves the registry's API, which for docker's is another one.
    pub fn api_host(&self) -> &str {
        if self.registry == DOCKER { "registry-1.docker.io" } else { &self.registry }
    }

    /// The path within the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; `latest` where neither a tag nor a digest is given.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest.
    pub fn digest(&self) -> Option<&Digest> {
        self.digest.as_ref()
    }

    /// The same image by its digest.
    #[must_use]
    pub fn with_digest(&self, digest: Digest) -> Self {
        Self { digest: Some(digest), ..self.clone() }
    }

    /// Registry and repository alone.
    pub fn name(&self) -> String {
        format!("{}/{}", self.registry, self.repository)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let wrong = |why| InvalidReference { text: text.to_owned(), why };
        if text.contains("://") {
            return Err(wrong("it begins with the host of a registry or with a path, not with a scheme"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => {
                let digest =
                    digest.parse().map_err(|_| wrong("behind the @ must be sha256: and 64 digits"))?;
                (rest, Some(digest))
            }
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong("a tag has letters, digits, `_`, `.` and `-`, at most 128 of them"));
        }
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if first.contains(['.', ':']) || first == "localhost" => (first, path),
            _ => (DOCKER, name),
        };
        let registry = if registry == "index.docker.io" { DOCKER } else { registry };
        if !is_host(registry) {
            return Err(wrong("before the first slash must be a host, and a port if it has one"));
        }
        let path =
            if registry == DOCKER && !path.contains('/') { format!("library/{path}") } else { path.into() };
        if registry.len() + 1 + path.len() > LONGEST_NAME {
            return Err(wrong("it is longer than 255 characters"));
        }
        if !path.split('/').all(is_component) {
            return Err(wrong(
                "a path has lower case letters and digits, with `.`, `_`, `__` or `-` between them",
            ));
        }
        let tag = tag.map(str::to_owned).or_else(|| digest.is_none().then(|| "latest".to_owned()));
        Ok(Self { registry: registry.to_owned(), repository: path, tag, digest })
    }
}

/// Lower case letters and digits, with separators between them.
fn is_component(part: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = part.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    if !is_word(*first) || !is_word(*last) {
        return false;
    }
    part.split(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
        .all(|between| matches!(between, "" | "." | "_" | "__") || between.bytes().all(|byte| byte == b'-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = tag.bytes();
    tag.len() <= LONGEST_TAG
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

/// A DNS name or an address, with a port or without.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, rest)) if address.parse::<std::net::Ipv6Addr>().is_ok() => {
            return rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        }
        Some(_) => return false,
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> String {
        text.parse::<Reference>().unwrap().to_string()
    }

    #[test]
    fn what_is_left_out_is_what_docker_says() {
        for (text, whole) in [
            ("shop", "docker.io/library/shop:latest"),
            ("shop:1.2", "docker.io/library/shop:1.2"),
            ("me/shop:1", "docker.io/me/shop:1"),
            ("index.docker.io/me/shop:1", "docker.io/me/shop:1"),
            ("example.com/shop", "example.com/shop:latest"),
            ("localhost/shop:1", "localhost/shop:1"),
            ("localhost:5000/a/b_c__d-e:V1_x", "localhost:5000/a/b_c__d-e:V1_x"),
            ("127.0.0.1:5000/shop", "127.0.0.1:5000/shop:latest"),
            ("[::1]:5000/shop:1", "[::1]:5000/shop:1"),
        ] {
            assert_eq!(parsed(text), whole);
        }
        assert_eq!("shop".parse::<Reference>().unwrap().api_host(), "registry-1.docker.io");
    }

    #[test]
    fn a_digest_takes_the_place_of_a_tag_or_stands_beside_it() {
        let digest = Digest::of(b"");
        let alone: Reference = format!("example.com/shop@{digest}").parse().unwrap();
        assert_eq!((alone.tag(), alone.digest()), (None, Some(&digest)));
        let both: Reference = format!("example.com/shop:1@{digest}").parse().unwrap();
        assert_eq!((both.tag(), both.digest()), (Some("1"), Some(&digest)));
    }

    #[test]
    fn what_no_registry_takes_is_refused_with_the_reason() {
        for (text, why) in [
            ("", "a path has"),
            ("Shop:1", "lower case"),
            ("https://example.com/shop", "not with a scheme"),
            ("example.com/shop:", "a tag has"),
            ("example.com/shop:-1", "a tag has"),
            ("example.com/-shop", "a path has"),
            ("example.com/a//b", "a path has"),
            ("example.com/a/../b", "a path has"),
            ("example.com/a___b", "a path has"),
            ("example.com:port/shop", "must be a host"),
            ("example.com:70000/shop", "must be a host"),
            ("-x.com/shop", "must be a host"),
            ("example.com/shop@sha256:1", "64 digits"),
        ] {
            let error = text.parse::<Reference>().unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert!(format!("example.com/{}", "a".repeat(250)).parse::<Reference>().is_err());
    }

    proptest! {
        #[test]
        fn a_name_is_read_back_from_what_it_is_written_as(
            registry in "([a-z0-9]{1,8}\\.[a-z]{2,3}|localhost|[0-9]{1,3}\\.0\\.0\\.1)(:[1-9][0-9]{0,3})?",
            path in "[a-z0-9]{1,9}([._-][a-z0-9]{1,5}){0,2}(/[a-z0-9]{1,9}(__|--)[a-z0-9]){0,2}",
            tag in proptest::option::of("[A-Za-z0-9_][A-Za-z0-9._-]{0,20}"),
            digest in proptest::option::of(any::<[u8; 4]>()),
        ) {
            let mut text = format!("{registry}/{path}");
            if let Some(tag) = &tag {
                text = format!("{text}:{tag}");
            }
            if let Some(content) = &digest {
                text = format!("{text}@{}", Digest::of(content));
            }
            let reference: Reference = text.parse().unwrap();
            prop_assert_eq!(reference.registry(), registry);
            prop_assert_eq!(reference.repository(), path);
            if tag.is_some() || digest.is_some() {
                prop_assert_eq!(reference.to_string(), text);
            }
            prop_assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
        }

        #[test]
        fn no_text_at_all_makes_a_name_that_leads_out_of_its_repository(text in "\\PC{0,40}") {
            if let Ok(reference) = text.parse::<Reference>() {
                prop_assert!(!reference.repository().contains(".."));
                let path = format!("/v2/{}/tags/list", reference.repository());
                prop_assert!(path.parse::<http::Uri>().is_ok());
                prop_assert_eq!(reference.to_string().parse::<Reference>().unwrap(), reference);
            }
        }
    }
}
