//! Large answers, compressed for clients that ask for it. An answer enters, perhaps a smaller one leaves.
//!
//! The rules are those of the real server. Objects, lists and discovery are worth it beyond 128 KiB, at the cheapest
//! level; what asks for gzip with a weight does not ask for it. The document of OpenAPI v2 is compressed by a
//! handler of its own, which reads weights. OpenAPI v3, logs and `/version` are never compressed.
//!
//! The real server also compresses watches that begin with the state. Here they go out as the bytes that all
//! watchers share: to compress them for each would cost more than it saves.

use std::io::Write;

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{HeaderValue, Response, header, request::Parts};
use http_body::Body as _;

use super::{Body, body::Rest};

/// An answer must be larger than this to be compressed.
const WORTHWHILE: u64 = 128 * 1024;

/// The same for the one document that has a handler of its own.
const DOCUMENT: u64 = 1400;

/// How much is compressed before other requests have their turn.
const TURN: usize = 64 * 1024;

/// The answer as this client should get it.
pub(super) fn for_client(parts: &Parts, response: Response<Body>) -> Response<Body> {
    let Some(accepted) = parts.headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok())
    else {
        return response;
    };
    let path = parts.uri.path();
    let (wanted, threshold) = if path == "/openapi/v2" {
        (weighs_gzip(accepted), DOCUMENT)
    } else if path.starts_with("/api") {
        (names_gzip(accepted), WORTHWHILE)
    } else {
        return response;
    };
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let is_large = response.body().size_hint().lower() > threshold;
    if wanted && is_json && is_large { compressed(response) } else { response }
}

/// Whether gzip is named, and nothing said about how much it is liked.
fn names_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|one| one.trim() == "gzip")
}

/// Whether gzip is named with a weight above nothing.
fn weighs_gzip(accepted: &str) -> bool {
    accepted.split(',').any(|one| {
        let (name, weight) = one.split_once(";q=").unwrap_or((one, "1"));
        name.trim() == "gzip" && weight.trim().parse::<f32>().is_ok_and(|weight| weight > 0.0)
    })
}

fn compressed(response: Response<Body>) -> Response<Body> {
    let (mut head, body) = response.into_parts();
    let body = match body.into_rest() {
        Ok((rest, charge)) => Body::made(Box::new(Gzip::of(rest)), None, charge),
        Err(endless) => return Response::from_parts(head, endless),
    };
    head.headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    head.headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(head, body)
}

/// Pieces, compressed while they are read: nothing is held but what the client has not taken.
struct Gzip {
    rest: Rest,
    /// What is left of a piece that is too long for one turn.
    piece: Bytes,
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl Gzip {
    fn of(rest: Rest) -> Self {
        let encoder = Some(GzEncoder::new(Vec::new(), Compression::fast()));
        Self { rest, piece: Bytes::new(), encoder }
    }
}

impl Iterator for Gzip {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let mut encoder = self.encoder.take()?;
        loop {
            if self.piece.is_empty() {
                match self.rest.next() {
                    Some(piece) => self.piece = piece,
                    None => {
                        let rest = encoder.finish().expect("memory must take what is written to it");
                        return Some(rest.into());
                    }
                }
            }
            let part = self.piece.split_to(self.piece.len().min(TURN));
            encoder.write_all(&part).expect("memory must take what is written to it");
            let ready = std::mem::take(encoder.get_mut());
            if !ready.is_empty() {
                self.encoder = Some(encoder);
                return Some(ready.into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_word_asks_for_gzip() {
        for yes in ["gzip", "deflate, gzip", " gzip ,br"] {
            assert!(names_gzip(yes), "{yes}");
        }
        for no in ["", "gzip;q=0", "gzip;q=1.0", "x-gzip", "*", "identity"] {
            assert!(!names_gzip(no), "{no}");
        }
    }

    #[test]
    fn the_document_is_compressed_by_weight() {
        assert!(weighs_gzip("gzip") && weighs_gzip("br, gzip;q=0.5"));
        assert!(!weighs_gzip("gzip;q=0") && !weighs_gzip("br") && !weighs_gzip("gzip;q=much"));
    }
}
