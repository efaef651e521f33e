//! `windlass cluster up --detach|down|status|kubeconfig|reset`: clusters that outlive their terminal.

use std::{net::TcpListener, path::Path, process::Output};

use serde_json::Value;
use windlass::{
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{
        Api, Client, Config,
        api::{ObjectMeta, PostParams},
        config::{KubeConfigOptions, Kubeconfig},
    },
};

use crate::{command::windlass, dev::Running};

/// A home for the clusters of one test. What still runs at its end goes with it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn run(&self, arguments: &[&str]) -> Output {
        windlass()
            .args(arguments)
            .env("WINDLASS_HOME", self.0.path())
            .current_dir(self.0.path())
            .output()
            .unwrap()
    }

    /// Runs a command that must succeed.
    fn ok(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Runs a command that must fail through its user.
    fn fails(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", text(&output.stdout));
        text(&output.stderr)
    }

    /// What `status` says of a cluster.
    fn status(&self, name: &str) -> Value {
        let all: Value = serde_json::from_str(&self.ok(&["cluster", "status", "-o", "json"])).unwrap();
        let mut found = all.as_array().unwrap().iter().filter(|entry| entry["name"] == name);
        found.next().cloned().unwrap_or(Value::Null)
    }

    async fn maps(&self, name: &str) -> Api<ConfigMap> {
        let path = self.ok(&["cluster", "kubeconfig", "--name", name]);
        let kubeconfig = Kubeconfig::read_from(path.trim_end()).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        Api::default_namespaced(Client::try_from(config.unwrap()).unwrap())
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// As `kill -9`, after which nothing can be cleaned up.
#[cfg(unix)]
fn kill(status: &Value) {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(status["pid"].as_i64().unwrap()).unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

fn map(name: &str) -> ConfigMap {
    let metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

#[tokio::test]
async fn a_cluster_in_the_background_keeps_its_objects_from_up_to_up() {
    let home = Home::new();
    let up = home.ok(&["cluster", "up", "--detach"]);
    assert!(up.contains("https://127.0.0.1:") && up.contains("windlass cluster down"), "{up}");
    let status = home.status("default");
    assert_eq!(status["state"], "running");
    assert!(up.contains(status["url"].as_str().unwrap()), "{status}");
    home.maps("default").await.create(&PostParams::default(), &map("kept")).await.unwrap();

    let again = home.fails(&["cluster", "up", "--detach"]);
    assert!(again.contains("error: the cluster \"default\" is already running (pid "), "{again}");
    assert!(again.contains("hint: stop it with `windlass cluster down`"), "{again}");

    assert_eq!(home.ok(&["cluster", "down"]), "stopped default\n");
    assert_eq!(home.status("default")["state"], "stopped");
    assert!(!Path::new(status["kubeconfig"].as_str().unwrap()).exists(), "it goes with its cluster");
    for command in ["down", "kubeconfig"] {
        let error = home.fails(&["cluster", command]);
        assert!(error.contains("error: the cluster \"default\" is not running"), "{error}");
        assert!(error.contains("hint: start it with `windlass cluster up --detach`"), "{error}");
    }

    home.ok(&["cluster", "up", "--detach"]);
    let running = home.status("default");
    assert_eq!(running["url"], status["url"], "the port of the last time");
    let maps = home.maps("default").await;
    maps.get("kept").await.unwrap();

    // One that runs starts anew, empty; one that does not is gone.
    let reset = home.ok(&["cluster", "reset"]);
    assert!(reset.contains(status["url"].as_str().unwrap()), "{reset}");
    assert_ne!(home.status("default")["pid"], running["pid"]);
    assert!(home.maps("default").await.get_opt("kept").await.unwrap().is_none());
    home.ok(&["cluster", "down"]);
    assert_eq!(home.ok(&["cluster", "reset"]), "removed default\n");
    assert_eq!(home.ok(&["cluster", "status"]), "no clusters; `windlass cluster up --detach` starts one\n");
}

#[cfg(unix)]
#[test]
fn several_clusters_run_by_name_and_each_says_how_it_is() {
    let home = Home::new();
    home.ok(&["cluster", "up", "--detach", "--name", "one", "--in-memory"]);
    home.ok(&["cluster", "up", "--detach", "--name", "two", "--nodes", "2"]);
    let (one, two) = (home.status("one"), home.status("two"));
    assert_ne!(one["url"], two["url"]);
    assert_eq!((&one["dataDir"], &two["nodes"]), (&Value::Null, &Value::from(2)));

    kill(&two);
    let dead = loop {
        let status = home.status("two");
        if status["state"] != "running" {
            break status;
        }
    };
    assert_eq!(dead["state"], "dead");
    assert!(dead["reason"].as_str().unwrap().contains("killed"), "{dead}");
    let table = home.ok(&["cluster", "status"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("NAME  STATE"), "{table}");
    assert!(lines[1].starts_with("one   running  https://127.0.0.1:"), "{table}");
    assert!(lines[2].starts_with("two   dead"), "{table}");
    assert!(lines[3].starts_with("two: its process was killed"), "{table}");
    assert!(home.ok(&["cluster", "status", "-o", "yaml"]).contains("name: one"));

    home.ok(&["cluster", "up", "--detach", "--name", "two"]);
    home.ok(&["cluster", "down", "--name", "two"]);
    home.ok(&["cluster", "down", "--name", "one"]);
    assert_eq!(home.status("one"), Value::Null, "one in memory leaves nothing");
    let unknown = home.fails(&["cluster", "down", "--name", "three"]);
    assert!(unknown.contains("error: there is no cluster \"three\"\nhint: there are two"), "{unknown}");
}

#[test]
fn a_cluster_that_cannot_start_in_the_background_says_why() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = home.fails(&["cluster", "up", "--detach", "--port", &port]);
    assert!(error.contains("failed to start the cluster \"default\" in the background"), "{error}");
    assert!(error.contains(&format!("failed to serve the API on 127.0.0.1:{port}")), "{error}");
    assert!(error.contains("hint: something else listens on port"), "{error}");
    assert_eq!(home.status("default")["state"], "dead");
    home.ok(&["cluster", "reset"]);
}

#[test]
fn a_name_in_the_foreground_is_found_and_stopped_from_elsewhere() {
    let home = Home::new();
    let path = home.0.path().to_str().unwrap().to_owned();
    let mut cluster =
        Running::start_with(home.0.path(), &["cluster", "up", "--name", "here"], &[("WINDLASS_HOME", &path)]);
    cluster.wait_for("kubectl get nodes");
    while home.status("here")["state"] == "starting" {}
    let error = home.fails(&["cluster", "reset", "--name", "here"]);
    assert!(error.contains("runs in the foreground (pid "), "{error}");
    home.ok(&["cluster", "down", "--name", "here"]);
    cluster.wait_for("stopped");
    assert_eq!(cluster.ended(), Some(0));
}

#[test]
fn a_name_that_cannot_be_one_and_a_home_that_cannot_be_written_are_refused() {
    let home = Home::new();
    let output = home.run(&["cluster", "up", "--name", "../x"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("use lowercase letters"), "{}", text(&output.stderr));
    let output = windlass()
        .args(["cluster", "up", "--detach"])
        .env("WINDLASS_HOME", "/dev/null/windlass")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("hint: set WINDLASS_HOME"), "{}", text(&output.stderr));
}
