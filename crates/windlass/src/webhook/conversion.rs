//! Conversion between the versions of a kind, through one of them: the hub.
//!
//! Every other version, a spoke, says how it becomes the hub and how it is made from it; two functions a
//! version instead of one for every pair. Name, namespace, uid and the rest of the metadata are the SDK's
//! business, as Kubernetes demands: a conversion may change labels and annotations, nothing else there.

use std::{collections::BTreeMap, fmt};

use kube::{
    Resource, ResourceExt,
    core::{
        Status,
        conversion::{ConversionRequest, ConversionResponse, ConversionReview},
    },
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use super::verdict::failure;
use crate::object::{Kind, Object};

/// A version of a kind that is not the hub.
///
/// # Guarantees to keep
///
/// From a spoke to the hub and back nothing may be lost. What the hub has no field for can be put into an
/// annotation with [`keep`] and taken out again with [`kept`].
pub trait Spoke: Object {
    /// The version that all others are converted through.
    type Hub: Object;

    /// This object as the hub.
    fn into_hub(self) -> Result<Self::Hub, ConversionError>;

    /// The hub as this version.
    fn from_hub(hub: Self::Hub) -> Result<Self, ConversionError>;
}

/// Why an object cannot be converted. The API server fails the user's request with this text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConversionError(String);

impl ConversionError {
    /// An error with this text.
    pub fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

type Convert = fn(Value) -> Result<Value, ConversionError>;

#[derive(Clone, Copy)]
struct Version {
    into_hub: Convert,
    from_hub: Convert,
}

/// All versions of a kind, and the ways between them.
#[derive(Clone)]
pub struct Conversion {
    hub: Kind,
    spokes: BTreeMap<String, Version>,
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let spokes: Vec<&String> = self.spokes.keys().collect();
        f.debug_struct("Conversion").field("hub", &self.hub.api_version()).field("spokes", &spokes).finish()
    }
}

impl Conversion {
    /// Conversion through the version `H`, without any spoke yet.
    pub fn hub<H: Object>() -> Self {
        Self { hub: Kind::of::<H>(), spokes: BTreeMap::new() }
    }

    /// Adds a version.
    ///
    /// # Panics
    ///
    /// When its hub is another than this one's, which is a mistake in the program.
    pub fn spoke<S: Spoke>(mut self) -> Self {
        assert_eq!(Kind::of::<S::Hub>(), self.hub, "a spoke must have the same hub as its conversion");
        let into_hub = |value| encode(&decode::<S>(value)?.into_hub()?);
        let from_hub = |value| encode(&S::from_hub(decode(value)?)?);
        self.spokes.insert(Kind::of::<S>().api_version(), Version { into_hub, from_hub });
        self
    }

    /// The group and kind that are converted.
    pub fn kind(&self) -> &Kind {
        &self.hub
    }

    /// One object in the version that is asked for, which is given as `group/version`.
    pub fn convert(&self, object: Value, desired: &str) -> Result<Value, ConversionError> {
        let from = object["apiVersion"].as_str().unwrap_or_default().to_owned();
        if from == desired {
            return Ok(object);
        }
        let metadata = object["metadata"].clone();
        let name = metadata["name"].as_str().unwrap_or_default().to_owned();
        let converted = self.through_hub(object, &from, desired);
        let mut converted = converted.map_err(|error| {
            ConversionError::new(format!(
                "failed to convert {} {name:?} from {from} to {desired}: {error}",
                self.hub.kind
            ))
        })?;
        converted["apiVersion"] = desired.into();
        converted["kind"] = self.hub.kind.clone().into();
        converted["metadata"] = restored(metadata, &converted["metadata"]);
        Ok(converted)
    }

    fn through_hub(&self, object: Value, from: &str, desired: &str) -> Result<Value, ConversionError> {
        let hub = self.hub.api_version();
        let object = if from == hub { object } else { (self.version(from)?.into_hub)(object)? };
        if desired == hub { Ok(object) } else { (self.version(desired)?.from_hub)(object) }
    }

    fn version(&self, api_version: &str) -> Result<&Version, ConversionError> {
        self.spokes.get(api_version).ok_or_else(|| {
            let known: Vec<&str> = self.spokes.keys().map(String::as_str).collect();
            let hub = self.hub.api_version();
            ConversionError::new(format!(
                "version {api_version:?} is not known; known are {hub} and {}",
                known.join(", ")
            ))
        })
    }

    /// Answers a review, as the server does: for tests without one.
    pub fn review(&self, review: ConversionReview) -> ConversionReview {
        answer(std::slice::from_ref(self), review).0
    }
}

/// Answers a review with whichever conversion knows the kind of its objects. The flag tells of a panic.
pub(super) fn answer(conversions: &[Conversion], review: ConversionReview) -> (ConversionReview, bool) {
    let request = match ConversionRequest::from_review(review) {
        Ok(request) => request,
        Err(error) => {
            let status = failure(400, "BadRequest", error.to_string());
            return (ConversionResponse::invalid(*status).into_review(), false);
        }
    };
    let mut panicked = false;
    let converted: Result<Vec<Value>, Box<Status>> = request
        .objects
        .iter()
        .map(|object| {
            let isolated =
                std::panic::catch_unwind(|| one(conversions, object.clone(), &request.desired_api_version));
            isolated.unwrap_or_else(|panic| {
                panicked = true;
                let text = super::router::panic_text(&*panic);
                tracing::error!(panic = text, "conversion panicked");
                Err(failure(500, "InternalError", format!("the conversion panicked: {text}")))
            })
        })
        .collect();
    let response = ConversionResponse::for_request(request);
    let response = match converted {
        Ok(objects) => response.success(objects),
        Err(status) => response.failure(*status),
    };
    (response.into_review(), panicked)
}

fn one(conversions: &[Conversion], object: Value, desired: &str) -> Result<Value, Box<Status>> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let group = desired.split_once('/').map_or("", |(group, _)| group);
    let conversion = conversions.iter().find(|c| c.hub.kind == kind && c.hub.group == group);
    let Some(conversion) = conversion else {
        return Err(failure(
            400,
            "BadRequest",
            format!("no conversion of {kind} to {desired} is registered"),
        ));
    };
    conversion.convert(object, desired).map_err(|error| failure(422, "Invalid", error.to_string()))
}

/// The metadata of the original, with the labels and annotations of the converted object.
fn restored(mut original: Value, converted: &Value) -> Value {
    if let Some(fields) = original.as_object_mut() {
        for name in ["labels", "annotations"] {
            match converted.get(name).filter(|value| !value.is_null()) {
                Some(value) => fields.insert(name.to_owned(), value.clone()),
                None => fields.remove(name),
            };
        }
    }
    original
}

fn decode<K: DeserializeOwned>(value: Value) -> Result<K, ConversionError> {
    serde_json::from_value(value).map_err(ConversionError::new)
}

fn encode(value: &impl Serialize) -> Result<Value, ConversionError> {
    serde_json::to_value(value).map_err(ConversionError::new)
}

fn annotation(version: &str) -> String {
    format!("windlass.dev/{version}-fields")
}

/// Puts fields that only `version` has into an annotation of the object, so that they survive in the hub.
pub fn keep<K: Resource>(
    object: &mut K,
    version: &str,
    fields: &impl Serialize,
) -> Result<(), ConversionError> {
    let text = serde_json::to_string(fields).map_err(ConversionError::new)?;
    object.annotations_mut().insert(annotation(version), text);
    Ok(())
}

/// Takes the fields that [`keep`] put away out of the object again.
pub fn kept<T: DeserializeOwned, K: Resource>(
    object: &mut K,
    version: &str,
) -> Result<Option<T>, ConversionError> {
    let Some(annotations) = &mut object.meta_mut().annotations else { return Ok(None) };
    let Some(text) = annotations.remove(&annotation(version)) else { return Ok(None) };
    if annotations.is_empty() {
        object.meta_mut().annotations = None;
    }
    serde_json::from_str(&text).map(Some).map_err(ConversionError::new)
}
