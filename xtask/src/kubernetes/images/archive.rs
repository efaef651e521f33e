//! Writes docker-archive files: layers, a configuration for each image, and the manifest that ties them together.
//!
//! Enter files and settings; leave bytes that depend on nothing else, so that equal input gives an equal digest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use anyhow::{Context, Result};
use serde_json::json;
use sha2::{Digest, Sha256};
use tar::{Builder, EntryType, Header};

/// A layer under construction. Parent directories appear by themselves.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layer {
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug)]
enum Entry {
    Directory { mode: u32 },
    File { content: Vec<u8>, mode: u32 },
    Symlink { target: String },
}

impl Layer {
    pub(crate) fn directory(self, path: &str, mode: u32) -> Self {
        self.insert(path, Entry::Directory { mode })
    }

    pub(crate) fn file(self, path: &str, content: Vec<u8>, mode: u32) -> Self {
        self.insert(path, Entry::File { content, mode })
    }

    pub(crate) fn symlink(self, path: &str, target: &str) -> Self {
        self.insert(path, Entry::Symlink { target: target.to_owned() })
    }

    fn insert(mut self, path: &str, entry: Entry) -> Self {
        for (end, _) in path.match_indices('/') {
            self.entries.entry(path[..end].to_owned()).or_insert(Entry::Directory { mode: 0o755 });
        }
        self.entries.insert(path.to_owned(), entry);
        self
    }

    /// The layer as a tar file, in the order of paths and without times.
    pub(crate) fn to_tar(&self) -> Result<Vec<u8>> {
        let mut tar = Builder::new(Vec::new());
        for (path, entry) in &self.entries {
            let mut header = Header::new_gnu();
            header.set_mtime(0);
            let written = match entry {
                Entry::Directory { mode } => {
                    header.set_entry_type(EntryType::Directory);
                    header.set_mode(*mode);
                    header.set_size(0);
                    tar.append_data(&mut header, format!("{path}/"), std::io::empty())
                }
                Entry::File { content, mode } => {
                    header.set_mode(*mode);
                    header.set_size(content.len() as u64);
                    tar.append_data(&mut header, path, content.as_slice())
                }
                Entry::Symlink { target } => {
                    header.set_entry_type(EntryType::Symlink);
                    header.set_mode(0o777);
                    header.set_size(0);
                    tar.append_link(&mut header, path, target)
                }
            };
            written.with_context(|| format!("failed to write {path} into a layer"))?;
        }
        tar.into_inner().context("failed to finish a layer")
    }
}

/// An image: its layers, lowest first, and how it runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Image {
    pub(crate) tags: Vec<String>,
    pub(crate) layers: Vec<Vec<u8>>,
    pub(crate) entrypoint: Vec<String>,
    pub(crate) command: Vec<String>,
    pub(crate) ports: Vec<u16>,
    /// Empty for root.
    pub(crate) user: String,
    /// The usual one unless given.
    pub(crate) path: Option<String>,
    /// Further variables, as `NAME=value`.
    pub(crate) environment: Vec<String>,
}

impl Image {
    fn config(&self) -> Vec<u8> {
        let ports: BTreeMap<String, serde_json::Value> =
            self.ports.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
        let digests: Vec<String> =
            self.layers.iter().map(|layer| format!("sha256:{}", digest(layer))).collect();
        let path =
            self.path.as_deref().unwrap_or("/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
        let environment: Vec<String> =
            std::iter::once(format!("PATH={path}")).chain(self.environment.iter().cloned()).collect();
        json!({
            "architecture": architecture(),
            "os": "linux",
            "created": "1970-01-01T00:00:00Z",
            "config": {
                "Entrypoint": self.entrypoint,
                "Cmd": self.command,
                "Env": environment,
                "ExposedPorts": ports,
                "User": self.user,
                "WorkingDir": "/",
            },
            "rootfs": {"type": "layers", "diff_ids": digests},
        })
        .to_string()
        .into_bytes()
    }
}

/// Writes `images` as one docker-archive. Layers that several of them share are written once.
pub(crate) fn write_archive(out: impl Write, images: &[Image]) -> Result<()> {
    let mut tar = Builder::new(out);
    let mut written = BTreeSet::new();
    let mut manifest = Vec::new();
    for image in images {
        let config = image.config();
        let config_name = format!("{}.json", digest(&config));
        append(&mut tar, &mut written, &config_name, &config)?;
        let mut layers = Vec::new();
        for layer in &image.layers {
            let name = format!("{}.tar", digest(layer));
            append(&mut tar, &mut written, &name, layer)?;
            layers.push(name);
        }
        manifest.push(json!({"Config": config_name, "RepoTags": image.tags, "Layers": layers}));
    }
    append(&mut tar, &mut written, "manifest.json", json!(manifest).to_string().as_bytes())?;
    tar.into_inner().context("failed to finish the archive")?.flush()?;
    Ok(())
}

fn append(
    tar: &mut Builder<impl Write>,
    written: &mut BTreeSet<String>,
    name: &str,
    content: &[u8],
) -> Result<()> {
    if !written.insert(name.to_owned()) {
        return Ok(());
    }
    let mut header = Header::new_gnu();
    header.set_mtime(0);
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    tar.append_data(&mut header, name, content).with_context(|| format!("failed to write {name}"))
}

pub(super) fn digest(content: &[u8]) -> String {
    use std::fmt::Write as _;
    Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string must succeed");
        text
    })
}

/// This machine's architecture in Go's words, which images use.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// Completes an image name as container runtimes do: `nginx:1` is `docker.io/library/nginx:1`.
pub(super) fn parse_tag(text: &str) -> Result<String, String> {
    let fits = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/:".contains(&b))
    };
    let (name, tag) = text
        .rsplit_once(':')
        .filter(|(name, tag)| fits(name) && fits(tag) && !tag.contains('/'))
        .ok_or("an image needs a name and a tag, such as webserver:0.1")?;
    let registry =
        name.split_once('/').is_some_and(|(first, _)| first.contains(['.', ':']) || first == "localhost");
    Ok(match (registry, name.contains('/')) {
        (true, _) => format!("{name}:{tag}"),
        (false, true) => format!("docker.io/{name}:{tag}"),
        (false, false) => format!("docker.io/library/{name}:{tag}"),
    })
}

#[cfg(test)]
mod tests;
