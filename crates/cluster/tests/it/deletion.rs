//! What goes with what: owners, namespaces, and the three ways of deleting.

use std::time::Duration;

use serde_json::json;
use windlass::{
    k8s_openapi::{
        api::{
            apps::v1::{Deployment, ReplicaSet},
            core::v1::{ConfigMap, Namespace, Pod, ServiceAccount},
        },
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client,
        api::{DeleteParams, ListParams, PatchParams, PostParams},
        core::DynamicObject,
        discovery::ApiResource,
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, deployment, merge, pods_of, sets_of, wait, wait_complete};

async fn wait_empty(client: &Client, app: &str) {
    for _ in 0..1000 {
        if pods_of(client, app).await.is_empty() && sets_of(client, app).await.is_empty() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left: {:?} {:?}", pods_of(client, app).await.len(), sets_of(client, app).await.len());
}

#[tokio::test]
async fn in_the_background_dependents_go_after_their_owner() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 3)).await;
    wait_complete(&client, "web").await;
    api::<Deployment>(&client).delete("web", &DeleteParams::background()).await.unwrap();
    assert!(api::<Deployment>(&client).get_opt("web").await.unwrap().is_none());
    wait_empty(&client, "web").await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 3)).await;
    wait_complete(&client, "web").await;
    api::<Deployment>(&client).delete("web", &DeleteParams::foreground()).await.unwrap();
    wait(api::<Deployment>(&client), "web", "gone", |web| web.is_none()).await;
    assert!(sets_of(&client, "web").await.is_empty());
    let all = api::<Pod>(&client).list(&ListParams::default().labels("app=web")).await.unwrap().items;
    assert!(all.is_empty(), "{} Pods outlived their owner", all.len());
}

#[tokio::test]
async fn orphans_stay_without_their_owner() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    api::<Deployment>(&client).delete("web", &DeleteParams::orphan()).await.unwrap();
    wait(api::<Deployment>(&client), "web", "gone", |web| web.is_none()).await;
    let sets = sets_of(&client, "web").await;
    assert_eq!(sets.len(), 1);
    assert!(sets[0].metadata.owner_references.as_ref().is_none_or(Vec::is_empty));
    assert_eq!(pods_of(&client, "web").await.len(), 2);
    // A new Deployment takes the orphan over instead of making another.
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    let adopted = sets_of(&client, "web").await;
    assert_eq!(adopted.len(), 1);
    assert_eq!(adopted[0].metadata.uid, sets[0].metadata.uid);
}

#[tokio::test]
async fn an_object_whose_owner_never_was_goes() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let orphan: ConfigMap = decode(json!({"metadata": {"name": "lost", "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "00000000-0000-0000-0000-000000000000"},
    ]}}));
    create(&client, &orphan).await;
    wait(api::<ConfigMap>(&client), "lost", "gone", |map| map.is_none()).await;
}

#[tokio::test]
async fn an_object_stays_as_long_as_one_owner_does() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let mut owners = Vec::new();
    for name in ["a", "b"] {
        let owner = create(&client, &decode::<ConfigMap>(json!({"metadata": {"name": name}}))).await;
        let uid = owner.metadata.uid.unwrap();
        owners.push(json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}));
    }
    let child: ConfigMap = decode(json!({"metadata": {"name": "child", "ownerReferences": owners}}));
    create(&client, &child).await;
    let maps = api::<ConfigMap>(&client);
    maps.delete("a", &DeleteParams::background()).await.unwrap();
    let child = wait(maps.clone(), "child", "free of its first owner", |child| {
        child.is_some_and(|child| child.metadata.owner_references.as_ref().is_some_and(|all| all.len() == 1))
    })
    .await
    .unwrap();
    assert_eq!(child.metadata.owner_references.unwrap()[0].name, "b");
    maps.delete("b", &DeleteParams::background()).await.unwrap();
    wait(maps, "child", "gone", |child| child.is_none()).await;
}

#[tokio::test]
async fn custom_kinds_that_come_later_are_collected_too() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let definition: CustomResourceDefinition = decode(json!({
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "plural": "widgets"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}],
        },
    }));
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    definitions.create(&PostParams::default(), &definition).await.unwrap();
    wait(definitions, "widgets.example.com", "established", |definition| {
        let conditions = definition.and_then(|d| d.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|c| c.type_ == "Established" && c.status == "True")
    })
    .await;
    let widget = ApiResource {
        group: "example.com".into(),
        version: "v1".into(),
        api_version: "example.com/v1".into(),
        kind: "Widget".into(),
        plural: "widgets".into(),
    };
    let widgets: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &widget);
    let owner = DynamicObject::new("owner", &widget);
    let owner = widgets.create(&PostParams::default(), &owner).await.unwrap();
    let uid = owner.metadata.uid.unwrap();
    let child: ConfigMap = decode(json!({"metadata": {"name": "child", "ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Widget", "name": "owner", "uid": uid}]}}));
    create(&client, &child).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(api::<ConfigMap>(&client).get_opt("child").await.unwrap().is_some());
    widgets.delete("owner", &DeleteParams::background()).await.unwrap();
    wait(api::<ConfigMap>(&client), "child", "gone", |child| child.is_none()).await;
}

#[tokio::test]
async fn a_namespace_has_its_defaults_and_goes_with_its_content() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let shop: Namespace = decode(json!({"metadata": {"name": "shop"}}));
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "shop");
    wait(accounts, "default", "there", |account| account.is_some()).await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    let root = wait(maps, "kube-root-ca.crt", "there", |map| map.is_some()).await.unwrap();
    assert!(root.data.unwrap()["ca.crt"].starts_with("-----BEGIN CERTIFICATE-----"));
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "shop");
    deployments.create(&PostParams::default(), &deployment("web", 3)).await.unwrap();
    wait(deployments, "web", "complete", |web| web.is_some_and(crate::support::is_complete)).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    wait(namespaces, "shop", "gone", |shop| shop.is_none()).await;
    let left: Vec<Pod> =
        Api::namespaced(client.clone(), "shop").list(&ListParams::default()).await.unwrap().items;
    let sets: Vec<ReplicaSet> =
        Api::namespaced(client, "shop").list(&ListParams::default()).await.unwrap().items;
    assert!(left.is_empty() && sets.is_empty());
}

#[tokio::test]
async fn a_namespace_waits_for_finalizers_and_says_so() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let shop: Namespace = decode(json!({"metadata": {"name": "shop"}}));
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "shop");
    let guarded: ConfigMap =
        decode(json!({"metadata": {"name": "guarded", "finalizers": ["example.com/guard"]}}));
    maps.create(&PostParams::default(), &guarded).await.unwrap();
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    wait(namespaces.clone(), "shop", "waiting", |shop| {
        let conditions = shop.and_then(|shop| shop.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|condition| {
            condition.message.as_deref()
                == Some("Some content in the namespace has finalizers remaining: example.com/guard in 1 resource instances")
        })
    })
    .await;
    let patch = windlass::kube::api::Patch::Merge(json!({"metadata": {"finalizers": null}}));
    maps.patch("guarded", &PatchParams::default(), &patch).await.unwrap();
    wait(namespaces, "shop", "gone", |shop| shop.is_none()).await;
}

#[tokio::test]
async fn a_deleted_service_account_comes_back() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let accounts = api::<ServiceAccount>(&client);
    let first = wait(accounts.clone(), "default", "there", |account| account.is_some()).await.unwrap();
    accounts.delete("default", &DeleteParams::default()).await.unwrap();
    let uid = first.metadata.uid;
    wait(accounts, "default", "there again", move |account| {
        account.is_some_and(|account| account.metadata.uid != uid)
    })
    .await;
    merge::<ConfigMap>(&client, "kube-root-ca.crt", json!({"data": {"ca.crt": "wrong"}})).await;
    wait(api::<ConfigMap>(&client), "kube-root-ca.crt", "right again", |map| {
        map.and_then(|map| map.data.as_ref()).is_some_and(|data| data["ca.crt"].contains("BEGIN CERTIFICATE"))
    })
    .await;
}
