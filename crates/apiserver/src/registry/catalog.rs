//! The catalogue: which resources the API serves right now.
//!
//! A catalogue is an immutable snapshot. When a CustomResourceDefinition changes, the registry builds a
//! new one and swaps it in, so that a request sees one catalogue from its first byte to its last.

use std::{
    collections::BTreeMap,
    sync::{Arc, LazyLock},
};

use super::resource::{Resource, Row};
use crate::{
    schema::{self, TypeRef},
    store::TableName,
};

/// Every built-in resource as the real server lists them, one per line, written by `xtask generate`.
const RESOURCES: &str = include_str!("resources.txt");

/// All versions of one API group, the preferred one first.
#[derive(Debug, Clone)]
pub struct Group {
    /// The group's name, empty for the core group.
    pub name: Arc<str>,
    /// Its versions.
    pub versions: Vec<Version>,
}

/// All resources of one version of a group.
#[derive(Debug, Clone)]
pub struct Version {
    /// The version's name.
    pub name: Arc<str>,
    /// Its resources.
    pub resources: Vec<Arc<Resource>>,
}

/// A snapshot of what is served.
#[derive(Debug, Clone)]
pub struct Catalog {
    /// The groups in the order in which discovery lists them.
    pub groups: Vec<Group>,
    /// The revision of the definitions that it was made from.
    pub definitions: u64,
}

impl Catalog {
    /// The built-in resources alone.
    pub fn built_in() -> Self {
        let mut catalog = Self { groups: Vec::new(), definitions: 0 };
        for resource in built_in_resources() {
            catalog.add(resource);
        }
        catalog
    }

    /// The built-in resources and these custom ones. Groups and versions arrive in discovery order.
    pub fn with_custom(custom: Vec<Resource>, definitions: u64) -> Self {
        let mut catalog = Self { definitions, ..BUILT_IN.clone() };
        for resource in custom {
            catalog.add(Arc::new(resource));
        }
        catalog
    }

    /// The resource of a path, if it is served.
    pub fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.iter().find(|resource| &*resource.plural == plural)
    }

    /// The resource of a kind, if it is served.
    pub fn find_kind(&self, group: &str, version: &str, kind: &str) -> Option<&Arc<Resource>> {
        self.version(group, version)?.resources.iter().find(|resource| resource.kind == kind)
    }

    /// The version of a group, if it is served.
    pub fn version(&self, group: &str, version: &str) -> Option<&Version> {
        self.group(group)?.versions.iter().find(|known| &*known.name == version)
    }

    /// The group, if it is served.
    pub fn group(&self, name: &str) -> Option<&Group> {
        self.groups.iter().find(|group| &*group.name == name)
    }

    /// Every served resource.
    pub fn resources(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.groups.iter().flat_map(|group| &group.versions).flat_map(|version| &version.resources)
    }

    fn add(&mut self, resource: Arc<Resource>) {
        let group = match self.groups.iter().position(|group| group.name == resource.group) {
            Some(index) => &mut self.groups[index],
            None => {
                self.groups.push(Group { name: Arc::clone(&resource.group), versions: Vec::new() });
                self.groups.last_mut().expect("a group must be there after it was pushed")
            }
        };
        match group.versions.iter_mut().find(|version| version.name == resource.version) {
            Some(version) => version.resources.push(resource),
            None => group
                .versions
                .push(Version { name: Arc::clone(&resource.version), resources: vec![resource] }),
        }
    }
}

static BUILT_IN: LazyLock<Catalog> = LazyLock::new(Catalog::built_in);

fn built_in_resources() -> impl Iterator<Item = Arc<Resource>> {
    RESOURCES.lines().map(|line| {
        let (group_version, row) = line.split_once(' ').expect("a resource line must have two parts");
        let (group, version) = group_version.split_once('/').expect("a group version must have a slash");
        let group = if group == "core" { "" } else { group };
        let row: Row = serde_json::from_str(row).expect("a resource line must be valid JSON");
        let definition =
            definitions().by_kind(group, version, &row.response_kind.kind).unwrap_or_default().to_owned();
        Arc::new(row.into_resource(group, version, definition))
    })
}

/// The table of a resource.
pub(super) fn table_of(group: &str, plural: &str) -> TableName {
    TableName { group: group.into(), plural: plural.into() }
}

/// The type definitions of the built-in kinds.
#[derive(Debug)]
pub struct Definitions {
    by_name: BTreeMap<&'static str, &'static str>,
    by_kind: BTreeMap<(String, String, String), &'static str>,
}

/// The definitions, read once.
pub fn definitions() -> &'static Definitions {
    static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(Definitions::read);
    &DEFINITIONS
}

impl Definitions {
    fn read() -> Self {
        const MARK: &str = "\"x-kubernetes-group-version-kind\":[";
        let by_name: BTreeMap<_, _> =
            schema::KUBERNETES.lines().filter_map(|line| line.split_once(' ')).collect();
        let by_kind = by_name
            .iter()
            .filter_map(|(name, json)| {
                let list = json.split_once(MARK)?.1.split_once(']')?.0;
                let gvk: serde_json::Value = serde_json::from_str(list).ok()?;
                let part = |key: &str| gvk[key].as_str().unwrap_or_default().to_owned();
                Some(((part("group"), part("version"), part("kind")), *name))
            })
            .collect();
        Self { by_name, by_kind }
    }

    /// The definition that describes a kind.
    pub fn by_kind(&self, group: &str, version: &str, kind: &str) -> Option<&'static str> {
        self.by_kind.get(&(group.to_owned(), version.to_owned(), kind.to_owned())).copied()
    }

    /// A definition's JSON text.
    pub fn text(&self, name: &str) -> Option<&'static str> {
        self.by_name.get(name).copied()
    }

    /// A definition, parsed.
    pub fn get(&self, name: &str) -> Option<serde_json::Value> {
        serde_json::from_str(self.text(name)?).ok()
    }
}

impl Resource {
    /// The type of the resource's objects, built when it is first needed.
    pub fn schema(&self) -> &TypeRef {
        self.schema.get_or_init(|| match &self.origin {
            super::resource::Origin::BuiltIn { definition } => built_in_type(definition),
            super::resource::Origin::Custom(served) => served.type_ref(),
        })
    }
}

/// The type of a definition of Kubernetes' own.
pub fn built_in_type(definition: &str) -> TypeRef {
    let reference = serde_json::json!({"$ref": format!("#/components/schemas/{definition}")});
    TypeRef::from_openapi(&reference, &|name| definitions().get(name))
        .expect("the definitions of the built-in kinds must load")
}
