//! What a registry wants to be told about who asks: the header `WWW-Authenticate`, read.

/// A way to say who one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// With a name and a password in every request.
    Basic,
    /// With a token of somebody else's.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

impl Challenge {
    /// The best of what a registry offers in its headers: a token, rather than a password in every request.
    pub(super) fn best<'a>(headers: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let all: Vec<Self> = headers.into_iter().flat_map(parse).collect();
        let bearer = all.iter().position(|one| matches!(one, Self::Bearer { .. }));
        all.get(bearer.unwrap_or(0)).cloned()
    }
}

/// The challenges of one header: schemes, each with parameters between commas.
fn parse(header: &str) -> Vec<Challenge> {
    let mut found: Vec<(String, Vec<(String, String)>)> = Vec::new();
    let mut rest = header.trim_start();
    while !rest.is_empty() {
        let end = rest.find([' ', '=', ',']).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if let Some(value) = behind.strip_prefix('=') {
            let (value, behind) = unquoted(value);
            if let Some((_, parameters)) = found.last_mut() {
                parameters.push((word.to_ascii_lowercase(), value));
            }
            rest = behind;
        } else {
            if !word.is_empty() {
                found.push((word.to_ascii_lowercase(), Vec::new()));
            }
            rest = behind;
        }
        rest = rest.trim_start_matches([' ', ',', '\t']);
    }
    found.into_iter().filter_map(|(scheme, parameters)| known(&scheme, &parameters)).collect()
}

fn known(scheme: &str, parameters: &[(String, String)]) -> Option<Challenge> {
    let parameter =
        |name: &str| parameters.iter().find(|(found, _)| found == name).map(|(_, value)| value.clone());
    match scheme {
        "basic" => Some(Challenge::Basic),
        "bearer" => Some(Challenge::Bearer {
            realm: parameter("realm")?,
            service: parameter("service"),
            scope: parameter("scope"),
        }),
        _ => None,
    }
}

/// A value, with quotes or without, and what is behind it.
fn unquoted(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            char => value.push(char),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_challenges_of_real_registries_are_understood() {
        assert_eq!(Challenge::best([r#"Basic realm="Registry Realm""#]), Some(Challenge::Basic));
        let docker = r#"Bearer realm="https://auth.docker.io/token",service="registry.docker.io",scope="repository:a/b:pull,push""#;
        assert_eq!(
            Challenge::best([docker]),
            Some(Challenge::Bearer {
                realm: "https://auth.docker.io/token".into(),
                service: Some("registry.docker.io".into()),
                scope: Some("repository:a/b:pull,push".into()),
            })
        );
        let both = [r#"Basic realm="x", Bearer realm="https://t""#];
        assert_eq!(
            Challenge::best(both),
            Some(Challenge::Bearer { realm: "https://t".into(), service: None, scope: None })
        );
        assert_eq!(Challenge::best(["Negotiate", r"BASIC"]), Some(Challenge::Basic));
        assert_eq!(Challenge::best(["Negotiate", "Bearer"]), None);
    }

    proptest! {
        #[test]
        fn no_header_is_too_odd(header in "\\PC{0,60}") {
            let _ = Challenge::best([header.as_str()]);
        }

        #[test]
        fn a_realm_comes_back_whatever_is_in_it(realm in "[ -~]{1,30}") {
            let quoted = realm.replace('\\', "\\\\").replace('"', "\\\"");
            let header = format!("Bearer realm=\"{quoted}\",service=\"s\"");
            let expected = Challenge::Bearer { realm, service: Some("s".into()), scope: None };
            prop_assert_eq!(Challenge::best([header.as_str()]), Some(expected));
        }
    }
}
