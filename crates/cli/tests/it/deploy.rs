//! `windlass operators install|uninstall|deploy|undeploy` on the embedded cluster, through sockets and exit codes; a
//! project's own go the same way behind its build.

use std::{
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use serde_json::json;
use windlass::kube::{
    Api, Client, Config,
    api::{DynamicObject, Patch, PatchParams},
    config::{KubeConfigOptions, Kubeconfig},
};

use crate::command::windlass;

/// A cluster in the background, which goes with its test.
struct Bed {
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
}

impl Bed {
    fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let run = |arguments: &[&str]| {
            let output = windlass().args(arguments).env("WINDLASS_HOME", home.path()).output().unwrap();
            assert!(output.status.success(), "{}", text(&output.stderr));
            text(&output.stdout)
        };
        run(&["cluster", "up", "--detach"]);
        let kubeconfig = PathBuf::from(run(&["cluster", "kubeconfig"]).trim_end());
        Self { home, kubeconfig }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = windlass();
        command.args(arguments).env("KUBECONFIG", &self.kubeconfig).stdin(Stdio::null()).output().unwrap()
    }

    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// What is said on both streams by a command that its user can mend.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stdout) + &text(&output.stderr)
    }

    async fn client(&self) -> Client {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Client::try_from(config.unwrap()).unwrap()
    }

    /// Applies the sample of Memcached.
    async fn sample(&self) {
        let entry = windlass_operators::entry("memcached").unwrap();
        windlass_operators::install::sample(&self.client().await, entry, "default").await.unwrap();
    }

    async fn has_sample(&self) -> bool {
        let entry = windlass_operators::entry("memcached").unwrap();
        let api = Api::<DynamicObject>::namespaced_with(self.client().await, "default", &entry.resource());
        api.get("memcached-sample").await.is_ok()
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        let _ = windlass().args(["cluster", "down"]).env("WINDLASS_HOME", self.home.path()).output();
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[tokio::test]
async fn an_operator_is_deployed_upgraded_undone_and_taken_out_and_no_object_is_lost() {
    let bed = Bed::start();
    let deploy = ["operators", "deploy", "--only", "memcached", "--image"];
    let with = |image: &'static str, more: &[&'static str]| [&deploy[..], &[image], more].concat();
    let said = bed.ok(&with("op:1", &[]));
    assert!(said.contains("Deployment memcached-operator-system/memcached-operator is ready"), "{said}");
    assert!(said.contains("deployed memcached-operator as revision 1"), "{said}");
    bed.sample().await;

    let said = bed.ok(&with("op:2", &["--dry-run"]));
    assert!(said.contains("op:1\n") && said.contains("op:2\n") && said.contains("+++ Deployment"), "{said}");
    let said = bed.ok(&with("op:2", &[]));
    assert!(said.contains("as revision 2"), "{said}");
    let said = bed.ok(&["operators", "deploy", "--only", "memcached", "--undo"]);
    assert!(said.contains("going back to revision 1 (op:1)") && said.contains("as revision 3"), "{said}");

    // Without a terminal nobody is asked, and nothing is deleted.
    let said = bed.fails(&["operators", "uninstall", "--only", "memcached"]);
    assert!(
        said.contains("memcacheds.cache.example.com has 1 object: Memcached default/memcached-sample"),
        "{said}"
    );
    assert!(said.contains("hint: to lose them, say how many: --delete-objects=1"), "{said}");
    let said = bed.ok(&["operators", "undeploy", "--only", "memcached"]);
    assert!(
        said.contains("kept CustomResourceDefinition memcacheds.cache.example.com and its 1 object"),
        "{said}"
    );
    assert!(bed.has_sample().await);
    bed.fails(&["operators", "uninstall", "--only", "memcached", "--delete-objects=2"]);
    assert!(bed.has_sample().await);
    let said = bed.ok(&["operators", "uninstall", "--only", "memcached", "--delete-objects=1"]);
    assert!(said.contains("deleted Memcached default/memcached-sample"), "{said}");
    assert!(said.contains("deleted CustomResourceDefinition memcacheds.cache.example.com"), "{said}");
    assert!(!bed.has_sample().await);
}

#[tokio::test]
async fn a_definition_of_somebody_else_is_refused_with_one_line_and_advice() {
    let bed = Bed::start();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "memcacheds.cache.example.com", "labels": {"app.kubernetes.io/managed-by": "Helm"}},
        "spec": {
            "group": "cache.example.com", "scope": "Namespaced", "names": {"kind": "Memcached", "plural": "memcacheds"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let api = Api::<windlass::k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition>::all(bed.client().await);
    let params = PatchParams::apply("helm").force();
    api.patch("memcacheds.cache.example.com", &params, &Patch::Apply(&crd)).await.unwrap();
    let said = bed.fails(&["operators", "install", "--only", "memcached"]);
    assert!(
        said.contains("CustomResourceDefinition memcacheds.cache.example.com is somebody else's"),
        "{said}"
    );
    assert!(said.contains("hint: ") && said.contains("--force-conflicts"), "{said}");
    bed.ok(&["operators", "install", "--only", "memcached", "--force-conflicts"]);
}

#[test]
fn without_a_cluster_every_command_says_so_in_one_line_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("kubeconfig");
    // A port that was just free.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "a",
        "clusters": [{"name": "a", "cluster": {"server": format!("https://127.0.0.1:{port}")}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}], "users": [{"name": "a", "user": {}}],
    });
    std::fs::write(&nowhere, config.to_string()).unwrap();
    for command in ["install", "uninstall", "deploy", "undeploy"] {
        for (kubeconfig, wanted) in [
            (nowhere.as_path(), "failed to reach"),
            (Path::new("/nonexistent"), "failed to read the kubeconfig"),
        ] {
            let output =
                windlass().args(["operators", command, "--kubeconfig"]).arg(kubeconfig).output().unwrap();
            assert_eq!(output.status.code(), Some(1), "{command}");
            let stderr = text(&output.stderr);
            assert!(stderr.contains(wanted) && stderr.contains("hint: "), "{command}: {stderr}");
        }
    }
}
