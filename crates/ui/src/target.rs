//! Which object a request is about.

use serde_json::Value;
use windlass::kube::{self, Api, Client, api::DynamicObject};

use crate::{kinds::Kind, query::Query};

/// Which object a request is about.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Target {
    /// From the parameters of a request.
    pub(crate) fn of(query: &Query) -> Option<Self> {
        let text = |name: &str| query.get(name).cloned().unwrap_or_default();
        let segment = |text: &str| {
            !text.is_empty() && text != "." && text != ".." && !text.contains(['/', '?', '#', '%'])
        };
        let group = text("group");
        let namespace = text("namespace");
        let kind = Kind {
            custom: false,
            workload: false,
            namespaced: !namespace.is_empty(),
            group,
            version: text("version"),
            kind: text("kind"),
            plural: text("plural"),
        };
        let name = text("name");
        // They become parts of a path.
        let sound = [&kind.version, &kind.plural, &name].into_iter().all(|text| segment(text))
            && [&kind.group, &namespace].into_iter().all(|text| text.is_empty() || segment(text));
        sound.then_some(Self { kind, namespace, name })
    }

    pub(crate) fn api(&self, client: &Client) -> Api<DynamicObject> {
        self.kind.api(client, Some(&self.namespace))
    }

    /// The kind with its group, as runs name it.
    pub(crate) fn resource(&self) -> String {
        self.kind.qualified()
    }

    /// The object as JSON.
    pub(crate) async fn get(&self, client: &Client) -> Result<Option<Value>, kube::Error> {
        let object = self.api(client).get_opt(&self.name).await?;
        let mut object = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        if object.is_null() {
            return Ok(None);
        }
        if object["kind"].is_null() {
            object["apiVersion"] = self.kind.resource().api_version.into();
            object["kind"] = self.kind.kind.clone().into();
        }
        Ok(Some(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(pairs: &[(&str, &str)]) -> Query {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_becomes_part_of_a_path_must_be_a_part() {
        let with = |name: &str, namespace: &str| {
            Target::of(&query(&[
                ("version", "v1"),
                ("plural", "pods"),
                ("name", name),
                ("namespace", namespace),
            ]))
        };
        assert!(with("web", "default").is_some() && with("system:node", "").is_some());
        for bad in ["", "..", "a/b", "a?b", "a#b", "a%2fb"] {
            assert!(with(bad, "default").is_none(), "{bad}");
        }
        assert!(with("web", "../x").is_none());
    }
}
