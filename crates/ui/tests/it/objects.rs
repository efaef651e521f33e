//! What is in the cluster is on the page, and what changes there changes here.

use windlass::{
    k8s_openapi::api::{
        apps::v1::Deployment,
        core::v1::{ConfigMap, Node, Pod},
    },
    kube::{
        Api,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
    },
    serde_json::{self, Value, from_value, json},
};

use crate::World;

fn deployment() -> Deployment {
    let labels = json!({"app": "web"});
    from_value(json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}},
    }))
    .unwrap()
}

/// The last row of an object among all updates.
fn row(text: &str, name: &str) -> Option<Value> {
    let updates = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut rows = updates
        .filter_map(|data| serde_json::from_str::<Value>(data).ok())
        .flat_map(|update| update["put"].as_array().cloned().unwrap_or_default());
    rows.rfind(|row| row["n"] == name)
}

#[tokio::test]
async fn a_change_made_with_a_client_is_on_the_page() {
    let world = World::start().await;
    let mut events = world.browser.events().await;
    events.whole().await;
    assert!(events.text.contains("\"Deployment\"") && events.text.contains("windlass-1"));
    events.forget();
    let api: Api<Deployment> = Api::namespaced(world.cluster.client(), "default");
    api.create(&PostParams::default(), &deployment()).await.unwrap();
    events
        .until("the Deployment, whole", |text| row(text, "web").is_some_and(|row| row["h"] == "Current"))
        .await;
    // Its Pods hang below their ReplicaSet, and that below the Deployment.
    let uid = row(&events.text, "web").unwrap()["u"].clone();
    events
        .until("a Pod below it", |text| {
            let rows: Vec<Value> = text
                .lines()
                .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok())
                .flat_map(|update| update["put"].as_array().cloned().unwrap_or_default())
                .collect();
            let replica_set = rows.iter().find(|row| row["o"] == uid);
            replica_set.is_some_and(|set| rows.iter().any(|row| row["o"] == set["u"]))
        })
        .await;
    events.forget();
    api.delete("web", &DeleteParams::default()).await.unwrap();
    let uid = uid.as_str().unwrap().to_owned();
    events
        .until("its end", |text| text.lines().any(|line| line.contains("\"del\":[") && line.contains(&uid)))
        .await;
}

#[tokio::test]
async fn a_new_kind_is_on_the_page_and_goes_with_its_definition() {
    let world = World::start().await;
    let mut events = world.browser.events().await;
    events.whole().await;
    events.forget();
    let kind = |plural: &str| {
        json!({"metadata": {"name": format!("{plural}.example.org")}, "spec": {
        "group": "example.org", "scope": "Namespaced", "names": {"plural": plural, "kind": "Thing"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
    };
    let definitions: Api<windlass::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition> = Api::all(world.cluster.client());
    definitions.create(&PostParams::default(), &from_value(kind("things")).unwrap()).await.unwrap();
    let client = world.cluster.client();
    let body = json!({"apiVersion": "example.org/v1", "kind": "Thing", "metadata": {"name": "one"}, "status": {"conditions": [{"type": "Ready", "status": "False", "message": "not yet"}]}});
    let request = http::Request::post("/apis/example.org/v1/namespaces/default/things")
        .header("content-type", "application/json")
        .body(serde_json::to_vec(&body).unwrap())
        .unwrap();
    client.request::<Value>(request).await.unwrap();
    events
        .until("the object of the new kind", |text| {
            row(text, "one").is_some_and(|row| row["h"] == "InProgress" && row["m"] == "not yet")
        })
        .await;
    let uid = row(&events.text, "one").unwrap()["u"].as_str().unwrap().to_owned();
    definitions.delete("things.example.org", &DeleteParams::default()).await.unwrap();
    events
        .until("its end", |text| text.lines().any(|line| line.contains("\"del\":[") && line.contains(&uid)))
        .await;
}

#[tokio::test]
async fn the_server_says_what_it_thinks_of_an_edit_before_it_is_one() {
    let world = World::start().await;
    let api: Api<ConfigMap> = Api::namespaced(world.cluster.client(), "default");
    api.create(
        &PostParams::default(),
        &from_value(json!({"metadata": {"name": "c"}, "data": {"a": "1"}})).unwrap(),
    )
    .await
    .unwrap();
    let object = "version=v1&kind=ConfigMap&plural=configmaps&namespace=default&name=c";
    let yaml = |data: &str| {
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: default\n{data}")
    };
    let ask = async |more: &str, data: &str| {
        world.browser.post(&format!("/apply?{object}{more}"), &yaml(data)).await.body
    };
    assert!(ask("&dry=1", "data:\n  a: \"2\"\n").await.contains("\"ok\":true"));
    assert_eq!(api.get("c").await.unwrap().data.unwrap()["a"], "1", "that was a question");
    assert!(ask("&dry=1", "data:\n  a: 2\n").await.contains("\"ok\":false"), "a number is no string");
    assert!(ask("&dry=1", "nothing: here\n").await.contains("unknown field"));
    assert!(ask("&dry=1", "data: [\n").await.contains("\"ok\":false"), "no YAML");
    assert!(ask("", "data:\n  a: \"3\"\n").await.contains("\"ok\":true"));
    assert_eq!(api.get("c").await.unwrap().data.unwrap()["a"], "3");
    let other = world
        .browser
        .post(&format!("/apply?{object}"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: d}\n")
        .await;
    assert!(other.body.contains("\"ok\":false"), "another object");
}

#[tokio::test]
async fn a_pod_and_a_node_fail_by_hand_and_recover() {
    let world = World::start().await;
    let client = world.cluster.client();
    let api: Api<Deployment> = Api::namespaced(client.clone(), "default");
    let mut events = world.browser.events().await;
    api.create(&PostParams::default(), &deployment()).await.unwrap();
    events
        .until("the Deployment, whole", |text| row(text, "web").is_some_and(|row| row["h"] == "Current"))
        .await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), "default");
    let name = pods.list(&ListParams::default()).await.unwrap().items[0].metadata.name.clone().unwrap();
    let pod = format!("version=v1&kind=Pod&plural=pods&namespace=default&name={name}");
    events.forget();
    assert!(
        world.browser.post(&format!("/fault?{pod}&fault=crash-loop"), "").await.body.contains("\"ok\":true")
    );
    events.until("the failure", |text| row(text, &name).is_some_and(|row| row["h"] != "Current")).await;
    events.forget();
    assert!(world.browser.post(&format!("/fault?{pod}&fault="), "").await.body.contains("\"ok\":true"));
    assert!(
        world.browser.post(&format!("/fault?{pod}&fault=explode"), "").await.body.contains("cannot happen")
    );
    let node = "version=v1&kind=Node&plural=nodes&name=windlass-1";
    assert!(world.browser.post(&format!("/fault?{node}&fault=down"), "").await.body.contains("\"ok\":true"));
    events
        .until("the node's failure", |text| {
            row(text, "windlass-1").is_some_and(|row| row["h"] == "InProgress")
        })
        .await;
    events.forget();
    assert!(world.browser.post(&format!("/fault?{node}&fault="), "").await.body.contains("\"ok\":true"));
    events.until("its return", |text| row(text, "windlass-1").is_some_and(|row| row["h"] == "Current")).await;
    let nodes: Api<Node> = Api::all(client);
    let annotations = nodes.get("windlass-1").await.unwrap().metadata.annotations.unwrap_or_default();
    assert!(!annotations.contains_key("windlass.dev/simulate"));
}

#[tokio::test]
async fn the_lines_of_an_object_say_who_wrote_them() {
    let world = World::start().await;
    let api: Api<ConfigMap> = Api::namespaced(world.cluster.client(), "default");
    let patch = |value: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {value: "x"}});
    for manager in ["first", "second"] {
        api.patch("c", &PatchParams::apply(manager), &Patch::Apply(&patch(manager))).await.unwrap();
    }
    let body = world
        .browser
        .get("/object?version=v1&kind=ConfigMap&plural=configmaps&namespace=default&name=c&part=yaml")
        .await
        .body;
    for manager in ["first", "second"] {
        assert!(
            body.contains(&format!("title=\"{manager}\"><span class=\"text\">  {manager}: x</span>")),
            "{body}"
        );
    }
}
