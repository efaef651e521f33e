//! The image of the operators: their own binary from this checkout, linked statically, and nothing else.
//!
//! Only the last step of the build is special: the libraries are those that the tests use, and only the program is
//! linked against a static C library. So the image costs one link when the tests were built before.

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::{Image, from_binary, write_file};
use crate::kubernetes::{layout, real_tests};

const PROGRAM: &str = "windlass-operators";
/// The tag that the generated manifests name.
const TAG: &str = concat!("docker.io/library/windlass-operators:", env!("CARGO_PKG_VERSION"));
/// Metrics, probes, webhooks.
const PORTS: [u16; 3] = [8443, 8081, 9443];

/// Builds the program and packs it; returns the archive.
pub(super) fn ensure() -> Result<PathBuf> {
    let directory = layout::cache_root()?.join("images");
    fs_err::create_dir_all(&directory)?;
    // Named after the process: two checkouts may build at the same time, and each loads its own.
    let archive = directory.join(format!("{PROGRAM}.{}.tar", std::process::id()));
    let image = Image { ports: PORTS.to_vec(), user: "65532".to_owned(), ..from_binary(&build()?, TAG)? };
    write_file(&archive, &[image])?;
    Ok(archive)
}

/// Removes an archive that has been loaded: another one costs little, and its content changes with the code.
pub(super) fn remove(archive: &Path) -> Result<()> {
    Ok(fs_err::remove_file(archive)?)
}

/// The program itself, linked statically.
pub(super) fn build() -> Result<PathBuf> {
    anstream::println!("building {PROGRAM}");
    let mut child = real_tests::cargo()
        .args(["rustc", "--package", PROGRAM, "--bin", PROGRAM, "--message-format=json-render-diagnostics"])
        .args(["--", "-C", "target-feature=+crt-static", "-C", "strip=symbols"])
        .stdout(Stdio::piped())
        .spawn()
        .context("failed to start `cargo rustc`")?;
    let output = child.stdout.take().context("failed to read from `cargo rustc`")?;
    let messages = serde_json::Deserializer::from_reader(BufReader::new(output)).into_iter();
    let mut program = None;
    for message in messages {
        let message: serde_json::Value = message.context("failed to read from `cargo rustc`")?;
        program = executable(&message).or(program);
    }
    let status = child.wait().context("failed to wait for `cargo rustc`")?;
    match program {
        Some(program) if status.success() => Ok(program),
        _ => bail!("failed to build {PROGRAM}: `cargo rustc` ended with {status}"),
    }
}

/// The program that a message of cargo tells of.
fn executable(message: &serde_json::Value) -> Option<PathBuf> {
    let ours = message["reason"] == "compiler-artifact" && message["target"]["name"] == PROGRAM;
    message["executable"].as_str().filter(|_| ours).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_program_is_the_one_that_cargo_names() {
        let artifact = |name: &str, executable: Option<&str>| json!({"reason": "compiler-artifact", "target": {"name": name}, "executable": executable});
        assert_eq!(executable(&artifact(PROGRAM, Some("/t/p"))), Some(PathBuf::from("/t/p")));
        assert_eq!(executable(&artifact(PROGRAM, None)), None);
        assert_eq!(executable(&artifact("other", Some("/t/o"))), None);
        assert_eq!(executable(&json!({"reason": "build-finished"})), None);
    }
}
