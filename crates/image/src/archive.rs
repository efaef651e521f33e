//! Tar files of images: docker's archives, which `docker load`, `podman load` and `ctr images import` take, and the archive
//! of an OCI layout. Equal input gives equal bytes.

use std::{
    collections::BTreeSet,
    io::{self, Write},
};

use bytes::Bytes;
use serde::Serialize;
use tar::Builder;

use crate::{Digest, layer::header, oci::encode};

/// An image of one platform, uncompressed.
#[derive(Clone, Debug)]
pub struct Exported {
    /// Its whole names, as `docker.io/library/shop:1.2`.
    pub tags: Vec<String>,
    /// Its configuration.
    pub config: Bytes,
    /// Its layers as tar files, lowest first.
    pub layers: Vec<Bytes>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Entry<'a> {
    config: String,
    repo_tags: &'a [String],
    layers: Vec<String>,
}

/// Writes `images` as one docker-archive. Layers that several of them share are written once.
pub fn write_docker_archive(out: impl Write, images: &[Exported]) -> io::Result<()> {
    let mut archive = Archive::new(out);
    let mut manifest = Vec::new();
    for image in images {
        let config = format!("{}.json", Digest::of(&image.config).hex());
        archive.add(&config, &image.config)?;
        let mut layers = Vec::new();
        for layer in &image.layers {
            let name = format!("{}.tar", Digest::of(layer).hex());
            archive.add(&name, layer)?;
            layers.push(name);
        }
        manifest.push(Entry { config, repo_tags: &image.tags, layers });
    }
    archive.add("manifest.json", &encode(&manifest))?;
    archive.finish()
}

/// A tar file under construction in which every name is there once.
pub(crate) struct Archive<W: Write> {
    tar: Builder<W>,
    written: BTreeSet<String>,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { tar: Builder::new(out), written: BTreeSet::new() }
    }

    pub(crate) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        if !self.written.insert(name.to_owned()) {
            return Ok(());
        }
        self.tar.append_data(&mut header(0, 0o644, content.len()), name, content)
    }

    pub(crate) fn finish(self) -> io::Result<()> {
        self.tar.into_inner()?.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layer, Platform, Recipe, RuntimeConfig};

    #[test]
    fn a_shared_layer_is_in_the_archive_once() {
        let recipe = Recipe {
            platform: Platform::amd64(),
            layers: vec![Layer::default().file("a", "1", 0o644)],
            config: RuntimeConfig::default(),
            time: 0,
        };
        let images = [recipe.export(vec!["a:1".into()]).unwrap(), recipe.export(vec!["b:1".into()]).unwrap()];
        let mut out = Vec::new();
        write_docker_archive(&mut out, &images).unwrap();
        let mut archive = tar::Archive::new(out.as_slice());
        let names: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        assert_eq!(names.len(), 3, "{names:?}");
        let mut again = Vec::new();
        write_docker_archive(&mut again, &images).unwrap();
        assert_eq!(out, again);
    }
}
