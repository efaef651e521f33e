//! Lists: snapshots, pages and the rules of `resourceVersion`.

use std::sync::Arc;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{Registry, Resource, Selector};
use crate::{
    error::{Cause, Details, Error, Reason, Result},
    store::{Key, Object, Start, Watch, WatchError},
};

/// What `resourceVersionMatch` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// The state at exactly this revision.
    Exact,
    /// Any state that is not older.
    NotOlderThan,
}

/// What a list asks for.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    /// The namespace, or all.
    pub namespace: Option<String>,
    /// Which objects.
    pub selector: Selector,
    /// At most so many; 0 for all.
    pub limit: usize,
    /// Where the last page ended.
    pub continue_token: String,
    /// The revision, as the client wrote it.
    pub resource_version: String,
    /// How the revision is meant.
    pub version_match: Option<Match>,
}

/// A list, or a page of one.
#[derive(Debug)]
pub struct List {
    /// The revision of the list.
    pub revision: u64,
    /// The objects.
    pub objects: Vec<Arc<Object>>,
    /// Where the next page begins; empty at the end.
    pub continue_token: String,
    /// How many are left after this page, where that can be told.
    pub remaining: Option<usize>,
}

/// What a watch asks for.
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// Where it begins.
    pub start: WatchStart,
}

/// Where a watch begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum WatchStart {
    /// With what exists.
    #[default]
    Now,
    /// After a revision.
    After(u64),
}

impl Registry {
    /// The objects that match.
    pub fn list(&self, resource: &Resource, options: &ListOptions) -> Result<List> {
        check_match(options)?;
        check_continue(options)?;
        let (snapshot_at, after) = self.list_position(options)?;
        let namespace = options.namespace.as_deref();
        let snapshot = match snapshot_at {
            None => self.store().snapshot(&resource.table, namespace),
            Some(revision) => self
                .store()
                .snapshot_at(&resource.table, namespace, revision)
                .map_err(|_| expired_list(options))?,
        };
        let mut objects = snapshot.objects;
        if let Some(after) = after {
            objects.retain(|object| object.key > after);
        }
        if !options.selector.is_empty() {
            objects.retain(|object| options.selector.matches(object));
        }
        let (continue_token, remaining) = page(&mut objects, options, snapshot.revision);
        Ok(List { revision: snapshot.revision, objects, continue_token, remaining })
    }

    /// Which revision to read, if not the present one, and after which key.
    fn list_position(&self, options: &ListOptions) -> Result<(Option<u64>, Option<Key>)> {
        if !options.continue_token.is_empty() {
            let (revision, key) = decode_token(&options.continue_token)?;
            let current = self.store().revision();
            if revision > current {
                return Err(too_large(revision, current));
            }
            return Ok((Some(revision), Some(key)));
        }
        let revision = parse_revision(&options.resource_version)?;
        let current = self.store().revision();
        if revision > current {
            return Err(too_large(revision, current));
        }
        let exact = options.version_match == Some(Match::Exact)
            // A page of a list at a given revision, without a word about how it is meant, means exactly.
            || (options.version_match.is_none() && options.limit > 0 && revision > 0);
        Ok((exact.then_some(revision), None))
    }

    /// A cursor over the changes of a resource.
    pub fn watch(&self, resource: &Resource, options: &WatchOptions) -> Result<Watch> {
        let start = match options.start {
            WatchStart::Now => Start::Snapshot,
            WatchStart::After(revision) => Start::After(revision),
        };
        self.store().watch(&resource.table, start).map_err(|error| match error {
            WatchError::Compacted(gone) => too_old(gone.requested, gone.oldest),
            WatchError::Future { requested, current } => too_large(requested, current),
        })
    }
}

fn expired_list(options: &ListOptions) -> Error {
    if options.continue_token.is_empty() {
        return Error::expired("The resourceVersion for the provided list is too old.");
    }
    Error::expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new \
         list without the continue parameter, or use the continue token in this response to retrieve the \
         remainder of the results. Continuing with the provided token results in an inconsistent list - \
         objects that were created, modified, or deleted between the time the first chunk was returned and now \
         may show up in the list.",
    )
}

/// The error of a watch that fell out of the history.
pub fn too_old(requested: u64, oldest: u64) -> Error {
    Error::expired(format!("too old resource version: {requested} ({oldest})"))
}

fn too_large(requested: u64, current: u64) -> Error {
    let message = format!("Too large resource version: {requested}, current: {current}");
    let mut error = Error::new(Reason::Timeout, format!("Timeout: {message}"));
    error.details = Some(Box::new(Details {
        causes: vec![Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            field: String::new(),
        }],
        retry_after_seconds: 1,
        ..Details::default()
    }));
    error
}

/// The revision that a client wrote; empty and "0" mean any.
pub fn parse_revision(text: &str) -> Result<u64> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| {
        Error::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": invalid syntax"
        ))
    })
}

/// A page goes on at the revision of the first one.
fn check_continue(options: &ListOptions) -> Result<()> {
    if !options.continue_token.is_empty() && !matches!(options.resource_version.as_str(), "" | "0") {
        return Err(Error::bad_request("specifying resource version is not allowed when using continue"));
    }
    Ok(())
}

impl ListOptions {
    /// Whether what is said of the revision fits together.
    pub(crate) fn check_match(&self) -> Result<()> {
        check_match(self)
    }
}

fn check_match(options: &ListOptions) -> Result<()> {
    let both = options.version_match.is_some()
        && options.resource_version.is_empty()
        && !options.continue_token.is_empty();
    if both {
        let causes = ["unless resourceVersion is provided", "when continue is provided"].map(|when| {
            Cause::forbidden("resourceVersionMatch", &format!("resourceVersionMatch is forbidden {when}"))
        });
        let what = crate::error::Named { group: "meta.k8s.io", resource: "ListOptions" };
        return Err(Error::invalid(what, "", causes.into()));
    }
    let refuse = |why: &str| {
        let cause = Cause::forbidden("resourceVersionMatch", why);
        let what = crate::error::Named { group: "meta.k8s.io", resource: "ListOptions" };
        Err(Error::invalid(what, "", vec![cause]))
    };
    match options.version_match {
        None => Ok(()),
        Some(_) if !options.continue_token.is_empty() => {
            refuse("resourceVersionMatch is forbidden when continue is provided")
        }
        Some(_) if options.resource_version.is_empty() => {
            refuse("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        Some(Match::Exact) if options.resource_version == "0" => {
            refuse("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        Some(_) => Ok(()),
    }
}

/// Cuts the list to a page. The remainder is only told where a selector cannot change it.
fn page(objects: &mut Vec<Arc<Object>>, options: &ListOptions, revision: u64) -> (String, Option<usize>) {
    if options.limit == 0 || objects.len() <= options.limit {
        return (String::new(), None);
    }
    let remaining = objects.len() - options.limit;
    objects.truncate(options.limit);
    let last = objects.last().expect("a page must not be empty");
    let token = encode_token(revision, &last.key);
    (token, options.selector.is_empty().then_some(remaining))
}

fn encode_token(revision: u64, key: &Key) -> String {
    let start = format!("{}/{}\u{0}", key.namespace, key.name);
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(token: &str) -> Result<(u64, Key)> {
    let invalid = || Error::bad_request("invalid continue token: continue key is not valid");
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| {
        // Go names the first byte that it cannot read, or that is left over.
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let last = token.len().saturating_sub(1);
        let place = token.bytes().position(|byte| !known(&byte)).unwrap_or(last);
        let why = format!("illegal base64 data at input byte {place}");
        Error::bad_request(format!("invalid continue token: continue key is not valid: {why}"))
    })?;
    let value: Value = serde_json::from_slice(&bytes).map_err(|_| {
        let first = char::from(bytes.first().copied().unwrap_or_default());
        let shown = if first.is_control() { format!("\\u{:04x}", u32::from(first)) } else { first.to_string() };
        Error::bad_request(format!(
            "invalid continue token: continue key is not valid: invalid character '{shown}' looking for beginning of value"
        ))
    })?;
    let revision = value["rv"].as_u64().ok_or_else(invalid)?;
    let start = value["start"].as_str().and_then(|start| start.strip_suffix('\u{0}')).ok_or_else(invalid)?;
    let (namespace, name) = start.split_once('/').ok_or_else(invalid)?;
    Ok((revision, Key::new(namespace, name)))
}
