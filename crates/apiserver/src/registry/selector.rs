//! Label and field selectors: what they say, and whether an object matches.

mod demand;

use windlass_apimachinery::{fields, labels};

use self::demand::FieldDemands;
use super::resource::Resource;
use crate::{
    error::{Error, Result},
    store::Object,
};

/// A label selector and a field selector, parsed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    labels: labels::Selector,
    fields: FieldDemands,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldRequirement {
    place: FieldPlace,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FieldPlace {
    Name,
    Namespace,
    /// The place in the object's own list of selectable fields.
    Own(usize),
    /// The place in the list that the definition of a custom kind has now. Objects may have been written when it had
    /// another one, so they are looked into.
    Custom(usize),
}

impl Selector {
    /// Parses both selectors of a request for `resource`.
    pub fn parse(resource: &Resource, labels: &str, fields: &str) -> Result<Self> {
        let labels =
            labels::Selector::parse(labels).map_err(|error| Error::bad_request(error.to_string()))?;
        let custom = if resource.custom().is_some() { resource.selectable.clone() } else { Vec::new() };
        Ok(Self { labels, fields: FieldDemands::new(parse_fields(resource, fields)?, custom) })
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }

    /// The one name that can match, if the selector says so.
    pub fn name(&self) -> Option<&str> {
        self.fields.name()
    }

    /// Whether the object matches.
    pub fn matches(&self, object: &Object) -> bool {
        self.labels.matches(object.labels.iter().map(|(key, value)| (&**key, &**value)))
            && self.fields.hold(object)
    }
}

fn parse_fields(resource: &Resource, selector: &str) -> Result<Vec<FieldRequirement>> {
    let selector =
        fields::Selector::parse(selector).map_err(|error| Error::bad_request(error.to_string()))?;
    let requirements = selector.requirements().iter().cloned();
    requirements
        .map(|fields::Requirement { field, value, equal }| {
            Ok(FieldRequirement { place: field_place(resource, &field)?, value, equal })
        })
        .collect()
}

fn field_place(resource: &Resource, field: &str) -> Result<FieldPlace> {
    let stored = match &resource.strategy.conversion {
        Some(conversion) => (conversion.stored_field)(field),
        None => field.into(),
    };
    match &*stored {
        "metadata.name" => Ok(FieldPlace::Name),
        "metadata.namespace" if resource.namespaced || resource.custom().is_none() => {
            Ok(FieldPlace::Namespace)
        }
        _ => {
            resource
                .selectable
                .iter()
                .position(|known| known.name == stored)
                .map(|place| {
                    if resource.custom().is_some() {
                        FieldPlace::Custom(place)
                    } else {
                        FieldPlace::Own(place)
                    }
                })
                .ok_or_else(|| unsupported_field(resource, field))
        }
    }
}

/// Kinds that have selectable fields of their own say it in their own words, all others in common ones.
fn unsupported_field(resource: &Resource, field: &str) -> Error {
    let own = resource.custom().is_some() || !resource.selectable.is_empty();
    Error::bad_request(match resource.strategy.unknown_field {
        Some(unknown) => unknown(field),
        None if own => format!("field label not supported: {field}"),
        None => {
            format!(
                "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
            )
        }
    })
}
