//! `windlass run`, and the commands that a project's own program answers.

use serde_json::json;
use windlass::kube::{
    Api,
    api::{ApiResource, DynamicObject, PostParams},
    core::GroupVersionKind,
};

use crate::author::{Author, await_gone, client, pid, text};

#[tokio::test]
async fn run_works_on_the_current_cluster_and_webhooks_reach_back() {
    let author = Author::new();
    assert!(author.run(&["cluster", "up", "--detach", "--in-memory"]).status.success());
    let kubeconfig = text(&author.run(&["cluster", "kubeconfig"]).stdout);
    let kubeconfig = kubeconfig.trim();
    let mut run = author.start(&["run", "--plain", "--kubeconfig", kubeconfig]);
    run.wait_for("cluster     https://127.0.0.1:");
    run.wait_for("webhooks    https://127.0.0.1:");
    run.wait_for("crds        greetings.example.com");
    let operator = pid(&run.wait_for("operator    greeting"));
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Greeting"));
    let rude = DynamicObject::new("rude", &kind).data(json!({"spec": {"text": ""}}));
    let client = client(std::path::Path::new(kubeconfig)).await;
    let greetings = Api::<DynamicObject>::default_namespaced_with(client, &kind);
    let refused = greetings.create(&PostParams::default(), &rude).await.unwrap_err();
    assert!(refused.to_string().contains("say something"), "{refused}");
    let doctor = author.run(&["doctor", "--kubeconfig", kubeconfig]);
    let said = text(&doctor.stdout);
    assert!(said.contains("reachable, v1.37") && said.contains("all that `install` needs"), "{said}");
    run.interrupt();
    run.wait_for("stopped");
    assert_eq!(run.ended(), Some(0));
    await_gone(operator);
    assert!(author.run(&["cluster", "down"]).status.success());

    let gone = author.run(&["run", "--kubeconfig", kubeconfig]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(text(&gone.stderr).contains("hint: name a kubeconfig"), "{}", text(&gone.stderr));
}

#[test]
fn manifests_and_rules_are_those_of_the_sources() {
    let author = Author::new();
    let written = author.run(&["manifests"]);
    assert!(written.status.success(), "{}", text(&written.stderr));
    assert!(author.root.join("config/crd/bases").is_dir());
    assert!(author.run(&["manifests", "--check"]).status.success());
    author.edit(
        "src/lib.rs",
        "kind = \"Greeting\", namespaced",
        "kind = \"Greeting\", namespaced, shortname = \"gr\"",
    );
    let check = author.run(&["manifests", "--check"]);
    assert_eq!(check.status.code(), Some(1), "{}", text(&check.stdout));
    assert!(text(&check.stdout).contains("greetings.yaml"), "{}", text(&check.stdout));

    let rules = author.run(&["explain-rbac"]);
    assert!(rules.status.success(), "{}", text(&rules.stderr));
    assert!(text(&rules.stdout).contains("src/lib.rs:"), "{}", text(&rules.stdout));
    let rules: serde_json::Value =
        serde_json::from_slice(&author.run(&["explain-rbac", "-o", "json"]).stdout).unwrap();
    assert!(!rules.is_null());
    std::fs::remove_dir_all(author.root.join("config")).unwrap();
}

#[test]
fn the_doctor_finds_a_project_well_and_names_what_is_wrong() {
    let author = Author::new();
    let well = author.run(&["doctor", "-o", "json"]);
    let answer: serde_json::Value = serde_json::from_slice(&well.stdout).unwrap();
    assert_eq!(answer["ok"], true, "{answer:#}");
    assert_eq!(well.status.code(), Some(0));
    let check = |name: &str| {
        let checks = answer["checks"].as_array().unwrap();
        checks
            .iter()
            .find(|check| check["name"] == name)
            .unwrap_or_else(|| panic!("{name}: {answer:#}"))
            .clone()
    };
    for name in ["rustc", "cargo", "linker", "disk", "crates", "project", "Cargo.lock"] {
        assert_eq!(check(name)["status"], "ok", "{name}: {answer:#}");
    }
    assert_eq!(check("kubeconfig")["status"], "warn", "there is no cluster");

    std::fs::rename(author.root.join("Cargo.lock"), author.root.join("lock")).unwrap();
    let ill = author.run(&["doctor"]);
    std::fs::rename(author.root.join("lock"), author.root.join("Cargo.lock")).unwrap();
    assert_eq!(ill.status.code(), Some(1));
    let said = text(&ill.stdout);
    assert!(said.contains("fail  Cargo.lock") && said.contains("fix: cargo generate-lockfile"), "{said}");
}
