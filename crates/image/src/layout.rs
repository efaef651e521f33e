//! OCI layouts: an index, and blobs by their digests, in memory, in a directory or in a tar file.
//!
//! Enter images and what refers to them, or a path; leaves a value whose blobs are read when they are wanted, and checked
//! against their names when they are read.

mod read;
mod write;

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    path::PathBuf,
};

use bytes::Bytes;

use crate::{
    Descriptor, Digest, Image, Index, Manifest, Platform, Reference, media_type,
    oci::{CONTAINERD_NAME, REF_NAME, TITLE, encode},
    sbom,
};

const VERSION: &[u8] = br#"{"imageLayoutVersion":"1.0.0"}"#;

/// Images and their blobs.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    index: Index,
    blobs: BTreeMap<Digest, Source>,
}

/// Where a blob's bytes are.
#[derive(Clone, Debug)]
enum Source {
    Memory(Bytes),
    File(PathBuf),
    Part { file: PathBuf, offset: u64, size: u64 },
}

/// Why a layout cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is there.
    #[error("there is no image in {}", .0.display())]
    Missing(PathBuf),
    /// Something else is there.
    #[error("{} is no OCI layout", .0.display())]
    NotALayout(PathBuf),
    /// The layout's own index is wrong.
    #[error("failed to read the document {what}")]
    Document {
        /// Its name.
        what: String,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A manifest names a blob that is not there.
    #[error("the blob {0} is missing")]
    NoBlob(Digest),
    /// A blob has other bytes than its name says.
    #[error("the blob {expected} is damaged: its bytes have the digest {found}")]
    Damaged {
        /// Its name.
        expected: Digest,
        /// That of its bytes.
        found: Digest,
    },
    /// Nothing in the layout is an image, or not the one that is asked for.
    #[error("no image in it has the name {0}")]
    NoImage(String),
    /// One must be chosen.
    #[error("there are several images in it: {}", .0.join(", "))]
    Several(Vec<String>),
    /// The image is not for that platform.
    #[error("the image is not for {wanted}; it is for {}", there.join(", "))]
    NoPlatform {
        /// What was asked for.
        wanted: Platform,
        /// What is there.
        there: Vec<String>,
    },
    /// A layer in a format that is not read here.
    #[error("the layer {digest} has the type {media_type}, which is not unpacked here")]
    Layer {
        /// Its name.
        digest: Digest,
        /// Its type.
        media_type: String,
    },
    /// A file cannot be read or written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Layout {
    /// Images of several platforms under one index, named `reference`; of each, an SBOM that refers to it if there is one.
    pub fn new(reference: &Reference, images: Vec<Image>, sboms: Vec<Option<sbom::Document>>) -> Self {
        let mut layout = Self::default();
        let mut index = Index::default();
        let mut referrers = Vec::new();
        for (image, sbom) in images.into_iter().zip(sboms.into_iter().chain(std::iter::repeat(None))) {
            for (_, content) in image.blobs {
                layout.add(content);
            }
            let plain = Descriptor::of(media_type::MANIFEST, &image.manifest);
            layout.add(image.manifest);
            referrers.extend(sbom.map(|document| layout.attach(&document, &plain)));
            index.manifests.push(Descriptor { platform: Some(image.platform), ..plain });
        }
        let content = encode(&index);
        let mut descriptor = Descriptor::of(media_type::INDEX, &content);
        descriptor.annotations.insert(CONTAINERD_NAME.into(), reference.to_string());
        if let Some(tag) = reference.tag() {
            descriptor.annotations.insert(REF_NAME.into(), tag.to_owned());
        }
        layout.add(content.into());
        layout.index.manifests.push(descriptor);
        layout.index.manifests.extend(referrers);
        layout
    }

    /// Adds an SBOM that refers to an image, and returns what the index says of it.
    fn attach(&mut self, document: &sbom::Document, subject: &Descriptor) -> Descriptor {
        let content = Bytes::from(document.to_json());
        let mut layer = Descriptor::of(media_type::SPDX, &content);
        layer.annotations.insert(TITLE.into(), format!("{}.spdx.json", document.name));
        self.add(content);
        let empty = Bytes::from_static(b"{}");
        let config = Descriptor { data: Some("e30=".into()), ..Descriptor::of(media_type::EMPTY, &empty) };
        self.add(empty);
        let manifest = encode(&Manifest {
            schema_version: 2,
            media_type: Some(media_type::MANIFEST.into()),
            artifact_type: Some(media_type::SPDX.into()),
            config,
            layers: vec![layer],
            subject: Some(subject.clone()),
            annotations: BTreeMap::from([(
                "org.opencontainers.image.created".into(),
                document.created.clone(),
            )]),
        });
        let descriptor = Descriptor {
            artifact_type: Some(media_type::SPDX.into()),
            ..Descriptor::of(media_type::MANIFEST, &manifest)
        };
        self.add(manifest.into());
        descriptor
    }

    fn add(&mut self, content: Bytes) {
        self.blobs.insert(Digest::of(&content), Source::Memory(content));
    }

    /// Puts an image that came from elsewhere under a name.
    pub(crate) fn of_blobs(top: Descriptor, referrers: Vec<Descriptor>, blobs: Vec<Bytes>) -> Self {
        let mut layout = Self::default();
        for content in blobs {
            layout.add(content);
        }
        layout.index.manifests.push(top);
        layout.index.manifests.extend(referrers);
        layout
    }

    /// What is in the layout.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The only image, or the one with this tag or whole name.
    pub fn image(&self, name: Option<&str>) -> Result<&Descriptor, Error> {
        let images: Vec<&Descriptor> =
            self.index.manifests.iter().filter(|found| found.artifact_type.is_none()).collect();
        let names = |found: &Descriptor| {
            [CONTAINERD_NAME, REF_NAME]
                .iter()
                .filter_map(|key| found.annotations.get(*key).cloned())
                .collect::<Vec<_>>()
        };
        if let Some(name) = name {
            let found = images.into_iter().find(|image| names(image).iter().any(|one| one == name));
            return found.ok_or_else(|| Error::NoImage(name.to_owned()));
        }
        match images.as_slice() {
            [only] => Ok(only),
            [] => Err(Error::NoImage("(any)".into())),
            several => Err(Error::Several(
                several
                    .iter()
                    .map(|image| names(image).into_iter().next().unwrap_or_else(|| image.digest.to_string()))
                    .collect(),
            )),
        }
    }

    /// The whole name of an image, if the layout has it.
    pub fn name(image: &Descriptor) -> Option<&str> {
        image.annotations.get(CONTAINERD_NAME).map(String::as_str)
    }

    /// The manifests below an image: of an index, one for each platform; else the image itself.
    pub fn manifests(&self, image: &Descriptor) -> Result<Vec<Descriptor>, Error> {
        if image.is_index() {
            Ok(self.document::<Index>(&image.digest)?.manifests)
        } else {
            Ok(vec![image.clone()])
        }
    }

    /// Reads a manifest.
    pub fn manifest(&self, digest: &Digest) -> Result<Manifest, Error> {
        self.document(digest)
    }

    /// What refers to any of these manifests.
    pub fn referrers(&self, subjects: &[Descriptor]) -> Result<Vec<(Descriptor, Manifest)>, Error> {
        let wanted: BTreeSet<&Digest> = subjects.iter().map(|subject| &subject.digest).collect();
        let mut found = Vec::new();
        for descriptor in self.index.manifests.iter().filter(|found| found.artifact_type.is_some()) {
            let manifest = self.manifest(&descriptor.digest)?;
            if manifest.subject.as_ref().is_some_and(|subject| wanted.contains(&subject.digest)) {
                found.push((descriptor.clone(), manifest));
            }
        }
        Ok(found)
    }

    fn document<T: serde::de::DeserializeOwned>(&self, digest: &Digest) -> Result<T, Error> {
        let content = self.blob(digest)?;
        serde_json::from_slice(&content)
            .map_err(|source| Error::Document { what: digest.to_string(), source })
    }
}

#[cfg(test)]
mod tests;
