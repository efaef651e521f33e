//! Builds the programs that judge what is packed, into the cache.
//!
//! Enter the programs wanted; leaves the directory that holds them. What is there is never built again; the directory's
//! name says of what: a digest of the modules that pin the versions, and of our own few lines of Go.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use fs_err as fs;
use sha2::{Digest, Sha256};

use crate::kubernetes;

/// A program, the module below `xtask/packaging` that pins it, and its Go package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    module: &'static str,
    package: &'static str,
}

/// Without a database in C and the formats of images that need one.
const TAGS: &str = "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper";

const fn program(name: &'static str, module: &'static str, package: &'static str) -> Program {
    Program { name, module, package }
}

/// How many of those who follow build quickly: Helm, kustomize and the validators.
pub(super) const QUICK: usize = 3;

/// Those who read charts, kustomizations, bundles and catalogues.
pub(super) const JUDGES: [Program; 5] = [
    program("helm", "helm", "helm.sh/helm/v4/cmd/helm"),
    program("kustomize", "helm", "sigs.k8s.io/kustomize/kustomize/v5"),
    program("verify", "olm", "./verify"),
    program("list", "olm", "./list"),
    program("opm", "olm", "github.com/operator-framework/operator-registry/cmd/opm"),
];

/// The Operator Lifecycle Manager itself, and who serves it a catalogue.
pub(super) const LIFECYCLE: [Program; 3] = [
    program("olm", "lifecycle", "github.com/operator-framework/operator-lifecycle-manager/cmd/olm"),
    program("catalog", "lifecycle", "github.com/operator-framework/operator-lifecycle-manager/cmd/catalog"),
    JUDGES[4],
];

/// Where the Go modules are.
pub(super) fn modules() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging")
}

/// Makes sure that the programs are in the cache, and returns its directory.
pub(super) fn ensure(wanted: &[Program]) -> Result<PathBuf> {
    let folder = kubernetes::cache_root()?.join("packaging").join(key(&modules())?);
    let missing: Vec<&Program> = wanted.iter().filter(|one| !folder.join(one.name).is_file()).collect();
    if missing.is_empty() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    // Two checkouts share the cache: the second waits, then finds the work done.
    let _lock = kubernetes::lock(&folder.join(".lock"), "another build of the packaging programs")?;
    for program in missing.into_iter().filter(|one| !folder.join(one.name).is_file()) {
        anstream::print!("  {} … ", program.name);
        std::io::Write::flush(&mut std::io::stdout())?;
        let begin = Instant::now();
        build(*program, &folder)?;
        anstream::println!("{} s", begin.elapsed().as_secs());
    }
    Ok(folder)
}

fn build(program: Program, folder: &Path) -> Result<()> {
    let unfinished = folder.join(format!(".{}.{}", program.name, std::process::id()));
    let built = Command::new("go")
        .current_dir(modules().join(program.module))
        .env("CGO_ENABLED", "0")
        .args(["build", "-mod=readonly", "-trimpath", "-tags", TAGS, "-ldflags", "-s -w", "-o"])
        .arg(&unfinished)
        .arg(program.package)
        .stdin(Stdio::null())
        .output()
        .context("failed to start `go`: install Go 1.26 or later (https://go.dev/doc/install)")?;
    if !built.status.success() {
        // The file may not exist; what matters is go's own message.
        let _ = fs::remove_file(&unfinished);
        bail!("failed to build {}:\n{}", program.name, String::from_utf8_lossy(&built.stderr).trim_end());
    }
    fs::rename(&unfinished, folder.join(program.name))?;
    Ok(())
}

/// What the programs are made of.
fn key(folder: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    for path in ["helm/go.sum", "olm/go.sum", "olm/verify/main.go", "olm/list/main.go", "lifecycle/go.sum"] {
        hash.update(fs::read(folder.join(path))?);
    }
    let mut text = String::new();
    for byte in hash.finalize().iter().take(8) {
        write!(text, "{byte:02x}")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_is_pinned_by_its_module() {
        for program in JUDGES.iter().chain(&LIFECYCLE) {
            let folder = modules().join(program.module);
            let module = fs::read_to_string(folder.join("go.mod")).unwrap();
            let own = program
                .package
                .strip_prefix("./")
                .is_some_and(|own| folder.join(own).join("main.go").is_file());
            let pinned = module.lines().any(|line| {
                let name = line.trim().trim_start_matches("require ").split(' ').next().unwrap_or_default();
                !name.is_empty() && program.package.starts_with(name)
            });
            assert!(own || pinned, "{}", program.name);
        }
    }

    #[test]
    fn another_version_has_another_place() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["helm", "olm/verify", "olm/list", "lifecycle"] {
            fs::create_dir_all(folder.path().join(path)).unwrap();
        }
        let files =
            ["helm/go.sum", "olm/go.sum", "olm/verify/main.go", "olm/list/main.go", "lifecycle/go.sum"];
        for file in files {
            fs::write(folder.path().join(file), "1").unwrap();
        }
        let before = key(folder.path()).unwrap();
        fs::write(folder.path().join("helm/go.sum"), "2").unwrap();
        assert_ne!(key(folder.path()).unwrap(), before);
    }
}
