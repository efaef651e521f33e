//! Which names are valid, and why others are not, in Kubernetes' own words.
//!
//! | Rule | For |
//! |---|---|
//! | [`dns1123_subdomain`] | most objects, API groups, the prefix of a label's key |
//! | [`dns1123_label`] | namespaces, containers, and whatever becomes one part of a host name |
//! | [`dns1035_label`] | Services of old, and names that must begin with a letter |
//! | [`path_segment`] | roles, and whatever only has to fit into a path |
//! | [`qualified_name`] | keys of labels and annotations, finalizers, conditions, resources |
//! | [`label_value`] | values of labels |
//!
//! Each function returns what is wrong, in the order in which Kubernetes says it, and an empty list for a valid name:
//!
//! ```
//! use windlass_apimachinery::names;
//!
//! assert!(names::dns1123_label("web-1").is_empty());
//! assert!(names::dns1123_label("Web")[0].starts_with("a lowercase RFC 1123 label must consist of"));
//! assert!(names::is_dns1123_label("1web") && !names::is_dns1035_label("1web"));
//! ```

/// The longest DNS label, label value, and name part of a qualified name.
pub const LABEL_LENGTH: usize = 63;
/// The longest DNS subdomain.
pub const SUBDOMAIN_LENGTH: usize = 253;

/// What is wrong with a name that is to be an RFC 1123 subdomain.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    checked(name, SUBDOMAIN_LENGTH, name.split('.').all(is_lower_label), || {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
    })
}

/// What is wrong with a name that is to be an RFC 1123 label.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let dotted = name.contains('.') && name.split('.').all(is_lower_label);
    checked(name, LABEL_LENGTH, is_lower_label(name), || {
        if dotted {
            // A subdomain but for its length, which has been said.
            return "must not contain dots";
        }
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
         end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    })
}

/// What is wrong with a name that is to be an RFC 1035 label.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let valid = is_lower_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase());
    checked(name, LABEL_LENGTH, valid, || {
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
         character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
         validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
    })
}

/// What is wrong with a name that is to be one segment of a path.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let wrong = ['/', '%'].into_iter().filter(|part| name.contains(*part));
    wrong.map(|part| format!("may not contain '{part}'")).collect()
}

/// What is wrong with a name that is to be qualified or not: `name`, or `example.com/name`.
pub fn qualified_name(name: &str) -> Vec<String> {
    let (prefix, part) = match name.split('/').collect::<Vec<_>>()[..] {
        [part] => (None, part),
        [prefix, part] => (Some(prefix), part),
        _ => {
            let why = "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and \
                       end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                       validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix \
                       and '/' (e.g. 'example.com/MyName')";
            return vec![why.to_owned()];
        }
    };
    let mut errors = Vec::new();
    match prefix {
        Some("") => errors.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            errors.extend(dns1123_subdomain(prefix).iter().map(|why| format!("prefix part {why}")));
        }
        None => {}
    }
    if part.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if part.len() > LABEL_LENGTH {
        errors.push(format!("name part {}", too_long(LABEL_LENGTH)));
    }
    if !is_name_part(part) {
        let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                   alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                   '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        errors.push(why.to_owned());
    }
    errors
}

/// What is wrong with a text that is to be the value of a label.
pub fn label_value(value: &str) -> Vec<String> {
    checked(value, LABEL_LENGTH, value.is_empty() || is_name_part(value), || {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
         start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
         validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
    })
}

/// Whether a name is an RFC 1123 subdomain.
pub fn is_dns1123_subdomain(name: &str) -> bool {
    name.len() <= SUBDOMAIN_LENGTH && name.split('.').all(is_lower_label)
}

/// Whether a name is an RFC 1123 label.
pub fn is_dns1123_label(name: &str) -> bool {
    name.len() <= LABEL_LENGTH && is_lower_label(name)
}

/// Whether a name is an RFC 1035 label.
pub fn is_dns1035_label(name: &str) -> bool {
    is_dns1123_label(name) && name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// Whether a name is a qualified one, with or without a prefix.
pub fn is_qualified_name(name: &str) -> bool {
    qualified_name(name).is_empty()
}

/// Whether a text can be the value of a label.
pub fn is_label_value(value: &str) -> bool {
    value.len() <= LABEL_LENGTH && (value.is_empty() || is_name_part(value))
}

fn checked(name: &str, most: usize, valid: bool, why: impl Fn() -> &'static str) -> Vec<String> {
    let long = (name.len() > most).then(|| too_long(most));
    long.into_iter().chain((!valid).then(|| why().to_owned())).collect()
}

fn too_long(length: usize) -> String {
    format!("must be no more than {length} bytes")
}

/// Lower-case letters and digits, with hyphens between them.
fn is_lower_label(text: &str) -> bool {
    let end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_made_of(text, end, |byte| end(byte) || *byte == b'-')
}

/// Letters and digits, with `-`, `_` and `.` between them.
fn is_name_part(text: &str) -> bool {
    is_made_of(text, u8::is_ascii_alphanumeric, |byte| byte.is_ascii_alphanumeric() || b"-_.".contains(byte))
}

fn is_made_of(text: &str, end: impl Fn(&u8) -> bool, inner: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&end) && bytes.last().is_some_and(&end) && bytes.iter().all(inner)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_that_is_wrong_is_said_the_length_first() {
        let long = format!("{}_", "x".repeat(LABEL_LENGTH));
        let said = dns1123_label(&long);
        assert_eq!(said.len(), 2, "{said:?}");
        assert_eq!(said[0], "must be no more than 63 bytes");
        assert_eq!(
            qualified_name("/"),
            [
                "prefix part must be non-empty",
                "name part must be non-empty",
                qualified_name("-").first().unwrap(),
            ]
        );
        assert!(qualified_name("a/b/c")[0].starts_with("a valid label key"));
        assert_eq!(path_segment("a%b").len(), 1);
    }

    /// Texts near the border between valid and not.
    fn some_name() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-zA-Z0-9._/-]{0,12}",
            "[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?(\\.[a-z0-9]{1,3}){0,2}",
            "[a-z]{62,64}",
            "[a-z.]{252,254}",
            "[a-z.]{0,5}/[A-Za-z._]{0,5}",
            "\\PC{0,6}",
        ]
    }

    proptest! {
        #[test]
        fn the_short_question_has_the_answer_of_the_long_one(name in some_name()) {
            prop_assert_eq!(is_dns1123_subdomain(&name), dns1123_subdomain(&name).is_empty());
            prop_assert_eq!(is_dns1123_label(&name), dns1123_label(&name).is_empty());
            prop_assert_eq!(is_dns1035_label(&name), dns1035_label(&name).is_empty());
            prop_assert_eq!(is_label_value(&name), label_value(&name).is_empty());
        }

        #[test]
        fn the_rules_contain_each_other(name in some_name()) {
            prop_assert!(!is_dns1035_label(&name) || is_dns1123_label(&name));
            prop_assert!(!is_dns1123_label(&name) || is_dns1123_subdomain(&name));
            prop_assert!(!is_dns1123_label(&name) || is_label_value(&name));
            prop_assert!(name.is_empty() || name.contains('/') || is_label_value(&name) == is_qualified_name(&name));
        }

        #[test]
        fn subdomains_are_labels_with_points(parts in prop::collection::vec("[a-z0-9]{1,9}", 1..4)) {
            prop_assert!(is_dns1123_subdomain(&parts.join(".")));
            let ends_in_a_point = parts.join(".") + ".";
            prop_assert!(!is_dns1123_subdomain(&ends_in_a_point));
        }
    }
}
