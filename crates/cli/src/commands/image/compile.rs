//! A static program for Linux, whatever this machine is: `cargo build` for a musl target.
//!
//! Rust brings the C library and the start-up code of these targets along. What is still needed is a linker, and a
//! compiler for what crates have in C: for this machine's own architecture those that Rust itself uses, for another one
//! cargo-zigbuild, or else the linker that comes with Rust, and clang.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;
use windlass_image::Platform;

use super::{Error, package::Package};
use crate::{
    operator::debugger::find_in,
    project::{self, build::cargo, build::program_in},
};

/// How a program of another architecture is linked.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Linking {
    /// As cargo is configured, or as on this machine.
    Usual { compiler: Option<&'static str> },
    /// By cargo-zigbuild.
    Zig(PathBuf),
    /// By the linker that comes with Rust.
    Lld { clang: Option<PathBuf> },
}

/// Builds a package's program, and returns where it is.
pub(super) async fn compile(package: &Package, platform: &Platform, profile: &str) -> Result<PathBuf, Error> {
    let target = platform.rust_target();
    installed(package, platform).await?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let linking = linking(target, &path, |name| std::env::var_os(name));
    let mut command = command(package, target, profile, &linking);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).kill_on_drop(true);
    let failed = |source| project::Error::NoCargo { program: cargo(), source };
    let output = command.spawn().map_err(failed)?.wait_with_output().await.map_err(failed)?;
    if !output.status.success() {
        let foreign = matches!(linking, Linking::Lld { .. });
        return Err(Error::Build { platform: platform.clone(), status: output.status, foreign });
    }
    Ok(program_in(&package.program, &String::from_utf8_lossy(&output.stdout))?)
}

/// Whether Rust's standard library for the target is there: cargo would say so once for every crate.
async fn installed(package: &Package, platform: &Platform) -> Result<(), Error> {
    let target = platform.rust_target();
    let rustc = std::env::var_os("RUSTC").filter(|path| !path.is_empty()).unwrap_or_else(|| "rustc".into());
    let mut command = Command::new(rustc);
    command.args(["--print", "target-libdir", "--target", target]).current_dir(&package.root);
    // A compiler that cannot be asked will say why when it is to build.
    let Ok(output) = command.stdin(Stdio::null()).output().await else { return Ok(()) };
    let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() && !Path::new(&folder).is_dir() {
        return Err(Error::NoTarget { platform: platform.clone(), target });
    }
    Ok(())
}

fn linking(target: &str, path: &OsStr, variable: impl Fn(&str) -> Option<OsString>) -> Linking {
    let there = |name: &str| find_in(path, name);
    let upper = target.replace('-', "_").to_ascii_uppercase();
    if variable(&format!("CARGO_TARGET_{upper}_LINKER")).is_some() {
        return Linking::Usual { compiler: None };
    }
    let architecture = target.split('-').next().unwrap_or_default();
    if cfg!(target_os = "linux") && std::env::consts::ARCH == architecture {
        // Crates look for a compiler of musl's own, which most machines have not; any other does for what is built
        // without its headers' help, as all that an operator needs is.
        let lower = target.replace('-', "_");
        let chosen = ["CC", "TARGET_CC", &format!("CC_{lower}"), &format!("CC_{target}")]
            .into_iter()
            .any(|name| variable(name).is_some());
        let musl = there("musl-gcc").or_else(|| there(&format!("{architecture}-linux-musl-gcc"))).is_some();
        return Linking::Usual { compiler: (!chosen && !musl).then_some("cc") };
    }
    match there("cargo-zigbuild") {
        Some(program) => Linking::Zig(program),
        None => Linking::Lld { clang: there("clang") },
    }
}

fn command(package: &Package, target: &str, profile: &str, linking: &Linking) -> Command {
    let mut command = match linking {
        Linking::Zig(program) => {
            let mut command = Command::new(program);
            command.arg("zigbuild").env("CARGO", cargo());
            command
        }
        _ => {
            let mut command = Command::new(cargo());
            command.arg("build");
            command
        }
    };
    command.args(["--message-format=json-render-diagnostics", "--package", &package.name]);
    command.args(["--bin", &package.program, "--target", target, "--profile", profile]);
    command.current_dir(&package.root);
    let lower = target.replace('-', "_");
    match linking {
        Linking::Usual { compiler: Some(compiler) } => {
            command.env(format!("CC_{lower}"), compiler);
        }
        Linking::Lld { clang } => {
            command.env(format!("CARGO_TARGET_{}_LINKER", lower.to_ascii_uppercase()), "rust-lld");
            if let Some(clang) = clang {
                command.env(format!("CC_{lower}"), clang);
            }
        }
        _ => {}
    }
    remap(&mut command, package, target);
    command
}

/// Paths of this machine stay out of the program: the same sources give the same bytes wherever they lie.
fn remap(command: &mut Command, package: &Package, target: &str) {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
    let mut flags: Vec<String> = Vec::new();
    flags.extend(home.map(|home| format!("--remap-path-prefix={}=/cargo", home.display())));
    flags.push(format!("--remap-path-prefix={}=/src", package.root.display()));
    // Cargo takes flags from one place alone, so ours go to where the user's are.
    if let Ok(given) = std::env::var("CARGO_ENCODED_RUSTFLAGS") {
        command.env("CARGO_ENCODED_RUSTFLAGS", [given, flags.join("\x1f")].join("\x1f"));
    } else if let Ok(given) = std::env::var("RUSTFLAGS") {
        let given = given.split_whitespace().map(str::to_owned);
        command.env("CARGO_ENCODED_RUSTFLAGS", given.chain(flags).collect::<Vec<_>>().join("\x1f"));
    } else {
        let list: Vec<String> = flags.iter().map(|flag| format!("{flag:?}")).collect();
        command.args(["--config", &format!("target.{target}.rustflags=[{}]", list.join(","))]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARM: &str = "aarch64-unknown-linux-musl";
    const INTEL: &str = "x86_64-unknown-linux-musl";

    fn foreign() -> &'static str {
        if std::env::consts::ARCH == "aarch64" { INTEL } else { ARM }
    }

    #[test]
    fn another_architecture_is_linked_by_zig_or_by_what_comes_with_rust() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(linking(foreign(), path, |_| None), Linking::Lld { clang: None });
        let program = |name: &str| folder.path().join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        std::fs::write(program("clang"), "").unwrap();
        assert_eq!(linking(foreign(), path, |_| None), Linking::Lld { clang: Some(program("clang")) });
        std::fs::write(program("cargo-zigbuild"), "").unwrap();
        assert_eq!(linking(foreign(), path, |_| None), Linking::Zig(program("cargo-zigbuild")));
    }

    #[test]
    fn a_linker_of_the_users_own_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let set =
            |name: &str| (name == "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER").then(|| "ld".into());
        assert_eq!(linking(ARM, folder.path().as_os_str(), set), Linking::Usual { compiler: None });
    }

    #[test]
    #[cfg(any(
        all(target_os = "linux", target_arch = "x86_64"),
        all(target_os = "linux", target_arch = "aarch64")
    ))]
    fn this_machines_architecture_needs_no_compiler_of_musl() {
        let own = if foreign() == ARM { INTEL } else { ARM };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().as_os_str();
        assert_eq!(linking(own, path, |_| None), Linking::Usual { compiler: Some("cc") });
        let set = |name: &str| (name == "CC").then(|| "gcc".into());
        assert_eq!(linking(own, path, set), Linking::Usual { compiler: None });
        std::fs::write(folder.path().join("musl-gcc"), "").unwrap();
        assert_eq!(linking(own, path, |_| None), Linking::Usual { compiler: None });
    }
}
