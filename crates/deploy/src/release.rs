//! Everything that runs an operator in a cluster, in the order in which it is applied.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{error::Error, target::Target};

/// What is to be in the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Release {
    /// The operator's name, which is that of its field manager too.
    pub name: String,
    /// The operator's namespace.
    pub namespace: String,
    objects: Vec<Value>,
}

impl Release {
    /// The release of these objects, which a ServiceAccount or a Deployment gives its name and namespace.
    pub fn new(objects: Vec<Value>) -> Result<Self, Error> {
        for object in &objects {
            for (field, pointer) in
                [("an apiVersion", "/apiVersion"), ("a kind", "/kind"), ("a name", "/metadata/name")]
            {
                if object.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
                    return Err(Error::NotAnObject(field));
                }
            }
        }
        let of_kind = |kind: &str| objects.iter().find(|object| object["kind"] == kind);
        let named = of_kind("Deployment").or_else(|| of_kind("ServiceAccount")).ok_or(Error::Nameless)?;
        let text = |pointer: &str| named.pointer(pointer).and_then(Value::as_str).map(ToOwned::to_owned);
        let label = text("/metadata/labels/app.kubernetes.io~1name");
        let name = label.or_else(|| text("/metadata/name")).ok_or(Error::Nameless)?;
        let namespace = text("/metadata/namespace").unwrap_or_else(|| "default".into());
        Ok(Self::of(name, namespace, objects))
    }

    /// The release of an operator with this name and namespace.
    pub(crate) fn of(name: String, namespace: String, mut objects: Vec<Value>) -> Self {
        objects.sort_by_key(rank);
        Self { name, namespace, objects }
    }

    /// All objects, in the order in which they are applied.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The definitions of custom kinds.
    pub fn definitions(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(|object| is_crd(object))
    }

    /// Everything else.
    pub fn others(&self) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(|object| !is_crd(object))
    }

    /// Those with their kind and name, for whoever compares.
    pub(crate) fn targets(&self) -> impl Iterator<Item = (Target, &Value)> {
        self.objects.iter().map(|object| (Target::of(object), object))
    }

    /// The image of the Deployment.
    pub fn image(&self) -> Option<&str> {
        let deployment = self.objects.iter().find(|object| object["kind"] == "Deployment")?;
        deployment.pointer("/spec/template/spec/containers/0/image")?.as_str()
    }

    /// What two releases with the same objects have in common.
    pub(crate) fn digest(&self) -> String {
        let mut texts: Vec<String> = self.objects.iter().map(sorted).collect();
        texts.sort();
        let digest = Sha256::digest(texts.join("\n"));
        digest.iter().take(16).fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }
}

/// JSON with its keys in order, however the map keeps them.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            let fields: Vec<String> =
                fields.into_iter().map(|(key, value)| format!("{key:?}:{}", sorted(value))).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(sorted).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

pub(crate) fn is_crd(object: &Value) -> bool {
    object["kind"] == "CustomResourceDefinition"
}

/// What makes the API server ask a webhook: last of all, when somebody answers.
pub(crate) fn asks(object: &Value) -> bool {
    object["kind"].as_str().is_some_and(|kind| kind.ends_with("WebhookConfiguration"))
}

/// What others need comes before them.
fn rank(object: &Value) -> u8 {
    match object["kind"].as_str().unwrap_or_default() {
        "Namespace" => 0,
        "CustomResourceDefinition" => 1,
        "ServiceAccount" | "ConfigMap" | "Secret" => 2,
        "ClusterRole" | "Role" => 3,
        "ClusterRoleBinding" | "RoleBinding" => 4,
        "Deployment" => 6,
        _ if asks(object) => 7,
        _ => 5,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
    }

    #[test]
    fn what_others_need_comes_first_and_what_asks_comes_last() {
        let kinds = ["ValidatingWebhookConfiguration", "Deployment", "RoleBinding", "Role", "Namespace"];
        let release = Release::new(kinds.map(|kind| object(kind, "a")).into()).unwrap();
        let order: Vec<&str> =
            release.objects().iter().map(|object| object["kind"].as_str().unwrap()).collect();
        assert_eq!(
            order,
            ["Namespace", "Role", "RoleBinding", "Deployment", "ValidatingWebhookConfiguration"]
        );
        assert_eq!((release.name.as_str(), release.namespace.as_str()), ("a", "shop"));
    }

    #[test]
    fn the_digest_depends_on_what_is_there_and_not_on_its_order() {
        let release = |objects: Vec<Value>| Release::of("a".into(), "b".into(), objects).digest();
        let (one, two) = (object("Role", "a"), object("Role", "b"));
        assert_eq!(release(vec![one.clone(), two.clone()]), release(vec![two.clone(), one.clone()]));
        assert_ne!(release(vec![one.clone()]), release(vec![one, two]));
    }

    #[test]
    fn manifests_without_an_operator_and_things_that_are_no_objects_are_refused() {
        assert!(matches!(Release::new(vec![object("Role", "a")]), Err(Error::Nameless)));
        let nameless = json!({"apiVersion": "v1", "kind": "Role", "metadata": {}});
        assert!(matches!(Release::new(vec![nameless]), Err(Error::NotAnObject("a name"))));
    }
}
