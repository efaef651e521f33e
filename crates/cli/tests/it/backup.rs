//! `windlass cluster backup|restore|import`: a cluster as a file, and as a copy of another one.

use std::{path::Path, process::Output};

use serde_json::{Value, json};
use windlass::kube::{
    Api, Client, Config,
    api::{DynamicObject, ListParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, GroupVersionKind},
};

use crate::command::windlass;

struct Home(tempfile::TempDir);

impl Home {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = windlass();
        command.args(arguments).env("WINDLASS_HOME", self.0.path()).current_dir(self.0.path());
        command.output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    fn kubeconfig(&self, name: &str) -> String {
        self.ok(&["cluster", "kubeconfig", "--name", name]).trim_end().to_owned()
    }

    async fn client(&self, name: &str) -> Client {
        let kubeconfig = Kubeconfig::read_from(self.kubeconfig(name)).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// What is in the folder of clusters, hidden or not.
    fn clusters(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path().join("clusters")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        for name in ["default", "copy", "other"] {
            self.run(&["cluster", "down", "--name", name]);
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn api(client: &Client, api_version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

async fn create(client: &Client, object: Value) -> Value {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let namespace = object["metadata"]["namespace"].as_str();
    let api = api(client, text("/apiVersion"), text("/kind"), namespace);
    let object: DynamicObject = serde_json::from_value(object.clone()).unwrap();
    serde_json::to_value(api.create(&PostParams::default(), &object).await.unwrap()).unwrap()
}

async fn get(
    client: &Client,
    api_version: &str,
    kind: &str,
    namespace: Option<&str>,
    name: &str,
) -> Option<Value> {
    let found = api(client, api_version, kind, namespace).get_opt(name).await.unwrap();
    found.map(|object| serde_json::to_value(object).unwrap())
}

fn map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"},
        "data": {"k": data}})
}

#[tokio::test]
async fn a_backup_of_a_running_or_stopped_cluster_is_another_one_with_the_same_objects() {
    let home = Home(tempfile::tempdir().unwrap());
    home.ok(&["cluster", "up", "--detach", "--no-page"]);
    let client = home.client("default").await;
    let before = create(&client, map("kept", "first")).await;
    let told = home.ok(&["cluster", "backup", "one.backup"]);
    assert!(told.contains("objects at revision"), "{told}");
    create(&client, map("later", "second")).await;
    let again = home.fails(&["cluster", "backup", "one.backup"]);
    assert!(again.contains("exists already, and is not replaced"), "{again}");
    assert!(again.contains("hint: choose another file"), "{again}");
    home.ok(&["cluster", "down"]);
    home.ok(&["cluster", "backup", "two.backup"]);

    let restored = home.ok(&["cluster", "restore", "one.backup", "--name", "copy"]);
    assert!(restored.contains("windlass cluster up --detach --name copy"), "{restored}");
    home.ok(&["cluster", "up", "--detach", "--no-page", "--name", "copy"]);
    let copy = home.client("copy").await;
    // The same uid, resourceVersion and everything else.
    assert_eq!(get(&copy, "v1", "ConfigMap", Some("default"), "kept").await, Some(before));
    assert_eq!(get(&copy, "v1", "ConfigMap", Some("default"), "later").await, None);
    create(&copy, map("new", "third")).await;
    home.ok(&["cluster", "down", "--name", "copy"]);
    home.ok(&["cluster", "restore", "two.backup", "--name", "other"]);

    let taken = home.fails(&["cluster", "restore", "one.backup", "--name", "copy"]);
    assert!(taken.contains("error: the cluster \"copy\" exists already"), "{taken}");
    let good = std::fs::read(home.0.path().join("one.backup")).unwrap();
    std::fs::write(home.0.path().join("torn.backup"), &good[..good.len() - 9]).unwrap();
    std::fs::write(home.0.path().join("text.backup"), "kind: List\n").unwrap();
    for (file, why) in
        [("torn", "is damaged at byte"), ("text", "is not a backup"), ("none", "failed to read")]
    {
        let error = home.fails(&["cluster", "restore", &format!("{file}.backup"), "--name", "new"]);
        assert!(error.contains(why), "{error}");
        assert!(!error.contains("panicked"), "{error}");
    }
    assert_eq!(home.clusters(), ["copy", "default", "other"], "nothing is half done");
    let unknown = home.fails(&["cluster", "backup", "x.backup", "--name", "nobody"]);
    assert!(unknown.contains("there is no cluster \"nobody\""), "{unknown}");
    home.ok(&["cluster", "up", "--detach", "--no-page", "--in-memory"]);
    let memory = home.fails(&["cluster", "backup", "x.backup"]);
    assert!(
        memory.contains("keeps its objects in memory") && memory.contains("windlass cluster import"),
        "{memory}"
    );
    assert!(!home.0.path().join("x.backup").exists());
}

fn definition() -> Value {
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}})
}

#[tokio::test]
async fn an_import_has_the_objects_of_another_cluster_with_their_owners_and_their_status() {
    let home = Home(tempfile::tempdir().unwrap());
    home.ok(&["cluster", "up", "--detach", "--no-page"]);
    let client = home.client("default").await;
    for name in ["shop", "else"] {
        create(&client, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }
    create(&client, definition()).await;
    let thing = create(
        &client,
        json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "owner", "namespace": "shop"},
            "spec": {"a": 1}}),
    )
    .await;
    let mut with_status = thing.clone();
    with_status["status"] = json!({"done": true});
    let with_status: DynamicObject = serde_json::from_value(with_status).unwrap();
    api(&client, "example.com/v1", "Thing", Some("shop"))
        .replace_status("owner", &PostParams::default(), &with_status)
        .await
        .unwrap();
    let owner = json!({"apiVersion": "example.com/v1", "kind": "Thing", "name": "owner",
        "uid": thing["metadata"]["uid"]});
    create(
        &client,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "child", "namespace": "shop",
        "ownerReferences": [owner]}, "data": {"k": "v"}}),
    )
    .await;
    create(
        &client,
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "hidden", "namespace": "shop"},
        "stringData": {"k": "v"}}),
    )
    .await;
    create(
        &client,
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}),
    )
    .await;
    create(&client, json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}})).await;
    let source = home.kubeconfig("default");
    let told = home.ok(&["cluster", "import", "--kubeconfig", &source, "-n", "shop", "--name", "copy"]);
    assert!(told.contains("secrets: --secrets was not given"), "{told}");
    assert!(told.contains("things.example.com"), "{told}");
    let again = home.fails(&["cluster", "import", "--kubeconfig", &source, "--name", "copy"]);
    assert!(again.contains("the cluster \"copy\" exists already"), "{again}");
    home.ok(&["cluster", "up", "--detach", "--no-page", "--name", "copy"]);
    let copy = home.client("copy").await;
    let new = get(&copy, "example.com/v1", "Thing", Some("shop"), "owner").await.unwrap();
    assert_ne!(new["metadata"]["uid"], thing["metadata"]["uid"]);
    assert_eq!((&new["spec"], &new["status"]), (&json!({"a": 1}), &json!({"done": true})));
    let child = get(&copy, "v1", "ConfigMap", Some("shop"), "child").await.unwrap();
    assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], new["metadata"]["uid"]);
    assert_eq!(get(&copy, "v1", "Secret", Some("shop"), "hidden").await, None);
    assert_eq!(get(&copy, "v1", "Namespace", None, "else").await, None);
    assert!(get(&copy, "v1", "Service", Some("shop"), "web").await.is_some());
    // Its controllers have taken over: a ReplicaSet, of the imported Deployment, and no second one.
    let settled = async {
        loop {
            let deployment = get(&copy, "apps/v1", "Deployment", Some("shop"), "web").await.unwrap();
            if deployment["status"]["availableReplicas"] == 2 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_mins(1), settled).await.unwrap();
    let sets = api(&copy, "apps/v1", "ReplicaSet", Some("shop")).list(&ListParams::default()).await.unwrap();
    assert_eq!(sets.items.len(), 1);

    let told = home.ok(&[
        "cluster",
        "import",
        "--kubeconfig",
        &source,
        "--secrets",
        "--kind",
        "secrets",
        "--name",
        "other",
    ]);
    assert!(told.contains("secrets"), "{told}");
    for (flags, why) in [
        (&["--kind", "nothings"][..], "serves no kind \"nothings\""),
        (&["--context", "nowhere"], "failed to read the kubeconfig"),
    ] {
        let arguments = [&["cluster", "import", "--kubeconfig", &source, "--name", "new"], flags].concat();
        let error = home.fails(&arguments);
        assert!(error.contains(why), "{error}");
    }
    assert!(Path::new(&home.0.path().join("clusters/other/data")).is_dir());
    assert_eq!(home.clusters(), ["copy", "default", "other"], "nothing is half done");
}
