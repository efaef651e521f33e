//! What refers to an image, in both ways that registries know: the referrers API, or, where that is not served, an index
//! under a tag made of the subject's digest.

use bytes::Bytes;
use http::{Method, StatusCode};

use super::{
    Error,
    http::{Call, Repository},
};
use crate::{Descriptor, Digest, Index, Manifest, media_type, oci::encode};

/// How large a document may be, as the specification has it.
pub(super) const LONGEST_DOCUMENT: usize = 4 << 20;

/// How referrers of an image are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listing {
    /// By the registry itself.
    Api,
    /// By an index under a tag.
    Tag,
}

impl Repository {
    /// What refers to a manifest.
    pub(super) async fn referrers(&self, subject: &Digest) -> Result<(Listing, Index), Error> {
        let what = format!("a question for what refers to {}", subject.short());
        let mut call = Call::new(Method::GET, self.path(&format!("referrers/{subject}"))?, &what);
        call.longest = LONGEST_DOCUMENT;
        let answer = self.send(call.header(http::header::ACCEPT, media_type::INDEX)).await?;
        // Some answer with a page for people where they do not know a path.
        if answer.status == StatusCode::OK
            && let Ok(index) = serde_json::from_slice(&answer.body)
        {
            return Ok((Listing::Api, index));
        }
        let index = match self.find_manifest(&fallback_tag(subject)).await? {
            Some((_, content)) => serde_json::from_slice(&content)
                .map_err(|_| self.protocol(&what, "the tag of the referrers is no index"))?,
            None => Index::default(),
        };
        Ok((Listing::Tag, index))
    }

    /// Lists a referrer where the registry does not do so by itself. Returns whether anything has, or would have, to be
    /// written.
    pub(super) async fn list_referrer(
        &self,
        subject: &Digest,
        referrer: &Descriptor,
        manifest: &Manifest,
        dry_run: bool,
    ) -> Result<bool, Error> {
        let (listing, mut index) = self.referrers(subject).await?;
        if listing == Listing::Api || index.manifests.iter().any(|found| found.digest == referrer.digest) {
            return Ok(false);
        }
        if dry_run {
            return Ok(true);
        }
        index.manifests.push(Descriptor { annotations: manifest.annotations.clone(), ..referrer.clone() });
        let content = Bytes::from(encode(&index));
        self.put_manifest(&fallback_tag(subject), media_type::INDEX, content).await?;
        Ok(true)
    }
}

/// The tag under which referrers are listed: `sha256-` and the digits.
fn fallback_tag(subject: &Digest) -> String {
    format!("sha256-{}", subject.hex())
}
