//! The programs on this machine: the toolchain, its registry, kubectl, a debugger, and room on the disk.

use std::path::Path;

use futures::FutureExt;
use serde_json::Value;

use super::{Check, said, together};
use crate::{
    commands::KUBERNETES,
    error::Explained as _,
    operator::debugger::{Debugger, find_in},
    project::{Project, build::cargo},
};

/// The oldest compiler that builds Windlass.
const OLDEST: &str = env!("CARGO_PKG_RUST_VERSION");

/// What a build needs on the disk: it takes a few GiB, and one that fills it up leaves a mess.
const LITTLE: u64 = 5;
const TOO_LITTLE: u64 = 1;

pub(super) async fn checks(folder: &Path, project: Option<&Project>) -> Vec<Check> {
    let mut checks = vec![
        rustc(folder).map(Some).boxed(),
        cargo_version(folder).map(Some).boxed(),
        component(folder, "clippy").map(Some).boxed(),
        component(folder, "fmt").map(Some).boxed(),
        linker(folder).boxed(),
        disk(folder).boxed(),
        kubectl(folder).map(Some).boxed(),
        std::future::ready(Some(debugger())).boxed(),
    ];
    if project.is_some() {
        checks.push(targets(folder).boxed());
        checks.push(crates(folder).map(Some).boxed());
    }
    together(checks).await
}

async fn rustc(folder: &Path) -> Check {
    const NAME: &str = "rustc";
    let version = match said("rustc", &["--version"], folder).await {
        Ok(version) => version,
        Err(why) => return Check::fail(NAME, why, "install Rust from https://rustup.rs"),
    };
    let number = version.split_whitespace().nth(1).unwrap_or_default().to_owned();
    if numbers(&number) < numbers(OLDEST) {
        return Check::fail(NAME, format!("{number} is older than {OLDEST}"), "rustup update");
    }
    match pinned(folder) {
        Some(channel)
            if channel.starts_with(|c: char| c.is_ascii_digit()) && !number.starts_with(&channel) =>
        {
            Check::warn(
                NAME,
                format!("{number}, and rust-toolchain.toml wants {channel}"),
                "unset RUSTUP_TOOLCHAIN, or install Rust from https://rustup.rs, which reads that file",
            )
        }
        Some(channel) => Check::ok(NAME, format!("{number}, as rust-toolchain.toml wants ({channel})")),
        None => Check::ok(NAME, number),
    }
}

/// The channel that a project wants.
fn pinned(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join("rust-toolchain.toml")).ok()?;
    let line = text.lines().map(str::trim).find(|line| line.starts_with("channel"))?;
    Some(line.split_once('=')?.1.trim().trim_matches('"').to_owned())
}

async fn cargo_version(folder: &Path) -> Check {
    match said(cargo(), &["--version"], folder).await {
        Ok(version) => Check::ok("cargo", version.trim_start_matches("cargo ").to_owned()),
        Err(why) => Check::fail("cargo", why, "install Rust from https://rustup.rs, or set CARGO"),
    }
}

async fn component(folder: &Path, name: &'static str) -> Check {
    let (shown, package) = if name == "fmt" { ("rustfmt", "rustfmt") } else { ("clippy", "clippy") };
    match said(cargo(), &[name, "--version"], folder).await {
        Ok(version) => Check::ok(shown, version),
        Err(_) => Check::warn(shown, "not installed", format!("rustup component add {package}")),
    }
}

async fn linker(folder: &Path) -> Option<Check> {
    if cfg!(windows) {
        // Found by the compiler in ways of its own.
        return None;
    }
    let fix = if cfg!(target_os = "macos") {
        "xcode-select --install"
    } else {
        "install a C compiler: `apt-get install gcc libc6-dev` (Debian, Ubuntu)"
    };
    Some(match said("cc", &["--version"], folder).await {
        Ok(version) => Check::ok("linker", version.lines().next().unwrap_or_default().to_owned()),
        Err(_) => Check::fail("linker", "cc is not there", fix),
    })
}

/// The targets that rust-toolchain.toml names.
async fn targets(folder: &Path) -> Option<Check> {
    let text = std::fs::read_to_string(folder.join("rust-toolchain.toml")).ok()?;
    let line = text.lines().map(str::trim).find(|line| line.starts_with("targets"))?;
    let list = line.split_once('[')?.1.split_once(']')?.0;
    let wanted: Vec<&str> =
        list.split(',').map(|name| name.trim().trim_matches('"')).filter(|name| !name.is_empty()).collect();
    let installed = said("rustup", &["target", "list", "--installed"], folder).await.ok()?;
    let missing: Vec<&str> =
        wanted.iter().copied().filter(|name| !installed.lines().any(|line| line == *name)).collect();
    Some(if missing.is_empty() {
        Check::ok("targets", wanted.join(", "))
    } else {
        let missing = missing.join(" ");
        Check::warn("targets", format!("not installed: {missing}"), format!("rustup target add {missing}"))
    })
}

/// Whether the project's crates are here, and if not, whether they could be had.
async fn crates(folder: &Path) -> Check {
    const NAME: &str = "crates";
    let offline = said(cargo(), &["fetch", "--offline", "--locked"], folder).await;
    if offline.is_ok() {
        return Check::ok(NAME, "all of Cargo.lock are here: it builds without a network");
    }
    match said(cargo(), &["info", "--quiet", "serde"], Path::new("/")).await {
        Ok(_) => Check::ok(NAME, "the registry is reachable, and some crates are still to be downloaded"),
        Err(why) => Check::fail(
            NAME,
            format!("some of Cargo.lock are not here, and the registry is not reachable: {why}"),
            "run `cargo fetch` with a network, or set a proxy in .cargo/config.toml",
        ),
    }
}

async fn disk(folder: &Path) -> Option<Check> {
    if cfg!(windows) {
        return None;
    }
    let table = said("df", &["-Pk", "."], folder).await.ok()?;
    let free: u64 = table.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
    let free = free / 1024 / 1024;
    let message = format!("{free} GiB free");
    let fix = "make room: `cargo clean` in projects that you do not build";
    Some(match free {
        0..TOO_LITTLE => Check::fail("disk", message, fix),
        TOO_LITTLE..LITTLE => Check::warn("disk", message, fix),
        _ => Check::ok("disk", message),
    })
}

async fn kubectl(folder: &Path) -> Check {
    const NAME: &str = "kubectl";
    let fix = "install it: https://kubernetes.io/docs/tasks/tools";
    let Ok(answer) = said("kubectl", &["version", "--client", "-o", "json"], folder).await else {
        return Check::warn(NAME, "not installed", fix);
    };
    let parsed: Value = serde_json::from_str(&answer).unwrap_or_default();
    let version = parsed.pointer("/clientVersion/gitVersion").and_then(Value::as_str).unwrap_or_default();
    match skew(version, KUBERNETES) {
        Some(0 | 1) => Check::ok(NAME, version.to_owned()),
        Some(_) => {
            Check::warn(NAME, format!("{version}, more than one minor version from {KUBERNETES}"), fix)
        }
        None => Check::warn(NAME, format!("{version:?} is no version"), fix),
    }
}

/// How many minor versions lie between two versions.
pub(super) fn skew(one: &str, other: &str) -> Option<u64> {
    let minor = |version: &str| numbers(version).get(1).copied();
    Some(minor(one)?.abs_diff(minor(other)?))
}

/// `v1.37.1-rc.1` as numbers.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.trim_start_matches('v').split(['-', '+']).next().unwrap_or_default();
    plain.split('.').map_while(|number| number.parse().ok()).collect()
}

fn debugger() -> Check {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let client = ["lldb", "gdb"].into_iter().find(|name| find_in(&path, name).is_some());
    let address = ([127, 0, 0, 1], 2345).into();
    match (Debugger::find(address), client) {
        (Ok(found), Some(client)) => Check::ok("debugger", format!("{}, {client}", found.program.display())),
        (Ok(found), None) => Check::ok("debugger", format!("{}, for an editor", found.program.display())),
        (Err(error), _) => {
            Check::warn("debugger", "no lldb-server and no gdbserver", error.hint().unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(numbers("v1.37.1-rc.1+x"), [1, 37, 1]);
        assert!(numbers("1.100.0") > numbers("1.95") && numbers("1.95.0") >= numbers("1.95"));
        assert_eq!(
            (skew("v1.36.2", "1.37"), skew("v1.33.0", "1.37"), skew("x", "1.37")),
            (Some(1), Some(4), None)
        );
    }

    #[test]
    fn the_channel_of_a_project_is_read() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(pinned(folder.path()), None);
        std::fs::write(folder.path().join("rust-toolchain.toml"), "[toolchain]\nchannel = \"1.95.0\"\n")
            .unwrap();
        assert_eq!(pinned(folder.path()).as_deref(), Some("1.95.0"));
    }
}
