//! Versions of custom resources: from the one that is stored to the one that is asked for, and back.
//!
//! Without a webhook only the name of the version changes. With one, the objects of an answer go to it in
//! one `ConversionReview`, and what it makes of an object is kept for as long as that version of the object:
//! the real server keeps converted objects in its watch cache just so.

mod review;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Presented, Registry, Resource, decode, resource::text};
use crate::{
    error::{Error, Result},
    merge::Seen,
    store::{Key, Object, TableName},
    webhook::{Call, ClientConfig},
};

/// How long a conversion may take.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The longest answer that is read: a list comes back in one piece.
const ANSWER_LIMIT: usize = 256 * 1024 * 1024;

/// How many converted objects are kept.
const KEPT: usize = 4096;

/// The webhook of a definition.
#[derive(Debug, Clone)]
pub(crate) struct Webhook {
    config: ClientConfig,
    versions: Vec<String>,
}

impl Webhook {
    /// The webhook of a definition, if it has one.
    pub(super) fn of(definition: &Value) -> Option<Self> {
        let conversion = definition.pointer("/spec/conversion")?;
        if text(conversion, "/strategy") != "Webhook" {
            return None;
        }
        let webhook = &conversion["webhook"];
        Some(Self {
            config: serde_json::from_value(webhook["clientConfig"].clone()).unwrap_or_default(),
            versions: serde_json::from_value(webhook["conversionReviewVersions"].clone()).unwrap_or_default(),
        })
    }
}

/// Which converted object: its place, its revision, and the version of the definition that it was made by.
type Name = (TableName, Key, u64, String, u64);

/// What webhooks have converted.
#[derive(Debug, Default)]
pub(super) struct Converted {
    kept: Mutex<BTreeMap<Name, Arc<Value>>>,
}

impl Converted {
    fn get(&self, name: &Name) -> Option<Arc<Value>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn put(&self, name: Name, object: &Value) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= KEPT {
            kept.clear();
        }
        kept.insert(name, Arc::new(object.clone()));
    }
}

impl Registry {
    /// An object as the managers of another version see it. Where a webhook would have to be asked, they see what is there.
    pub(super) fn seen_in(&self, resource: &Resource, version: &str, object: &Value) -> Seen {
        let catalog = self.catalog();
        let same = |other: &&Arc<Resource>| other.table == resource.table && other.api_version() == version;
        let Some(other) = catalog.resources().find(same) else { return Seen::Missing };
        if other.custom().is_some_and(|served| served.webhook.is_some()) {
            return Seen::Same;
        }
        Seen::As(other.schema().clone(), resource.convert(other, object.clone()))
    }

    /// A stored object as a version of its resource shows it.
    pub async fn present(&self, resource: &Resource, object: &Arc<Object>) -> Result<Presented> {
        if resource.webhook_for(object).is_none() {
            return Ok(resource.present(object));
        }
        let shown = self.present_by_webhook(resource, std::slice::from_ref(object)).await;
        match shown {
            Ok(mut shown) => Ok(shown.pop().expect("one object must come back for one")),
            Err(why) => Err(Error::internal(corrupt(resource, object, &why))),
        }
    }

    /// The same for an object that is about to be changed.
    pub(super) async fn present_for_change(
        &self,
        resource: &Resource,
        object: &Arc<Object>,
    ) -> Result<Value> {
        if resource.webhook_for(object).is_none() {
            return Ok(resource.present(object).into_value());
        }
        let shown = self.present_by_webhook(resource, std::slice::from_ref(object)).await;
        match shown {
            Ok(mut shown) => Ok(shown.pop().expect("one object must come back for one").into_value()),
            Err(why) => Err(plain(format!("object not decodable revision={}: {why}", object.revision))),
        }
    }

    /// The objects of a list, in as few calls as there can be.
    pub async fn present_all(&self, resource: &Resource, objects: &[Arc<Object>]) -> Result<Vec<Presented>> {
        let concerned: Vec<&Arc<Object>> =
            objects.iter().filter(|object| resource.webhook_for(object).is_some()).collect();
        let Some(first) = concerned.first() else {
            return Ok(objects.iter().map(|object| resource.present(object)).collect());
        };
        self.present_by_webhook(resource, objects)
            .await
            .map_err(|why| unreadable_list(resource, first, concerned.len(), &why))
    }

    /// The same, one after the other: what nobody has to be asked for is converted when it is wanted.
    pub(crate) async fn show_all(
        &self,
        resource: &Arc<Resource>,
        objects: Vec<Arc<Object>>,
    ) -> Result<Box<dyn Iterator<Item = Presented> + Send>> {
        if objects.iter().any(|object| resource.webhook_for(object).is_some()) {
            return Ok(Box::new(self.present_all(resource, &objects).await?.into_iter()));
        }
        let resource = Arc::clone(resource);
        Ok(Box::new(objects.into_iter().map(move |object| resource.present(&object))))
    }

    async fn present_by_webhook(
        &self,
        resource: &Resource,
        objects: &[Arc<Object>],
    ) -> Result<Vec<Presented>, String> {
        let mut shown: Vec<Option<Presented>> = Vec::with_capacity(objects.len());
        let (mut places, mut waiting) = (Vec::new(), Vec::new());
        for (place, object) in objects.iter().enumerate() {
            let ready = if resource.webhook_for(object).is_none() {
                Some(resource.present(object))
            } else {
                self.converted.get(&name(resource, object)).map(|kept| Presented::Converted((*kept).clone()))
            };
            if ready.is_none() {
                places.push(place);
                waiting.push(decode::stored(object));
            }
            shown.push(ready);
        }
        let converted = self.convert_by_webhook(resource, &resource.api_version(), waiting).await?;
        for (place, mut object) in places.into_iter().zip(converted) {
            resource.complete(&mut object);
            self.converted.put(name(resource, &objects[place]), &object);
            shown[place] = Some(Presented::Converted(object));
        }
        Ok(shown.into_iter().flatten().collect())
    }

    /// The form in which an object of a version is stored.
    pub(super) async fn store_form(&self, resource: &Resource, object: Value) -> Result<Value> {
        let Some(served) = resource.custom().filter(|served| served.webhook.is_some()) else {
            return Ok(resource.to_storage(object));
        };
        let wanted = served.storage_api_version().to_owned();
        let converted = self.convert_by_webhook(resource, &wanted, vec![object]).await;
        let mut stored = converted.map_err(plain)?.pop().expect("one object must come back for one");
        let version = wanted.rsplit('/').next().unwrap_or_default();
        if let Some(storage) = self.catalog().find(&resource.group, version, &resource.plural) {
            storage.schema().prune(&mut stored);
        }
        Ok(stored)
    }

    /// An object of one version in another version of the same resource.
    pub(crate) async fn convert(&self, from: &Resource, to: &Resource, object: Value) -> Result<Value> {
        if from.custom().is_none_or(|served| served.webhook.is_none()) {
            return Ok(from.convert(to, object));
        }
        let converted = self.convert_by_webhook(to, &to.api_version(), vec![object]).await;
        let mut object =
            converted.map_err(Error::internal)?.pop().expect("one object must come back for one");
        if from.version != to.version {
            to.complete(&mut object);
        }
        Ok(object)
    }

    /// Objects of any version in the version that is wanted; those that have it already are left alone.
    async fn convert_by_webhook(
        &self,
        resource: &Resource,
        wanted: &str,
        mut objects: Vec<Value>,
    ) -> Result<Vec<Value>, String> {
        let places: Vec<usize> =
            (0..objects.len()).filter(|place| text(&objects[*place], "/apiVersion") != wanted).collect();
        let webhook = resource.custom().and_then(|served| served.webhook.as_ref());
        let (Some(first), Some(webhook)) = (places.first(), webhook) else { return Ok(objects) };
        let of = format!("{}, Kind={}", text(&objects[*first], "/apiVersion"), resource.kind);
        let version = review::version(&webhook.versions)
            .ok_or_else(|| "no supported conversion review versions".to_owned())?;
        let sent: Vec<Value> = places.iter().map(|place| objects[*place].clone()).collect();
        let uid = self.environment().uid();
        let body = review::question(version, &uid, wanted, &sent);
        let call = Call {
            config: &webhook.config,
            body: &body,
            timeout: TIMEOUT,
            limit: ANSWER_LIMIT,
            agent: "kube-apiserver",
        };
        let answer = self.call_webhook(&call).await;
        let answer = answer.map_err(|error| format!("conversion webhook for {of} failed: {error}"))?;
        let returned = review::converted(version, &uid, &answer)
            .map_err(|why| format!("conversion webhook for {of} failed: {why}"))?;
        if returned.len() != sent.len() {
            let (returned, sent) = (returned.len(), sent.len());
            return Err(format!("conversion webhook for {of} returned {returned} objects, expected {sent}"));
        }
        for (place, converted) in places.into_iter().zip(returned) {
            let accepted = review::accept(wanted, &objects[place], converted);
            objects[place] = accepted.map_err(|why| format!("conversion webhook for {of} returned {why}"))?;
        }
        Ok(objects)
    }
}

fn name(resource: &Resource, object: &Object) -> Name {
    let since = resource.custom().map_or(0, super::crd::Served::since);
    (resource.table.clone(), object.key.clone(), object.revision, resource.version.to_string(), since)
}

impl Resource {
    /// The webhook that must be asked before this version can show the object.
    fn webhook_for(&self, object: &Object) -> Option<&Webhook> {
        let served = self.custom()?;
        if served.is_of_version(object) { None } else { served.webhook.as_ref() }
    }

    /// Drops what the schema does not know and fills in defaults.
    fn complete(&self, object: &mut Value) {
        self.schema().prune(object);
        self.schema().apply_defaults(object);
    }
}

/// A failure without a reason, as the real server answers where a conversion fails in a write.
fn plain(message: String) -> Error {
    Error::of_status(json!({"status": "Failure", "message": message, "code": 500}), 500, message)
}

fn corrupt(resource: &Resource, object: &Object, why: &str) -> String {
    storage_error(&path(resource, object), object, why)
}

fn path(resource: &Resource, object: &Object) -> String {
    let Key { namespace, name } = &object.key;
    let place = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
    format!("/{}/{}/{place}{name}", resource.group, resource.plural)
}

fn storage_error(path: &str, object: &Object, why: &str) -> String {
    format!(
        "StorageError: corrupt object, Code: 7, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: object not \
         decodable revision={}: {why}",
        object.revision
    )
}

fn unreadable_list(resource: &Resource, first: &Object, count: usize, why: &str) -> Error {
    let cause = storage_error(&format!("/registry{}", path(resource, first)), first, why);
    let more = if count > 1 { format!(" (and {} more)", count - 1) } else { String::new() };
    let message = format!("failed to read one or more {} from the storage: {cause}{more}", resource.named());
    let status = json!({
        "status": "Failure", "message": message, "reason": "StorageReadError", "code": 500,
        "details": {"name": "list", "group": &*resource.group, "kind": &*resource.plural,
            "causes": [{"reason": "UnexpectedServerResponse", "message": cause}]},
    });
    Error::of_status(status, 500, message)
}
