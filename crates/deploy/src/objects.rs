//! The objects of custom kinds: how many there are, what keeps them, and their end.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use windlass::kube::{
    self, Api, Client, ResourceExt,
    api::{DynamicObject, ListParams, PartialObjectMeta},
    core::{ApiResource, GroupVersionKind},
};

use crate::{Tell, count, error::Error, target::Target};

/// How many objects one answer of the API server holds.
pub(crate) const PAGE: u32 = 500;
/// How many names are said before the rest is a number.
const NAMED: usize = 10;
/// How often it is looked whether objects are gone, and how often it is said which are not.
const LOOK: Duration = Duration::from_millis(500);
const SAY: Duration = Duration::from_secs(10);

/// The objects that would be lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// The kinds, and how many objects each has.
    pub kinds: Vec<(String, usize)>,
    /// All of them.
    pub total: usize,
}

/// An object of a custom kind.
#[derive(Clone, Debug)]
pub(crate) struct Custom {
    pub(crate) target: Target,
    uid: Option<String>,
    finalizers: Vec<String>,
}

impl Custom {
    pub(crate) fn is_held(&self) -> bool {
        !self.finalizers.is_empty()
    }

    /// The object, and the finalizers that keep it.
    pub(crate) fn text(&self) -> String {
        if self.finalizers.is_empty() {
            return self.target.to_string();
        }
        format!("{} (finalizer {})", self.target, self.finalizers.join(", "))
    }
}

/// The kind of a definition, in the version that is stored, or else in one that is served.
pub(crate) fn resource(definition: &Value) -> Option<ApiResource> {
    resources(definition).into_iter().next()
}

/// The kind of a definition in every version that is served, first that which is stored.
fn resources(definition: &Value) -> Vec<ApiResource> {
    let text = |pointer: &str| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let mut served: Vec<&Value> = versions.filter(|version| version["served"] == true).collect();
    served.sort_by_key(|version| version["storage"] != true);
    let kind = |version: &Value| {
        let kind =
            GroupVersionKind::gvk(text("/spec/group"), version["name"].as_str()?, text("/spec/names/kind"));
        Some(ApiResource::from_gvk_with_plural(&kind, text("/spec/names/plural")))
    };
    served.into_iter().filter_map(kind).collect()
}

/// Every object of the kind of a definition. If nobody is there to convert objects that are stored in another version, in
/// the first version that shows them.
pub(crate) async fn of(client: &Client, definition: &Value) -> Result<Vec<Custom>, Error> {
    let mut first = None;
    for kind in resources(definition) {
        match all(client, &kind).await {
            Ok(found) => return Ok(found),
            Err(error @ Error::Request { .. }) => first = first.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    first.map_or_else(|| Ok(Vec::new()), Err)
}

/// Every object of a kind: who it is, and what keeps it.
async fn all(client: &Client, kind: &ApiResource) -> Result<Vec<Custom>, Error> {
    let api = Api::<DynamicObject>::all_with(client.clone(), kind);
    let failed = |error: kube::Error| Error::Request {
        verb: "list",
        what: format!("{} in {}", kind.plural, kind.api_version),
        source: error.into(),
    };
    let (mut found, mut next) = (Vec::new(), None::<String>);
    loop {
        let mut params = ListParams::default().limit(PAGE);
        params.continue_token = next.take();
        let page = match api.list_metadata(&params).await {
            Ok(page) => page,
            // A kind that is not served any more has no objects that anybody could see.
            Err(kube::Error::Api(status)) if status.code == 404 => return Ok(found),
            Err(error) => return Err(failed(error)),
        };
        next = page.metadata.continue_.filter(|token| !token.is_empty());
        found.extend(page.items.into_iter().map(|object| custom(kind, object)));
        if next.is_none() {
            return Ok(found);
        }
    }
}

fn custom(kind: &ApiResource, object: PartialObjectMeta<DynamicObject>) -> Custom {
    let target = Target { resource: kind.clone(), namespace: object.namespace(), name: object.name_any() };
    Custom { target, uid: object.uid(), finalizers: object.finalizers().to_vec() }
}

/// Every object of the kinds of these definitions, as far as the cluster has those.
pub(crate) async fn of_definitions<'a>(
    client: &Client,
    definitions: impl Iterator<Item = &'a Value>,
) -> Result<Vec<(String, Vec<Custom>)>, Error> {
    let mut found = Vec::new();
    for definition in definitions {
        let target = Target::of(definition);
        let Some(live) = target.found(client).await? else { continue };
        let live = serde_json::to_value(live).unwrap_or_default();
        found.push((target.name, of(client, &live).await?));
    }
    Ok(found)
}

/// What would be lost with these objects.
pub(crate) fn loss(objects: &[(String, Vec<Custom>)]) -> Loss {
    let kinds: Vec<(String, usize)> =
        objects.iter().filter(|(_, of)| !of.is_empty()).map(|(name, of)| (name.clone(), of.len())).collect();
    Loss { total: kinds.iter().map(|(_, count)| count).sum(), kinds }
}

/// Says how many objects there are of each kind, and the names of the first ones.
pub(crate) fn show(tell: Tell, objects: &[(String, Vec<Custom>)]) {
    for (name, of) in objects.iter().filter(|(_, of)| !of.is_empty()) {
        tell(&format!("{name} has {}: {}", count::objects(of.len()), names(of)));
    }
}

pub(crate) fn names(objects: &[Custom]) -> String {
    let named: Vec<String> = objects.iter().take(NAMED).map(Custom::text).collect();
    let more = objects.len().saturating_sub(NAMED);
    if more > 0 { format!("{}, and {more} more", named.join(", ")) } else { named.join(", ") }
}

/// Deletes objects, and waits until they are gone: their operator may have to clean up after them.
pub(crate) async fn end(
    client: &Client,
    objects: Vec<Custom>,
    limit: Duration,
    tell: Tell<'_>,
) -> Result<(), Error> {
    for object in &objects {
        if object.target.delete(client, object.uid.clone()).await? {
            tell(&format!("deleted {}", object.target));
        }
    }
    let (begin, mut said) = (Instant::now(), Instant::now());
    let mut waiting = objects;
    loop {
        let mut still = Vec::new();
        for object in waiting {
            let found = object.target.found(client).await?;
            if let Some(found) = found.filter(|found| found.metadata.uid == object.uid) {
                still.push(Custom { finalizers: found.finalizers().to_vec(), ..object });
            }
        }
        waiting = still;
        if waiting.is_empty() {
            return Ok(());
        }
        if begin.elapsed() >= limit {
            return Err(Error::Remaining { objects: waiting.iter().map(Custom::text).collect(), limit });
        }
        if said.elapsed() >= SAY {
            tell(&format!("waiting for the end of {}", names(&waiting)));
            said = Instant::now();
        }
        tokio::time::sleep(LOOK).await;
    }
}
