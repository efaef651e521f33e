//! Where a project's windlass comes from, as Cargo.toml says it.

use std::path::Path;

use minijinja::{Value, context};

use crate::Project;

/// The values of the dependencies in Cargo.toml, and what they are in words.
pub(super) fn dependencies(project: &Project) -> Value {
    let version = release();
    match &project.sdk {
        None => context! {
            windlass => format!("{version:?}"),
            cluster => format!("{version:?}"),
            is_path => false,
        },
        Some(url) if is_url(url) => {
            let from = format!("{{ git = {} }}", quoted(url));
            context! { windlass => from.clone(), cluster => from, is_path => false }
        }
        Some(path) => {
            let at = |name: &str| format!("{{ path = {} }}", quoted(&join(path, name)));
            context! { windlass => at("windlass"), cluster => at("cluster"), is_path => true }
        }
    }
}

/// The version of the SDK to ask for: as long as it begins with 0, the minor number says what fits.
pub(super) fn release() -> String {
    let mut numbers = env!("CARGO_PKG_VERSION").split('.');
    let (major, minor) = (numbers.next().unwrap_or("0"), numbers.next().unwrap_or("1"));
    if major == "0" { format!("0.{minor}") } else { major.to_owned() }
}

/// Whether an SDK is a repository rather than a folder.
pub(crate) fn is_url(sdk: &str) -> bool {
    sdk.contains("://") || sdk.starts_with("git@")
}

fn join(path: &str, name: &str) -> String {
    let joined = Path::new(path).join("crates").join(name);
    // Cargo reads forward slashes everywhere, and a backslash would be an escape.
    joined.to_string_lossy().replace('\\', "/")
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
