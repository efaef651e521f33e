//! Content negotiation: in which shape a client wants its answer.

use crate::error::{Error, Reason, Result};

/// The shape of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// The object or list itself.
    Object,
    /// Rows and columns, as `kubectl get` prints them.
    Table,
    /// The metadata alone.
    Metadata,
    /// The metadata of each object of a list.
    MetadataList,
}

const KNOWN: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// The first shape of the `Accept` header that can be served. JSON is the only encoding.
pub(super) fn negotiate(accept: &str) -> Result<Shape> {
    if accept.trim().is_empty() {
        return Ok(Shape::Object);
    }
    accept.split(',').find_map(shape).ok_or_else(|| {
        if accept.contains("application/json") || accept.contains("application/vnd.kubernetes.protobuf") {
            return not_acceptable();
        }
        let message = format!("406: Not Acceptable\n\nAvailable representations: {KNOWN}");
        let mut error = Error::new(Reason::NotAcceptable, message);
        error.details = Some(Box::default());
        error
    })
}

/// The media types are known, but not what the client wants of them.
pub(super) fn not_acceptable() -> Error {
    Error::new(Reason::NotAcceptable, format!("only the following media types are accepted: {KNOWN}"))
}

fn shape(range: &str) -> Option<Shape> {
    let mut parts = range.split(';').map(str::trim);
    let media = parts.next()?;
    if !matches!(media, "application/json" | "application/*" | "*/*") {
        return None;
    }
    let parameters: Vec<(&str, &str)> = parts.filter_map(|part| part.split_once('=')).collect();
    let parameter = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
    match parameter("as") {
        None => Some(Shape::Object),
        Some("Table") if parameter("g") == Some("meta.k8s.io") => Some(Shape::Table),
        Some("PartialObjectMetadataList") if parameter("g") == Some("meta.k8s.io") => {
            Some(Shape::MetadataList)
        }
        Some("PartialObjectMetadata") if parameter("g") == Some("meta.k8s.io") => Some(Shape::Metadata),
        Some(_) => None,
    }
}

/// Whether the client asks for the version of tables and metadata that came before the first.
pub(super) fn is_beta(accept: &str) -> bool {
    let first = accept.split(',').find(|range| shape(range).is_some()).unwrap_or_default();
    first.split(';').any(|part| part.trim() == "v=v1beta1")
}

/// Whether the client understands aggregated discovery, version 2.
pub(super) fn aggregated(accept: &str) -> bool {
    accept.split(',').map(str::trim).any(|range| {
        range.starts_with("application/json")
            && range.contains("g=apidiscovery.k8s.io")
            && range.contains("as=APIGroupDiscoveryList")
            && range.split(';').any(|part| part.trim() == "v=v2")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_shape_that_can_be_served_wins() {
        let kubectl = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,\
                       application/json";
        assert_eq!(negotiate(kubectl).unwrap(), Shape::Table);
        assert_eq!(negotiate("application/vnd.kubernetes.protobuf,application/json").unwrap(), Shape::Object);
        assert_eq!(negotiate("").unwrap(), Shape::Object);
        let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        assert_eq!(negotiate(metadata).unwrap(), Shape::Metadata);
        assert!(negotiate("application/vnd.kubernetes.protobuf").is_err());
    }
}
