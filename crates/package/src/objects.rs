//! The objects that run an operator, as its program prints them, and looking into them.
//!
//! The program is asked with names that nobody would give ([`RELEASE_NAMESPACE`], [`WATCHED_NAMESPACE`]), so that every
//! place where they stand is known for what it is, also within a longer text.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::Error;

/// The namespace of the operator, for the program that prints the objects. Whoever installs the package chooses it.
pub const RELEASE_NAMESPACE: &str = "windlass-release-namespace";

/// A namespace that the operator is restricted to, for the program that prints the objects.
pub const WATCHED_NAMESPACE: &str = "windlass-watched-namespace";

/// Everything that runs an operator in a cluster, in the order in which it is applied.
#[derive(Clone, Debug)]
pub struct Objects {
    all: Vec<Value>,
    restricted: Option<Vec<Value>>,
    optional: Vec<Value>,
    cert_managed: Option<CertManaged>,
}

/// The same objects, where cert-manager issues the certificate of the webhooks.
#[derive(Clone, Debug)]
pub(crate) struct CertManaged {
    pub(crate) all: Vec<Value>,
    /// Whether that is the default.
    pub(crate) usual: bool,
}

impl Objects {
    /// The objects of an operator that watches all namespaces and lives in [`RELEASE_NAMESPACE`].
    ///
    /// # Errors
    ///
    /// When there is no Deployment or no ServiceAccount: then they do not run an operator.
    pub fn new(all: Vec<Value>) -> Result<Self, Error> {
        let objects = Self { all, restricted: None, optional: Vec::new(), cert_managed: None };
        objects.deployment()?;
        objects
            .all
            .iter()
            .find(|object| kind(object) == "ServiceAccount")
            .ok_or(Error::Missing("ServiceAccount"))?;
        Ok(objects)
    }

    /// The same for an operator that watches [`WATCHED_NAMESPACE`] alone. An operator that says itself which namespaces
    /// it watches prints the same objects in both cases, and cannot be restricted.
    pub fn restricted(mut self, objects: Vec<Value>) -> Self {
        let restricted = objects.iter().any(|object| namespace(object) == Some(WATCHED_NAMESPACE));
        self.restricted = restricted.then_some(objects);
        self
    }

    /// Objects that not every cluster has a use for: those of the Prometheus operator, policies of the network. A chart
    /// has them behind switches that are off.
    pub fn optional(mut self, objects: Vec<Value>) -> Self {
        self.optional = objects;
        self
    }

    /// The objects of an operator whose webhooks have their certificate from cert-manager, and whether that is the default
    /// of a chart. One without webhooks prints the same objects in both cases, and has nothing to choose.
    pub fn cert_managed(mut self, all: Vec<Value>, usual: bool) -> Self {
        let issued = all.iter().any(|object| kind(object) == "Certificate");
        self.cert_managed = issued.then_some(CertManaged { all, usual });
        self
    }

    /// The objects for cert-manager, if there is a choice.
    pub(crate) fn when_cert_managed(&self) -> Option<&CertManaged> {
        self.cert_managed.as_ref()
    }

    /// What only some have a use for.
    pub(crate) fn when_wanted(&self) -> &[Value] {
        &self.optional
    }

    /// Every object.
    pub fn all(&self) -> &[Value] {
        &self.all
    }

    /// The objects of the operator when it is restricted to a namespace, if it can be.
    pub(crate) fn when_restricted(&self) -> Option<&[Value]> {
        self.restricted.as_deref()
    }

    /// What runs the operator.
    pub(crate) fn deployment(&self) -> Result<&Value, Error> {
        self.all.iter().find(|object| kind(object) == "Deployment").ok_or(Error::Missing("Deployment"))
    }

    /// Who the operator runs as.
    pub(crate) fn account(&self) -> &str {
        let account = self.all.iter().find(|object| kind(object) == "ServiceAccount");
        account.map(name).unwrap_or_default()
    }

    /// The operator's own name, by which its objects begin.
    pub(crate) fn name(&self) -> &str {
        self.all.iter().find(|object| kind(object) == "Deployment").map(name).unwrap_or_default()
    }

    /// The custom kinds.
    pub(crate) fn crds(&self) -> impl Iterator<Item = &Value> {
        self.all.iter().filter(|object| is_crd(object))
    }

    /// The roles that the operator itself is bound to.
    pub(crate) fn bound(objects: &[Value], account: &str) -> BTreeSet<(String, Option<String>, String)> {
        let bindings = objects.iter().filter(|object| kind(object).ends_with("RoleBinding"));
        let ours = bindings.filter(|binding| {
            let subjects = binding["subjects"].as_array().into_iter().flatten();
            subjects
                .into_iter()
                .any(|subject| subject["kind"] == "ServiceAccount" && subject["name"] == account)
        });
        let key = |binding: &Value| {
            let role = &binding["roleRef"];
            let namespaced = role["kind"] == "Role";
            let place = namespace(binding).filter(|_| namespaced).map(ToOwned::to_owned);
            (text(role, "/kind").to_owned(), place, text(role, "/name").to_owned())
        };
        ours.map(key).collect()
    }
}

/// The key of a role, as [`Objects::bound`] has it.
pub(crate) fn role_key(role: &Value) -> (String, Option<String>, String) {
    (kind(role).to_owned(), namespace(role).map(ToOwned::to_owned), name(role).to_owned())
}

pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn kind(object: &Value) -> &str {
    text(object, "/kind")
}

pub(crate) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

pub(crate) fn namespace(object: &Value) -> Option<&str> {
    object.pointer("/metadata/namespace").and_then(Value::as_str)
}

pub(crate) fn is_crd(object: &Value) -> bool {
    kind(object) == "CustomResourceDefinition"
}

pub(crate) fn strings(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str)
}

pub(crate) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The image's name and its tag or digest: `shop:1.2` is `shop` and `:1.2`.
pub(crate) fn image_parts(image: &str) -> (&str, Option<&str>, Option<&str>) {
    if let Some((name, digest)) = image.split_once('@') {
        return (name, None, Some(digest));
    }
    // A colon before a slash is that of a registry's port.
    match image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/')) {
        Some((name, tag)) => (name, Some(tag), None),
        None => (image, None, None),
    }
}
