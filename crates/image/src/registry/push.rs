//! Pushing: blobs, then manifests, then what refers to them, and the tag last. So a tag never names an image that is not
//! whole, and a push that broke off is finished by the next one.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use http::{
    Method, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE},
};

use super::{
    Error,
    http::{Call, Repository},
    referrers::LONGEST_DOCUMENT,
    upload::Sent,
};
use crate::{Descriptor, Digest, Layout, Manifest, Reference, media_type};

/// Every kind of document that is an image.
const DOCUMENTS: [&str; 4] =
    [media_type::INDEX, media_type::MANIFEST, media_type::DOCKER_INDEX, media_type::DOCKER_MANIFEST];

/// How an image is pushed.
#[derive(Clone, Copy, Debug, Default)]
pub struct PushOptions {
    /// Fail if the tag is there with other content.
    pub no_clobber: bool,
    /// Send blobs in parts of this many bytes.
    pub chunk: Option<usize>,
    /// Ask, and send nothing.
    pub dry_run: bool,
}

/// What a push has done, or would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pushed {
    /// The image by its digest.
    pub digest: Digest,
    /// How many blobs were sent, and their bytes.
    pub uploaded: (usize, u64),
    /// How many blobs were taken from another repository.
    pub mounted: usize,
    /// How many blobs were there.
    pub present: usize,
    /// How many manifests were sent, the index and lists of referrers among them.
    pub manifests: usize,
    /// How many manifests refer to the image.
    pub referrers: usize,
    /// Whether the tag names another image now, or for the first time.
    pub tagged: bool,
}

/// What a push is at.
#[derive(Clone, Debug)]
pub enum Step {
    /// A blob is there.
    Present(Descriptor),
    /// A blob was taken from another repository.
    Mounted(Descriptor),
    /// So many bytes of a blob are on their way.
    Uploading(Descriptor, u64),
    /// A blob was sent, or would be.
    Uploaded(Descriptor),
}

/// Pushes an image of a layout to the repository and the tag that the repository was opened by.
pub async fn push(
    layout: &Layout,
    name: Option<&str>,
    repository: &Repository,
    options: PushOptions,
    watch: Arc<dyn Fn(Step) + Send + Sync>,
) -> Result<Pushed, Error> {
    let reference = repository.reference();
    let tag = tag(reference)?;
    let top = layout.image(name)?;
    let tagged = repository.tag_digest(tag).await?;
    if let Some(found) = tagged.as_ref().filter(|found| options.no_clobber && **found != top.digest) {
        return Err(Error::TagExists { image: reference.to_string(), found: found.clone() });
    }
    let mut push = Push {
        layout,
        repository,
        options,
        watch,
        seen: BTreeSet::new(),
        done: Pushed {
            digest: top.digest.clone(),
            uploaded: (0, 0),
            mounted: 0,
            present: 0,
            manifests: 0,
            referrers: 0,
            tagged: tagged.as_ref() != Some(&top.digest),
        },
    };
    let manifests = layout.manifests(top)?;
    for descriptor in &manifests {
        push.manifest(descriptor, &layout.manifest(&descriptor.digest)?).await?;
    }
    let subjects: Vec<Descriptor> = manifests.iter().cloned().chain([top.clone()]).collect();
    for (descriptor, manifest) in layout.referrers(&subjects)? {
        push.referrer(&descriptor, &manifest).await?;
    }
    if push.done.tagged {
        push.put(tag, top).await?;
    }
    Ok(push.done)
}

fn tag(reference: &Reference) -> Result<&str, Error> {
    match (reference.tag(), reference.digest()) {
        (Some(tag), None) => Ok(tag),
        _ => Err(Error::ByDigest(reference.to_string())),
    }
}

struct Push<'a> {
    layout: &'a Layout,
    repository: &'a Repository,
    options: PushOptions,
    watch: Arc<dyn Fn(Step) + Send + Sync>,
    /// Blobs that need no second question.
    seen: BTreeSet<Digest>,
    done: Pushed,
}

impl Push<'_> {
    /// Sends the blobs of a manifest, then the manifest, as far as they are not there.
    async fn manifest(&mut self, descriptor: &Descriptor, manifest: &Manifest) -> Result<(), Error> {
        for blob in std::iter::once(&manifest.config).chain(&manifest.layers) {
            self.blob(blob).await?;
        }
        if self.repository.tag_digest(&descriptor.digest.to_string()).await?.is_none() {
            self.put(&descriptor.digest.to_string(), descriptor).await?;
        }
        Ok(())
    }

    async fn referrer(&mut self, descriptor: &Descriptor, manifest: &Manifest) -> Result<(), Error> {
        self.manifest(descriptor, manifest).await?;
        self.done.referrers += 1;
        let Some(subject) = &manifest.subject else { return Ok(()) };
        let dry_run = self.options.dry_run;
        if self.repository.list_referrer(&subject.digest, descriptor, manifest, dry_run).await? {
            self.done.manifests += 1;
        }
        Ok(())
    }

    async fn blob(&mut self, blob: &Descriptor) -> Result<(), Error> {
        if !self.seen.insert(blob.digest.clone()) {
            return Ok(());
        }
        if self.repository.has_blob(&blob.digest).await? {
            self.done.present += 1;
            (self.watch)(Step::Present(blob.clone()));
            return Ok(());
        }
        let mut sent = Sent::Uploaded;
        if !self.options.dry_run {
            let content = self.layout.blob(&blob.digest)?;
            let (watch, descriptor) = (self.watch.clone(), blob.clone());
            let watcher: super::body::Watcher =
                Arc::new(move |bytes| watch(Step::Uploading(descriptor.clone(), bytes)));
            sent = self.repository.upload(&blob.digest, &content, self.options.chunk, &watcher).await?;
        }
        match sent {
            Sent::Mounted => {
                self.done.mounted += 1;
                (self.watch)(Step::Mounted(blob.clone()));
            }
            Sent::Uploaded => {
                self.done.uploaded.0 += 1;
                self.done.uploaded.1 += blob.size;
                (self.watch)(Step::Uploaded(blob.clone()));
            }
        }
        Ok(())
    }

    async fn put(&mut self, tag_or_digest: &str, descriptor: &Descriptor) -> Result<(), Error> {
        self.done.manifests += 1;
        if self.options.dry_run {
            return Ok(());
        }
        let content = self.layout.blob(&descriptor.digest)?;
        self.repository.put_manifest(tag_or_digest, &descriptor.media_type, content).await
    }
}

impl Repository {
    /// The digest of what has a tag, or of a manifest that is there.
    pub(super) async fn tag_digest(&self, tag_or_digest: &str) -> Result<Option<Digest>, Error> {
        let what = format!("a question for {tag_or_digest}");
        let uri = self.path(&format!("manifests/{tag_or_digest}"))?;
        let answer =
            self.send(Call::new(Method::HEAD, uri, &what).header(ACCEPT, &DOCUMENTS.join(", "))).await?;
        match answer.status {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(None),
            _ => return Err(self.unexpected(&what, &answer).into_error()),
        }
        match answer.header("docker-content-digest").and_then(|digest| digest.parse().ok()) {
            Some(digest) => Ok(Some(digest)),
            // The header is a wish of the specification, the content is not.
            None => Ok(self.find_manifest(tag_or_digest).await?.map(|(_, content)| Digest::of(&content))),
        }
    }

    /// A manifest and its type, if it is there.
    pub(super) async fn find_manifest(&self, tag_or_digest: &str) -> Result<Option<(String, Bytes)>, Error> {
        let what = format!("a question for {tag_or_digest}");
        let uri = self.path(&format!("manifests/{tag_or_digest}"))?;
        let mut call = Call::new(Method::GET, uri, &what).header(ACCEPT, &DOCUMENTS.join(", "));
        call.longest = LONGEST_DOCUMENT;
        let answer = self.send(call).await?;
        match answer.status {
            StatusCode::OK => {
                let kind = answer.header("content-type").unwrap_or(media_type::MANIFEST);
                let kind = kind.split(';').next().unwrap_or(kind).trim().to_owned();
                Ok(Some((kind, answer.body)))
            }
            StatusCode::NOT_FOUND => Ok(None),
            _ => Err(self.unexpected(&what, &answer).into_error()),
        }
    }

    /// Puts a manifest under a tag or its digest.
    pub(super) async fn put_manifest(
        &self,
        tag_or_digest: &str,
        kind: &str,
        content: Bytes,
    ) -> Result<(), Error> {
        let what = format!("the manifest {tag_or_digest}");
        let digest = Digest::of(&content);
        let mut call = Call::new(Method::PUT, self.path(&format!("manifests/{tag_or_digest}"))?, &what)
            .header(CONTENT_TYPE, kind)
            .header(CONTENT_LENGTH, &content.len().to_string());
        call.body = content;
        let answer = self.send(call).await?;
        if answer.status != StatusCode::CREATED {
            return Err(self.unexpected(&what, &answer).into_error());
        }
        self.same(&answer, &digest)
    }
}
