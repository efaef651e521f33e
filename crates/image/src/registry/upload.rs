//! One blob on its way: there already, mounted from another repository, or sent, whole or in parts.
//!
//! An upload that breaks off begins anew: what a registry kept of it is not worth the questions.

use bytes::Bytes;
use http::{
    Method, StatusCode, Uri,
    header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE},
};

use super::{
    Error,
    body::Watcher,
    http::{Answer, Call, Repository},
    retry::Failure,
};
use crate::Digest;

/// How a blob came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    Mounted,
    Uploaded,
}

impl Repository {
    /// Whether the registry has a blob.
    pub(super) async fn has_blob(&self, digest: &Digest) -> Result<bool, Error> {
        let what = format!("a question for the blob {}", digest.short());
        let answer =
            self.send(Call::new(Method::HEAD, self.path(&format!("blobs/{digest}"))?, &what)).await?;
        match answer.status {
            StatusCode::OK => Ok(true),
            StatusCode::NOT_FOUND => Ok(false),
            // Some keep blobs elsewhere and lead there.
            status if status.is_redirection() => Ok(true),
            _ => Err(self.unexpected(&what, &answer).into_error()),
        }
    }

    /// Sends a blob that is not there, in parts of `chunk` bytes if that is given.
    pub(super) async fn upload(
        &self,
        digest: &Digest,
        content: &Bytes,
        chunk: Option<usize>,
        watcher: &Watcher,
    ) -> Result<Sent, Error> {
        self.retry.run(|| self.upload_once(digest, content.clone(), chunk, watcher.clone())).await
    }

    async fn upload_once(
        &self,
        digest: &Digest,
        content: Bytes,
        chunk: Option<usize>,
        watcher: Watcher,
    ) -> Result<Sent, Failure> {
        let what = format!("the blob {}", digest.short());
        let mount = self.mount_from.as_ref().map(|from| {
            let mut query = form_urlencoded::Serializer::new(String::from("?"));
            query.append_pair("mount", &digest.to_string()).append_pair("from", from);
            query.finish()
        });
        let begin = self.path(&format!("blobs/uploads/{}", mount.unwrap_or_default()))?;
        let begun = self.attempt(Call::new(Method::POST, begin, &what).header(CONTENT_LENGTH, "0")).await?;
        match begun.status {
            // The registry has taken it from the other repository.
            StatusCode::CREATED => return Ok(Sent::Mounted),
            StatusCode::ACCEPTED => {}
            _ => return Err(self.unexpected(&what, &begun)),
        }
        let mut place = self.location(&begun, &what)?;
        let mut rest = content;
        if let Some(size) = chunk.filter(|size| *size > 0 && rest.len() > *size) {
            place = self.parts(place, &mut rest, size, &what, &watcher).await?;
        }
        let mut call = Call::new(Method::PUT, with_digest(&place, digest), &what);
        call = call
            .header(CONTENT_TYPE, "application/octet-stream")
            .header(CONTENT_LENGTH, &rest.len().to_string());
        call.body = rest;
        call.watcher = Some(watcher);
        let done = self.attempt(call).await?;
        if done.status != StatusCode::CREATED {
            return Err(self.unexpected(&what, &done));
        }
        self.same(&done, digest)?;
        Ok(Sent::Uploaded)
    }

    /// Sends all parts, and leaves nothing for the end. Returns where the end is told.
    async fn parts(
        &self,
        mut place: Uri,
        rest: &mut Bytes,
        size: usize,
        what: &str,
        watcher: &Watcher,
    ) -> Result<Uri, Failure> {
        let mut offset = 0;
        while !rest.is_empty() {
            let part = rest.split_to(size.min(rest.len()));
            let end = offset + part.len();
            let mut call = Call::new(Method::PATCH, place, what)
                .header(CONTENT_TYPE, "application/octet-stream")
                .header(CONTENT_RANGE, &format!("{offset}-{}", end - 1))
                .header(CONTENT_LENGTH, &part.len().to_string());
            call.body = part;
            let taken = self.attempt(call).await?;
            if taken.status != StatusCode::ACCEPTED {
                return Err(self.unexpected(what, &taken));
            }
            place = self.location(&taken, what)?;
            offset = end;
            watcher(offset as u64);
        }
        Ok(place)
    }

    /// Whether the registry calls what it has been given by the same name; one that says nothing is believed.
    pub(super) fn same(&self, answer: &Answer, expected: &Digest) -> Result<(), Error> {
        let Some(found) = answer.header("docker-content-digest") else { return Ok(()) };
        let odd = |_| self.protocol("an upload", "it calls it by something that is no digest");
        let found: Digest = found.parse().map_err(odd)?;
        if found == *expected {
            return Ok(());
        }
        Err(Error::Mismatch { host: self.host.clone(), expected: expected.clone(), found })
    }
}

/// The place where an upload ends, with the digest of what was sent.
fn with_digest(place: &Uri, digest: &Digest) -> Uri {
    let separator = if place.query().is_some() { '&' } else { '?' };
    let text = format!("{place}{separator}digest={}", digest.to_string().replace(':', "%3A"));
    text.parse().unwrap_or_else(|_| place.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_added_to_whatever_the_registry_says() {
        let digest = Digest::of(b"");
        let plain = with_digest(&"https://h/v2/a/blobs/uploads/1".parse().unwrap(), &digest).to_string();
        assert!(plain.contains("/1?digest=sha256%3Ae3b0"), "{plain}");
        let state =
            with_digest(&"https://h/v2/a/blobs/uploads/1?_state=x%3D".parse().unwrap(), &digest).to_string();
        assert!(state.contains("?_state=x%3D&digest=sha256%3Ae3b0"), "{state}");
    }
}
