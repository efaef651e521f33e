//! Builds the Kubernetes programs from the Go module in `xtask/testbed`, into the cache.
//!
//! Enter the programs wanted; leaves the directory that holds them. A program that is there is never built
//! again; one that is half-written never gets its final name.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::release::Release;
use super::{layout, requirements, state};

/// A Kubernetes program: its file name, the Go package that it is made from, and the `go` command that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: &'static str,
    package: &'static str,
    command: &'static [&'static str],
}

impl Program {
    fn is_borrowed(self) -> bool {
        ["etcd", "kubectl"].contains(&self.name)
    }
}

const fn program(name: &'static str, package: &'static str) -> Program {
    Program { name, package, command: &["build"] }
}

/// The programs of a control plane, kubectl among them.
pub(super) const CONTROL_PLANE: [Program; 5] = [
    program("etcd", "go.etcd.io/etcd/server/v3"),
    program("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    program("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    program("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    program("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
];

/// The programs of an API server alone, and kubectl.
pub(super) const API_SERVER: [Program; 3] = [CONTROL_PLANE[0], CONTROL_PLANE[1], CONTROL_PLANE[2]];

/// The programs of a control plane and a node.
pub(super) const ALL: [Program; 7] = [
    CONTROL_PLANE[0],
    CONTROL_PLANE[1],
    CONTROL_PLANE[2],
    CONTROL_PLANE[3],
    CONTROL_PLANE[4],
    program("kubelet", "k8s.io/kubernetes/cmd/kubelet"),
    program("kube-proxy", "k8s.io/kubernetes/cmd/kube-proxy"),
];

/// The end-to-end suite as a program, and the kubectl that it calls.
pub(super) const SUITE: [Program; 2] = [
    CONTROL_PLANE[2],
    Program { name: "e2e.test", package: "k8s.io/kubernetes/test/e2e", command: &["test", "-c", "-vet=off"] },
];

/// The programs among `wanted` that the cache does not hold.
pub(super) fn missing(directory: &Path, wanted: &[Program]) -> Vec<Program> {
    wanted.iter().filter(|program| !directory.join(program.name).is_file()).copied().collect()
}

/// Builds everything and starts nothing: for CI, and before a long journey.
pub(super) fn all(release: Release) -> Result<()> {
    let directory = ensure(release, &ALL)?;
    anstream::println!("Kubernetes {release} is in {}", directory.display());
    Ok(())
}

/// Makes sure that `wanted` are in the cache, and returns its directory.
///
/// etcd and kubectl of an older release are those of the newest: they are what a testbed is run with, not what is tested.
pub(super) fn ensure(release: Release, wanted: &[Program]) -> Result<PathBuf> {
    let directory = layout::binaries(release)?;
    if release != Release::Newest {
        let borrowed: Vec<Program> = wanted.iter().filter(|program| program.is_borrowed()).copied().collect();
        let newest = ensure(Release::Newest, &borrowed)?;
        fs::create_dir_all(&directory)?;
        for program in missing(&directory, &borrowed) {
            let linked = std::os::unix::fs::symlink(newest.join(program.name), directory.join(program.name));
            // Another checkout may have been quicker.
            if let Err(error) = linked.as_ref()
                && error.kind() != std::io::ErrorKind::AlreadyExists
            {
                linked.with_context(|| format!("failed to link {}", program.name))?;
            }
        }
    }
    if missing(&directory, wanted).is_empty() {
        return Ok(directory);
    }
    requirements::go()?;
    fs::create_dir_all(&directory)?;
    // Two checkouts share the cache: the second waits, then finds the work done.
    let _lock = state::lock(&directory.join(".lock"), "another build of the Kubernetes programs")?;
    let missing = missing(&directory, wanted);
    if missing.is_empty() {
        return Ok(directory);
    }
    anstream::println!(
        "building {} of Kubernetes {release}; the first build takes about ten minutes",
        names(&missing)
    );
    let begin = Instant::now();
    for (index, program) in missing.iter().enumerate() {
        anstream::print!("  [{}/{}] {} … ", index + 1, missing.len(), program.name);
        std::io::Write::flush(&mut std::io::stdout())?;
        let start = Instant::now();
        build(release, *program, &directory)?;
        anstream::println!("{} s", start.elapsed().as_secs());
    }
    anstream::println!("built in {} s", begin.elapsed().as_secs());
    Ok(directory)
}

fn build(release: Release, program: Program, directory: &Path) -> Result<()> {
    let unfinished = directory.join(format!(".{}.{}", program.name, std::process::id()));
    let built = Command::new("go")
        .current_dir(layout::go_module(release))
        .env("CGO_ENABLED", "0")
        .args(program.command)
        .args(["-mod=readonly", "-trimpath", "-ldflags", &link_flags(release.version()), "-o"])
        .arg(&unfinished)
        .arg(program.package)
        .stdin(Stdio::null())
        .output()
        .context("failed to start `go`")?;
    if !built.status.success() {
        // The file may not exist; what matters is go's own message.
        let _ = fs::remove_file(&unfinished);
        bail!("failed to build {}:\n{}", program.name, String::from_utf8_lossy(&built.stderr).trim_end());
    }
    fs::rename(&unfinished, directory.join(program.name))?;
    Ok(())
}

/// A release build's version stamp: without it clients see v0.0.0 and refuse some features.
fn link_flags(version: &str) -> String {
    let mut parts = version.split('.');
    let (major, minor) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let stamp = "k8s.io/component-base/version";
    format!("-s -w -X {stamp}.gitVersion=v{version} -X {stamp}.gitMajor={major} -X {stamp}.gitMinor={minor}")
}

fn names(programs: &[Program]) -> String {
    programs.iter().map(|program| program.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_absent_programs_are_missing() {
        let cache = tempfile::tempdir().unwrap();
        fs::write(cache.path().join("etcd"), "").unwrap();
        fs::write(cache.path().join(".kubectl.17"), "").unwrap();
        let missing = missing(cache.path(), &CONTROL_PLANE);
        assert_eq!(names(&missing), "kube-apiserver, kubectl, kube-controller-manager, kube-scheduler");
    }

    #[test]
    fn the_version_is_stamped_in_its_three_forms() {
        let flags = link_flags("1.37.1");
        for part in ["gitVersion=v1.37.1", "gitMajor=1 ", "gitMinor=37"] {
            assert!(flags.contains(part), "{flags} lacks {part}");
        }
    }

    #[test]
    fn the_go_module_of_a_release_pins_its_version() {
        for release in [Release::Newest, Release::Oldest] {
            let module = fs::read_to_string(layout::go_module(release).join("go.mod")).unwrap();
            assert!(module.contains(&format!("k8s.io/kubernetes v{release}\n")), "{release}");
        }
    }
}
