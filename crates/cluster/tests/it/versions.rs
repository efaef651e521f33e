//! Kinds that are not served in their group's preferred version: they are collected, emptied and counted like others.

use serde_json::json;
use windlass::{
    k8s_openapi::{
        api::core::v1::{Namespace, ResourceQuota},
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
        core::DynamicObject,
        discovery::ApiResource,
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, wait};

const GROUP: &str = "mixed.example.com";

/// The kinds of one group, each with the versions that serve it.
const KINDS: [(&str, &[&str]); 3] = [("Aaa", &["v1"]), ("Bbb", &["v1alpha1"]), ("Ccc", &["v1beta1", "v1"])];

async fn define(client: &Client, kind: &str, versions: &[&str]) {
    let plural = format!("{}s", kind.to_lowercase());
    let name = format!("{plural}.{GROUP}");
    let version = |name: &&str| {
        json!({
            "name": name, "served": true, "storage": *name == versions[0],
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    };
    let versions: Vec<_> = versions.iter().map(version).collect();
    let definition: CustomResourceDefinition = decode(json!({
        "metadata": {"name": name},
        "spec": {
            "group": GROUP, "scope": "Namespaced", "versions": versions,
            "names": {"kind": kind, "plural": plural},
        },
    }));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    wait(definitions, &name, "established", |definition| {
        let conditions = definition.and_then(|d| d.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|c| c.type_ == "Established" && c.status == "True")
    })
    .await;
}

async fn start() -> (Cluster, Client) {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    for (kind, versions) in KINDS {
        define(&client, kind, versions).await;
    }
    (cluster, client)
}

fn resource(kind: &str, version: &str) -> ApiResource {
    ApiResource {
        group: GROUP.into(),
        version: version.into(),
        api_version: format!("{GROUP}/{version}"),
        kind: kind.into(),
        plural: format!("{}s", kind.to_lowercase()),
    }
}

/// The objects of a kind, in its last version.
fn objects(client: &Client, namespace: &str, kind: &str) -> Api<DynamicObject> {
    let versions = KINDS.iter().find(|(name, _)| *name == kind).unwrap().1;
    Api::namespaced_with(client.clone(), namespace, &resource(kind, versions.last().unwrap()))
}

/// Makes an object, owned by another if there is one. Its kind is known to the collector when this returns.
async fn make(
    client: &Client,
    kind: &str,
    name: &str,
    owner: Option<(&str, &DynamicObject)>,
) -> DynamicObject {
    let api = objects(client, "default", kind);
    let owners: Vec<_> = owner
        .iter()
        .map(|(owner_kind, owner)| {
            json!({
                "apiVersion": owner.types.as_ref().unwrap().api_version, "kind": owner_kind,
                "name": owner.metadata.name, "uid": owner.metadata.uid, "blockOwnerDeletion": true,
            })
        })
        .collect();
    let body: DynamicObject = decode(json!({
        "apiVersion": format!("{GROUP}/{}", KINDS.iter().find(|(one, _)| *one == kind).unwrap().1.last().unwrap()),
        "kind": kind, "metadata": {"name": name, "ownerReferences": owners},
    }));
    api.create(&PostParams::default(), &body).await.unwrap()
}

/// Waits until an object is gone; after half a minute the test fails and shows it.
async fn wait_gone(api: &Api<DynamicObject>, name: &str) {
    for _ in 0..600 {
        if api.get_opt(name).await.unwrap().is_none() {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{name} is still there: {:#?}", api.get_opt(name).await);
}

#[tokio::test]
async fn owners_and_dependents_of_every_version_are_collected() {
    let (_cluster, client) = start().await;
    for (owner_kind, child_kind) in [("Aaa", "Bbb"), ("Bbb", "Ccc"), ("Ccc", "Bbb"), ("Bbb", "Bbb")] {
        for params in [DeleteParams::background(), DeleteParams::foreground()] {
            let owners = objects(&client, "default", owner_kind);
            let owner = make(&client, owner_kind, "owner", None).await;
            make(&client, child_kind, "child", Some((owner_kind, &owner))).await;
            owners.delete("owner", &params).await.unwrap();
            wait_gone(&owners, "owner").await;
            wait_gone(&objects(&client, "default", child_kind), "child").await;
        }
    }
}

#[tokio::test]
async fn orphans_of_every_version_stay() {
    let (_cluster, client) = start().await;
    for (owner_kind, child_kind) in [("Aaa", "Bbb"), ("Bbb", "Ccc"), ("Ccc", "Bbb")] {
        let owners = objects(&client, "default", owner_kind);
        let owner = make(&client, owner_kind, "owner", None).await;
        let name = format!("child-of-{}", owner_kind.to_lowercase());
        make(&client, child_kind, &name, Some((owner_kind, &owner))).await;
        owners.delete("owner", &DeleteParams::orphan()).await.unwrap();
        wait_gone(&owners, "owner").await;
        let child = objects(&client, "default", child_kind).get(&name).await.unwrap();
        assert!(child.metadata.owner_references.is_none_or(|owners| owners.is_empty()));
    }
}

#[tokio::test]
async fn a_namespace_takes_every_version_with_it() {
    let (_cluster, client) = start().await;
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let shop: Namespace = decode(json!({"metadata": {"name": "shop"}}));
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    for (kind, versions) in KINDS {
        let body = DynamicObject::new("one", &resource(kind, versions.last().unwrap()));
        objects(&client, "shop", kind).create(&PostParams::default(), &body).await.unwrap();
    }
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    wait(namespaces, "shop", "gone", |shop| shop.is_none()).await;
    for (kind, _) in KINDS {
        let left = objects(&client, "shop", kind).get_opt("one").await.unwrap();
        assert!(left.is_none(), "{left:#?}");
    }
}

#[tokio::test]
async fn a_quota_counts_every_version() {
    let (_cluster, client) = start().await;
    for (kind, _) in KINDS {
        make(&client, kind, "one", None).await;
        make(&client, kind, "two", None).await;
    }
    let hard: serde_json::Map<_, _> = KINDS
        .iter()
        .map(|(kind, _)| (format!("count/{}s.{GROUP}", kind.to_lowercase()), json!("5")))
        .collect();
    let quota: ResourceQuota = decode(json!({"metadata": {"name": "team"}, "spec": {"hard": hard}}));
    create(&client, &quota).await;
    wait(api::<ResourceQuota>(&client), "team", "counted", |quota| {
        let used = quota.and_then(|quota| quota.status.as_ref()?.used.clone()).unwrap_or_default();
        used.len() == 3 && used.values().all(|count| count.0 == "2")
    })
    .await;
}

#[tokio::test]
async fn a_kind_that_moves_to_another_version_is_still_collected() {
    let (_cluster, client) = start().await;
    let owner = make(&client, "Aaa", "owner", None).await;
    make(&client, "Ccc", "child", Some(("Aaa", &owner))).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = format!("cccs.{GROUP}");
    let mut definition = definitions.get(&name).await.unwrap();
    definition.spec.versions.iter_mut().filter(|one| one.name == "v1").for_each(|one| one.served = false);
    definitions.replace(&name, &PostParams::default(), &definition).await.unwrap();
    let children: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "default", &resource("Ccc", "v1beta1"));
    assert!(children.get_opt("child").await.unwrap().is_some());
    objects(&client, "default", "Aaa").delete("owner", &DeleteParams::background()).await.unwrap();
    wait_gone(&children, "child").await;
}
