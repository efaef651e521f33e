//! What was is told by the cluster's own history, and can be had again.

use windlass::{
    jiff::{SignedDuration, Timestamp},
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        Api, Client,
        api::{DeleteParams, Patch, PatchParams},
    },
    serde_json::json,
};
use windlass_ui::{
    Kind,
    history::{Happened, history, since, unified, writes},
    kinds,
};

use crate::World;

async fn write(client: &Client, manager: &str, value: &str) {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let patch =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": value}});
    api.patch("c", &PatchParams::apply(manager).force(), &Patch::Apply(&patch)).await.unwrap();
}

async fn config_maps(client: &Client) -> Kind {
    kinds(client).await.unwrap().into_iter().find(|kind| kind.is_meant_by("cm")).unwrap()
}

#[tokio::test]
async fn every_version_is_told_with_its_writer_also_of_an_object_that_is_gone() {
    let world = World::start().await;
    let client = world.cluster.client();
    write(&client, "one", "1").await;
    write(&client, "two", "2").await;
    write(&client, "one", "3").await;
    let kind = config_maps(&client).await;
    let known = history(&client, &kind, Some("default"), "c").await.unwrap();
    assert!(known.complete);
    let told: Vec<_> = known
        .versions
        .iter()
        .map(|v| (v.happened, v.writers.join(","), v.object["data"]["a"].clone()))
        .collect();
    assert_eq!(
        told,
        [
            (Happened::Created, "one".to_owned(), json!("1")),
            (Happened::Changed, "two".to_owned(), json!("2")),
            (Happened::Changed, "one".to_owned(), json!("3")),
        ]
    );
    let writers: Vec<_> =
        writes(&known.versions)["data.a"].iter().map(|write| write.writers[0].clone()).collect();
    assert_eq!(writers, ["one", "two", "one"], "why is this field so");
    let diff = unified(Some(&known.versions[0].object), Some(&known.versions[1].object));
    assert!(diff.contains("-  a: \"1\"\n+  a: \"2\"\n"), "{diff}");

    Api::<ConfigMap>::namespaced(client.clone(), "default")
        .delete("c", &DeleteParams::default())
        .await
        .unwrap();
    let known = history(&client, &kind, Some("default"), "c").await.unwrap();
    assert_eq!(known.versions.last().unwrap().happened, Happened::Deleted);
    assert_eq!(known.versions.len(), 4);
    assert!(history(&client, &kind, Some("default"), "nothing").await.unwrap().versions.is_empty());
}

#[tokio::test]
async fn an_object_is_restored_from_any_moment_also_when_it_is_gone() {
    let world = World::start().await;
    let client = world.cluster.client();
    write(&client, "one", "1").await;
    write(&client, "one", "2").await;
    let kind = config_maps(&client).await;
    let first = history(&client, &kind, Some("default"), "c").await.unwrap().versions[0].revision;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let path = format!(
        "/restore?version=v1&kind=ConfigMap&plural=configmaps&namespace=default&name=c&revision={first}"
    );
    for gone in [false, true] {
        if gone {
            api.delete("c", &DeleteParams::default()).await.unwrap();
        }
        let answer = world.browser.post(&path, "").await;
        assert!(answer.body.contains("\"ok\":true"), "{}", answer.body);
        assert_eq!(api.get("c").await.unwrap().data.unwrap()["a"], "1", "gone: {gone}");
    }
    let never = world.browser.post(&path.replace(&format!("revision={first}"), "revision=999999"), "").await;
    assert!(never.body.contains("no longer kept"), "{}", never.body);
}

#[tokio::test]
async fn the_cluster_is_shown_as_it_was() {
    let world = World::start().await;
    let mut events = world.browser.events().await;
    events.whole().await;
    let before = world.cluster.revision();
    write(&world.cluster.client(), "one", "1").await;
    let named = |body: &str| body.contains("\"n\":\"c\"");
    assert!(!named(&world.browser.get(&format!("/at?revision={before}")).await.body));
    let after = world.cluster.revision();
    assert!(named(&world.browser.get(&format!("/at?revision={after}")).await.body));
    assert_eq!(world.browser.get("/at?revision=soon").await.status, 400);
}

#[tokio::test]
async fn what_has_changed_since_a_moment_is_told_against_what_it_was() {
    let world = World::start().await;
    let client = world.cluster.client();
    write(&client, "one", "1").await;
    write(&client, "two", "2").await;
    let kinds = [config_maps(&client).await];
    let ago = |seconds: i64| Timestamp::now() - SignedDuration::from_secs(seconds);
    let found = since(&client, &kinds, ago(3600)).await.unwrap();
    let changed = found.changed.iter().find(|changed| changed.name == "c").unwrap();
    assert!(changed.before.is_none() && changed.writes == 2 && found.partial.is_empty());
    assert_eq!(changed.writers, ["one", "two"]);
    let later = since(&client, &kinds, ago(-3600)).await.unwrap();
    assert!(later.changed.is_empty(), "nothing has changed since a moment that is still to come");
}
