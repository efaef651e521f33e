//! Discovery: what is served, in the old shape and in the aggregated one.

use http::{HeaderValue, Response, header};
use serde_json::{Value, json};

use super::{Body, Call, accept, answer, path::Discovery};
use crate::{
    error::{Error, Result},
    registry::{Catalog, Resource, catalog, group_version},
};

/// The content type of aggregated discovery, by which clients tell it from the old shape.
const AGGREGATED: HeaderValue =
    HeaderValue::from_static("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");

impl Call<'_> {
    pub(super) fn discover(&self, part: &Discovery) -> Result<Response<Body>> {
        let catalog = self.registry.catalog();
        let aggregated = accept::aggregated(self.header(header::ACCEPT));
        match part {
            Discovery::Core if aggregated => Ok(self.aggregate(&catalog, |group| group.is_empty())),
            Discovery::Groups if aggregated => Ok(self.aggregate(&catalog, |group| !group.is_empty())),
            Discovery::Core => Ok(answer::json(&json!({
                "kind": "APIVersions", "versions": ["v1"],
                "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": self.host()}],
            }))),
            Discovery::Groups => {
                let groups: Vec<Value> = catalog
                    .groups
                    .iter()
                    .filter(|group| !group.name.is_empty())
                    .map(describe_group)
                    .collect();
                Ok(answer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})))
            }
            Discovery::Group(name) => {
                let Some(group) = catalog.group(name) else { return Ok(answer::not_a_path()) };
                let mut described = describe_group(group);
                described["kind"] = json!("APIGroup");
                described["apiVersion"] = json!("v1");
                Ok(answer::json(&described))
            }
            Discovery::Resources { group, version } => {
                let Some(found) = catalog.version(group, version) else {
                    return match catalog.group(group) {
                        Some(_) => Err(Error::no_such_path()),
                        None => Ok(answer::not_a_path()),
                    };
                };
                let resources: Vec<Value> =
                    found.resources.iter().flat_map(|one| list_entries(one)).collect();
                let mut list = json!({"kind": "APIResourceList", "groupVersion": group_version(group, version),
                    "resources": resources});
                // The core group is as old as the list itself, which had no version then.
                if !group.is_empty() {
                    list["apiVersion"] = json!("v1");
                }
                Ok(answer::json(&list))
            }
        }
    }

    fn host(&self) -> &str {
        self.header(header::HOST)
    }

    /// Everything in one answer, which is only sent to who does not have it.
    fn aggregate(&self, catalog: &Catalog, wanted: impl Fn(&str) -> bool) -> Response<Body> {
        let list = aggregated_list(catalog, wanted).to_string();
        let tag = answer::tag(list.as_bytes());
        let mut response = self.unless_known(&tag, || answer::bytes(list.into()));
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, AGGREGATED);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        headers.insert(header::VARY, HeaderValue::from_static("Accept"));
        response
    }
}

fn describe_group(group: &catalog::Group) -> Value {
    let versions: Vec<Value> = group
        .versions
        .iter()
        .map(|version| json!({"groupVersion": group_version(&group.name, &version.name), "version": &*version.name}))
        .collect();
    json!({"name": &*group.name, "preferredVersion": versions.first(), "versions": versions})
}

/// A resource and its subresources as entries of an `APIResourceList`.
fn list_entries(resource: &Resource) -> Vec<Value> {
    let mut own = json!({
        "name": &*resource.plural, "singularName": resource.singular, "namespaced": resource.namespaced,
        "kind": resource.kind, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        own["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        own["categories"] = json!(resource.categories);
    }
    let mut entries = vec![own];
    for subresource in &resource.subresources {
        let mut entry = json!({
            "name": format!("{}/{}", resource.plural, subresource.name), "singularName": "",
            "namespaced": resource.namespaced, "kind": subresource.kind.kind, "verbs": subresource.verbs,
        });
        if subresource.kind.group != *resource.group || subresource.kind.version != *resource.version {
            entry["group"] = json!(subresource.kind.group);
            entry["version"] = json!(subresource.kind.version);
        }
        entries.push(entry);
    }
    entries
}

fn aggregated_list(catalog: &Catalog, wanted: impl Fn(&str) -> bool) -> Value {
    let items: Vec<Value> = catalog
        .groups
        .iter()
        .filter(|group| wanted(&group.name))
        .map(|group| {
            let versions: Vec<Value> = group
                .versions
                .iter()
                .map(|version| {
                    let resources: Vec<Value> =
                        version.resources.iter().map(|one| aggregated_entry(one)).collect();
                    json!({"version": &*version.name, "resources": resources, "freshness": "Current"})
                })
                .collect();
            let metadata = if group.name.is_empty() { json!({}) } else { json!({"name": &*group.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items,
    })
}

fn aggregated_entry(resource: &Resource) -> Value {
    // The real server leaves group and version out for built-in kinds, and fills them in for custom ones.
    let kind =
        |kind: &str, group: &str, version: &str| json!({"group": group, "version": version, "kind": kind});
    let own = match resource.custom() {
        Some(_) => kind(&resource.kind, &resource.group, &resource.version),
        None => kind(&resource.kind, "", ""),
    };
    let mut entry = json!({
        "resource": &*resource.plural, "responseKind": own,
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular, "verbs": resource.verbs,
    });
    if !resource.short_names.is_empty() {
        entry["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        entry["categories"] = json!(resource.categories);
    }
    if !resource.subresources.is_empty() {
        let list = resource.subresources.iter().map(|one| {
            let same = one.kind.group == *resource.group && one.kind.version == *resource.version;
            let (group, version) = match resource.custom() {
                None if same => ("", ""),
                _ => (one.kind.group.as_str(), one.kind.version.as_str()),
            };
            json!({"subresource": one.name, "verbs": one.verbs,
                "responseKind": kind(&one.kind.kind, group, version)})
        });
        entry["subresources"] = list.collect();
    }
    entry
}
