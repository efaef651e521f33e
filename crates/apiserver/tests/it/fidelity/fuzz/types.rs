//! The kinds that are served, their types, and an object of each that is valid.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

const RESOURCES: &str = include_str!("../../../../src/registry/resources.txt");
const BASES: &str = include_str!("bases.txt");
const REFERENCE: &str = "#/components/schemas/";

/// Kinds whose objects would change how the real server treats everybody else's requests: they are only tried.
const ONLY_TRIED: [&str; 9] = [
    "apiservices",
    "servicecidrs",
    "mutatingwebhookconfigurations",
    "validatingwebhookconfigurations",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicybindings",
    "flowschemas",
    "prioritylevelconfigurations",
    "storageversionmigrations",
];

/// The types of all built-in kinds.
pub(super) struct Types(BTreeMap<&'static str, Value>);

/// A kind that requests are drawn for.
#[derive(Clone)]
pub(super) struct Kind {
    pub(super) group_version: String,
    pub(super) plural: String,
    pub(super) namespaced: bool,
    pub(super) subresources: Vec<String>,
    /// Every write of it is a dry run.
    pub(super) only_tried: bool,
    pub(super) base: Value,
    pub(super) schema: Value,
}

impl Types {
    pub(super) fn load() -> Self {
        let lines = windlass_apiserver::schema::KUBERNETES.lines().filter_map(|line| line.split_once(' '));
        Self(lines.map(|(name, schema)| (name, serde_json::from_str(schema).unwrap())).collect())
    }

    /// A schema without the indirections around it, and the name of the type, if it has one.
    pub(super) fn resolve<'a>(&'a self, mut schema: &'a Value) -> (&'a Value, &'a str) {
        let mut name = "";
        loop {
            let inner = schema.pointer("/allOf/0").unwrap_or(schema);
            let Some(reference) = inner.get("$ref").and_then(Value::as_str) else { return (inner, name) };
            name = reference.strip_prefix(REFERENCE).unwrap();
            schema = &self.0[name];
        }
    }

    /// All kinds with a base.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let bases =
            BASES.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
        bases.map(|(resource, base)| self.kind(resource, base)).collect()
    }

    fn kind(&self, resource: &str, base: &str) -> Kind {
        let (group_version, plural) = resource.rsplit_once('/').unwrap();
        let listed =
            if group_version.contains('/') { group_version.into() } else { format!("core/{group_version}") };
        let served: Value = RESOURCES
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter(|(known, _)| *known == listed)
            .map(|(_, resource)| serde_json::from_str::<Value>(resource).unwrap())
            .find(|served| served["resource"] == plural)
            .unwrap_or_else(|| panic!("no server serves {resource}"));
        let kind = served["responseKind"]["kind"].as_str().unwrap().to_owned();
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        let is_type = |schema: &&Value| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds
                .into_iter()
                .flatten()
                .any(|one| one["group"] == group && one["version"] == version && one["kind"] == kind.as_str())
        };
        let schema =
            self.0.values().find(is_type).unwrap_or_else(|| panic!("{resource} has no type")).clone();
        let mut object = Map::new();
        object.insert("apiVersion".into(), group_version.into());
        object.insert("kind".into(), kind.into());
        let base: Map<String, Value> = serde_saphyr::from_str(base).unwrap();
        object.extend(base);
        let subresources = served["subresources"].as_array().into_iter().flatten();
        Kind {
            group_version: group_version.to_owned(),
            plural: plural.to_owned(),
            namespaced: served["scope"] == "Namespaced",
            subresources: subresources.map(|one| one["subresource"].as_str().unwrap().to_owned()).collect(),
            only_tried: ONLY_TRIED.contains(&plural),
            base: Value::Object(object),
            schema,
        }
    }
}

impl Kind {
    /// The path of all objects of the script.
    pub(super) fn collection(&self) -> String {
        let root = if self.group_version.contains('/') { "/apis" } else { "/api" };
        let scope = if self.namespaced { "/namespaces/$ns" } else { "" };
        format!("{root}/{}{scope}/{}", self.group_version, self.plural)
    }

    pub(super) fn name(&self) -> &str {
        self.base["metadata"]["name"].as_str().unwrap()
    }

    pub(super) fn item(&self) -> String {
        format!("{}/{}", self.collection(), self.name())
    }

    pub(super) fn has(&self, subresource: &str) -> bool {
        self.subresources.iter().any(|one| one == subresource)
    }
}
