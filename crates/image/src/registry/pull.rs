//! Pulling: an image with all its platforms, and what refers to them, into a layout. Everything is checked against its
//! digest.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::{
    Error,
    http::{Call, Repository},
};
use crate::{Descriptor, Digest, Index, Layout, Manifest};

/// How often an answer may lead somewhere else.
const REDIRECTS: usize = 5;

/// Fetches the image that the repository was opened by.
pub async fn pull(repository: &Repository) -> Result<Layout, Error> {
    let reference = repository.reference();
    let wanted = reference
        .digest()
        .map(ToString::to_string)
        .or_else(|| reference.tag().map(str::to_owned))
        .unwrap_or_default();
    let found = repository.find_manifest(&wanted).await?;
    let (kind, content) =
        found.ok_or_else(|| Error::NotFound { host: repository.host.clone(), what: wanted })?;
    let top = Descriptor::of(&kind, &content);
    if let Some(expected) = reference.digest() {
        repository.is_same(expected, &content)?;
    }
    let mut pull = Pull { repository, seen: BTreeSet::new(), blobs: vec![content.clone()] };
    let manifests = if top.is_index() { pull.decode::<Index>(&content)?.manifests } else { Vec::new() };
    for manifest in &manifests {
        pull.manifest(manifest).await?;
    }
    if manifests.is_empty() {
        let manifest: Manifest = pull.decode(&content)?;
        pull.below(&manifest).await?;
    }
    let mut referrers = Vec::new();
    for subject in manifests.iter().chain([&top]) {
        for referrer in repository.referrers(&subject.digest).await?.1.manifests {
            pull.manifest(&referrer).await?;
            referrers.push(referrer);
        }
    }
    Ok(Layout::of_blobs(top, referrers, pull.blobs))
}

struct Pull<'a> {
    repository: &'a Repository,
    seen: BTreeSet<Digest>,
    blobs: Vec<Bytes>,
}

impl Pull<'_> {
    fn decode<T: serde::de::DeserializeOwned>(&self, content: &[u8]) -> Result<T, Error> {
        let odd = |error: serde_json::Error| {
            self.repository.protocol("a question for a manifest", &error.to_string())
        };
        serde_json::from_slice(content).map_err(odd)
    }

    async fn manifest(&mut self, descriptor: &Descriptor) -> Result<(), Error> {
        let wanted = descriptor.digest.to_string();
        let found = self.repository.find_manifest(&wanted).await?;
        let missing = || Error::NotFound { host: self.repository.host.clone(), what: wanted };
        let (_, content) = found.ok_or_else(missing)?;
        self.repository.is_same(&descriptor.digest, &content)?;
        let manifest: Manifest = self.decode(&content)?;
        self.blobs.push(content);
        self.below(&manifest).await
    }

    async fn below(&mut self, manifest: &Manifest) -> Result<(), Error> {
        for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
            if self.seen.insert(blob.digest.clone()) {
                self.blobs.push(self.repository.blob(blob).await?);
            }
        }
        Ok(())
    }
}

impl Repository {
    /// The bytes of a blob.
    async fn blob(&self, blob: &Descriptor) -> Result<Bytes, Error> {
        let what = format!("a question for the blob {}", blob.digest.short());
        let mut uri = self.path(&format!("blobs/{}", blob.digest))?;
        for _ in 0..REDIRECTS {
            let mut call = Call::new(Method::GET, uri, &what);
            call.longest = call.longest.max(usize::try_from(blob.size).unwrap_or(usize::MAX));
            let answer = self.send(call).await?;
            match answer.status {
                StatusCode::OK => {
                    self.is_same(&blob.digest, &answer.body)?;
                    return Ok(answer.body);
                }
                StatusCode::NOT_FOUND => {
                    return Err(Error::NotFound {
                        host: self.host.clone(),
                        what: format!("blob {}", blob.digest),
                    });
                }
                status if status.is_redirection() => uri = self.location(&answer, &what)?,
                _ => return Err(self.unexpected(&what, &answer).into_error()),
            }
        }
        Err(self.protocol(&what, "it leads on and on"))
    }

    fn is_same(&self, expected: &Digest, content: &[u8]) -> Result<(), Error> {
        let found = Digest::of(content);
        if found == *expected {
            return Ok(());
        }
        Err(Error::Mismatch { host: self.host.clone(), expected: expected.clone(), found })
    }
}
