//! Names that people give: of a project, a domain, a group, a version, a kind. A text comes in, a name that everything
//! downstream can bear leaves, or one line that says what to write instead.

use std::fmt;

pub use crate::plural::plural;

#[cfg(test)]
mod tests;

/// A name that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} {given:?} {problem}")]
pub struct NameError {
    what: &'static str,
    given: String,
    problem: String,
    hint: String,
}

impl NameError {
    fn new(what: &'static str, given: &str, problem: impl fmt::Display, hint: impl fmt::Display) -> Self {
        Self { what, given: given.to_owned(), problem: problem.to_string(), hint: hint.to_string() }
    }

    /// What to write instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// Words that Rust keeps for itself, in lower case, or that would hide a crate which generated code uses.
const TAKEN_MODULES: &[&str] = &[
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "crate",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "main",
    "lib",
    "std",
    "core",
    "alloc",
    "test",
    "windlass",
    "serde",
    "schemars",
    "tokio",
    "proptest",
    "operator",
    "register",
    "schema",
    "tests",
    "proc_macro",
    "windlass_cluster",
    "bool",
];

/// Names that generated code uses, or that every Rust file has: a kind of such a name would hide them.
const TAKEN_TYPES: &[&str] = &[
    "Action",
    "Any",
    "Api",
    "Applied",
    "Arc",
    "AsMut",
    "AsRef",
    "BTreeMap",
    "Box",
    "BoxedStrategy",
    "Capabilities",
    "Children",
    "Clone",
    "Condition",
    "ConfigMap",
    "Container",
    "ContainerPort",
    "Context",
    "Controller",
    "Conversion",
    "ConversionError",
    "Copy",
    "CustomResource",
    "CustomResourceDefinition",
    "CustomResourceExt",
    "Debug",
    "Default",
    "Defaulter",
    "Defaults",
    "DeleteParams",
    "Deployment",
    "DeploymentCondition",
    "DeploymentSpec",
    "Deserialize",
    "DoubleEndedIterator",
    "Drop",
    "Environment",
    "Eq",
    "Err",
    "Error",
    "Event",
    "ExactSizeIterator",
    "ExitCode",
    "Extend",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "FromIterator",
    "Hash",
    "IntOrString",
    "Into",
    "IntoIterator",
    "Iterator",
    "JsonSchema",
    "Just",
    "Kind",
    "LabelSelector",
    "ListParams",
    "Map",
    "None",
    "ObjectMeta",
    "Ok",
    "Operator",
    "Option",
    "Ord",
    "PartialEq",
    "PartialOrd",
    "Patch",
    "PatchParams",
    "Pod",
    "PodSecurityContext",
    "PodSpec",
    "PodTemplateSpec",
    "PostParams",
    "Probe",
    "Problem",
    "Reconciler",
    "Request",
    "ResourceExt",
    "Result",
    "Rules",
    "SeccompProfile",
    "SecurityContext",
    "Self",
    "Send",
    "Serialize",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "Sized",
    "Some",
    "Spec",
    "Spoke",
    "Status",
    "Strategy",
    "String",
    "Sync",
    "TCPSocketAction",
    "Timestamp",
    "ToOwned",
    "ToString",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Validator",
    "Value",
    "Vec",
    "Verdict",
];

/// A resource's name is a label of 63 characters, and a plural is a little longer than its kind.
const LONGEST_KIND: usize = 58;

fn is_label(text: &str) -> bool {
    let edge = |at: Option<char>| at.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.len() <= 63 && edge(text.chars().next()) && edge(text.chars().last()) && text.chars().all(inside)
}

/// What is left of a text when all that cannot be in a DNS label is gone: for hints.
fn as_label(text: &str) -> String {
    let mut label = String::new();
    for c in text.trim().chars() {
        match c {
            _ if c.is_ascii_alphanumeric() => label.push(c.to_ascii_lowercase()),
            _ if !label.ends_with('-') => label.push('-'),
            _ => {}
        }
    }
    label.truncate(63);
    label.trim_matches('-').to_owned()
}

/// The name of a project, which is also that of its package, its binary, its image and the prefix of its namespace.
pub fn project(name: &str) -> Result<(), NameError> {
    let fail = |problem: &str, hint: String| Err(NameError::new("the project name", name, problem, hint));
    // The namespace is the name with `-system`, and it too has 63 characters at most.
    const MOST: usize = 63 - "-system".len();
    if !is_label(name) || name.len() > MOST || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        let proposal = as_label(name);
        let proposal = proposal.trim_start_matches(|c: char| !c.is_ascii_lowercase()).to_owned();
        let example =
            if proposal.is_empty() { "memcached-operator" } else { &proposal[..proposal.len().min(MOST)] };
        return fail(
            "cannot be a package and a namespace",
            format!(
                "use at most {MOST} lower-case letters, digits and '-', starting with a letter: {}",
                example.trim_end_matches('-')
            ),
        );
    }
    if TAKEN_MODULES.contains(&name.replace('-', "_").as_str())
        || ["build", "deps", "examples", "incremental"].contains(&name)
    {
        return fail(
            "is a word that Rust or Cargo keeps for itself",
            format!("choose another, such as {name}-operator"),
        );
    }
    Ok(())
}

/// The domain that the API groups end with.
pub fn domain(domain: &str) -> Result<(), NameError> {
    let good = domain.len() <= 253 && domain.contains('.') && domain.split('.').all(is_label);
    if good {
        return Ok(());
    }
    let hint = "use a DNS name that is yours, in lower case with at least one dot, such as example.com";
    Err(NameError::new("the domain", domain, "is no DNS name", hint))
}

/// The group of a kind, without the domain. It may be empty: then the domain alone is the API group.
pub fn group(group: &str) -> Result<(), NameError> {
    if group.is_empty() || (group.len() <= 100 && group.split('.').all(is_label)) {
        return Ok(());
    }
    let proposal: Vec<String> = group.split('.').map(as_label).filter(|part| !part.is_empty()).collect();
    let example = if proposal.is_empty() { "cache".to_owned() } else { proposal.join(".") };
    let hint = format!("use lower-case letters, digits and '-': --group {example}");
    Err(NameError::new("the group", group, "cannot be part of a DNS name", hint))
}

/// A version: `v1`, `v1alpha1`, `v2beta3`.
pub fn version(version: &str) -> Result<(), NameError> {
    let number = |text: &str| {
        text.len() <= 4
            && !text.is_empty()
            && !text.starts_with('0')
            && text.chars().all(|c| c.is_ascii_digit())
    };
    let good = version.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"].iter().find_map(|stage| rest.split_once(stage));
        stage.map_or_else(|| number(rest), |(major, minor)| number(major) && number(minor))
    });
    if good {
        return Ok(());
    }
    let hint = "write v1, v1alpha1 or v1beta1, with other numbers if need be";
    Err(NameError::new("the version", version, "is none that Kubernetes orders", hint))
}

/// A kind: a type in Rust, and in lower case the name of a module and of a resource.
pub fn kind(kind: &str) -> Result<(), NameError> {
    let fail = |problem: &str, hint: String| Err(NameError::new("the kind", kind, problem, hint));
    let pascal = pascal_case(kind);
    let example = if pascal.is_empty() { "Memcached".to_owned() } else { pascal };
    let good =
        kind.starts_with(|c: char| c.is_ascii_uppercase()) && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !good {
        return fail(
            "is not in PascalCase",
            format!("write letters and digits, a capital first: --kind {example}"),
        );
    }
    if kind.len() > LONGEST_KIND {
        return fail("is too long for a resource", format!("use at most {LONGEST_KIND} letters"));
    }
    if TAKEN_TYPES.contains(&kind) {
        let hint = format!("choose another, such as --kind My{kind}");
        return fail("is the name of a type that its code needs", hint);
    }
    Ok(())
}

/// A kind that somebody else defines: its name is as it is, as long as Rust can write it.
pub fn external_kind(kind: &str) -> Result<(), NameError> {
    let good =
        kind.starts_with(|c: char| c.is_ascii_uppercase()) && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if good && kind.len() <= LONGEST_KIND && kind != "Self" {
        return Ok(());
    }
    let hint = "write it as `kubectl api-resources` does, such as --kind Deployment";
    Err(NameError::new("the kind", kind, "is none that Kubernetes has", hint))
}

/// A text in PascalCase: for hints.
fn pascal_case(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let joined: String = words.map(capital).collect();
    let mut kind = joined.trim_start_matches(|c: char| !c.is_ascii_uppercase()).to_owned();
    kind.truncate(LONGEST_KIND);
    if TAKEN_TYPES.contains(&kind.as_str()) { format!("My{kind}") } else { kind }
}

/// The plural of a kind, as a resource's name in URLs.
pub fn resource(plural: &str) -> Result<(), NameError> {
    if is_label(plural) && plural.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    let hint = format!(
        "use lower-case letters and digits: --plural {}",
        as_label(plural).trim_start_matches(|c: char| !c.is_ascii_lowercase())
    );
    Err(NameError::new("the plural", plural, "cannot be the name of a resource", hint))
}

/// A container image.
pub fn image(image: &str) -> Result<(), NameError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:@".contains(c);
    let good = image.chars().all(allowed)
        && image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.len() <= 500;
    if good {
        return Ok(());
    }
    let hint = "write it as in a Pod, such as --image nginx:1.29";
    Err(NameError::new("the image", image, "is no image reference", hint))
}

/// The name of the library: the project's, as Rust writes it.
pub fn library(project: &str) -> String {
    project.replace('-', "_")
}

/// The module of a kind. A word that Rust keeps for itself gets an underscore, as everywhere in Rust.
pub fn module(kind: &str) -> String {
    let module = kind.to_ascii_lowercase();
    if TAKEN_MODULES.contains(&module.as_str()) { module + "_" } else { module }
}
