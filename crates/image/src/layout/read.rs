//! Reading layouts: a directory or a tar file comes in, and blobs leave only if they are what their names say.

use std::{
    io::{Read, Seek, SeekFrom},
    path::Path,
};

use bytes::Bytes;
use fs_err as fs;

use super::{Error, Layout, Source};
use crate::{Config, Digest, Exported, Index, Platform};

impl Layout {
    /// Opens a layout: a directory, or a tar file of one. Blobs are read later.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            Self::open_directory(path)
        } else if path.exists() {
            Self::open_archive(path)
        } else {
            Err(Error::Missing(path.to_owned()))
        }
    }

    fn open_directory(path: &Path) -> Result<Self, Error> {
        if !path.join("oci-layout").is_file() || !path.join("index.json").is_file() {
            return Err(Error::NotALayout(path.to_owned()));
        }
        let index = fs::read(path.join("index.json"))?;
        let mut layout = Self { index: index_of(&index)?, ..Self::default() };
        for entry in fs::read_dir(path.join("blobs/sha256"))? {
            let entry = entry?;
            let name = entry.file_name();
            if let Some(digest) = name.to_str().and_then(|hex| format!("sha256:{hex}").parse().ok()) {
                layout.blobs.insert(digest, Source::File(entry.path()));
            }
        }
        Ok(layout)
    }

    fn open_archive(path: &Path) -> Result<Self, Error> {
        let mut archive = tar::Archive::new(fs::File::open(path)?);
        let mut layout = Self::default();
        let mut index = None;
        let not_a_layout = |_| Error::NotALayout(path.to_owned());
        for entry in archive.entries().map_err(not_a_layout)? {
            let mut entry = entry.map_err(not_a_layout)?;
            let name = entry.path()?.to_string_lossy().trim_start_matches("./").to_owned();
            if name == "index.json" {
                let mut content = Vec::new();
                entry.read_to_end(&mut content)?;
                index = Some(index_of(&content)?);
            } else if let Some(digest) = name
                .strip_prefix("blobs/sha256/")
                .and_then(|hex| format!("sha256:{hex}").parse::<Digest>().ok())
            {
                let (offset, size) = (entry.raw_file_position(), entry.size());
                layout.blobs.insert(digest, Source::Part { file: path.to_owned(), offset, size });
            }
        }
        layout.index = index.ok_or_else(|| Error::NotALayout(path.to_owned()))?;
        Ok(layout)
    }

    /// The bytes of a blob.
    pub fn blob(&self, digest: &Digest) -> Result<Bytes, Error> {
        let content = match self.blobs.get(digest).ok_or_else(|| Error::NoBlob(digest.clone()))? {
            Source::Memory(content) => return Ok(content.clone()),
            Source::File(path) => fs::read(path)?,
            Source::Part { file, offset, size } => {
                let mut file = fs::File::open(file)?;
                file.seek(SeekFrom::Start(*offset))?;
                let mut content = Vec::new();
                file.take(*size).read_to_end(&mut content)?;
                content
            }
        };
        let found = Digest::of(&content);
        if found != *digest {
            return Err(Error::Damaged { expected: digest.clone(), found });
        }
        Ok(content.into())
    }

    /// The image of one platform as docker's archives hold one.
    pub fn export(
        &self,
        name: Option<&str>,
        platform: &Platform,
        tags: Vec<String>,
    ) -> Result<Exported, Error> {
        let manifests = self.manifests(self.image(name)?)?;
        let mut there = Vec::new();
        for descriptor in manifests {
            let manifest = self.manifest(&descriptor.digest)?;
            let content = self.blob(&manifest.config.digest)?;
            let config: Config = serde_json::from_slice(&content)
                .map_err(|source| Error::Document { what: manifest.config.digest.to_string(), source })?;
            let found = descriptor.platform.unwrap_or(config.platform);
            if (&found.os, &found.architecture) != (&platform.os, &platform.architecture) {
                there.push(found.to_string());
                continue;
            }
            let layers = manifest.layers.iter().map(|layer| {
                let packed = self.blob(&layer.digest)?;
                match layer.media_type.rsplit_once(['+', '.']).map(|(_, format)| format) {
                    Some("gzip") => {
                        let mut tar = Vec::new();
                        flate2::read::MultiGzDecoder::new(packed.as_ref()).read_to_end(&mut tar)?;
                        Ok(tar.into())
                    }
                    Some("tar") => Ok(packed),
                    _ => Err(Error::Layer {
                        digest: layer.digest.clone(),
                        media_type: layer.media_type.clone(),
                    }),
                }
            });
            return Ok(Exported { tags, config: content, layers: layers.collect::<Result<_, _>>()? });
        }
        Err(Error::NoPlatform { wanted: platform.clone(), there })
    }
}

fn index_of(content: &[u8]) -> Result<Index, Error> {
    serde_json::from_slice(content).map_err(|source| Error::Document { what: "index.json".into(), source })
}
