//! `windlass dev` in a project.

use rustix::process::{Signal, kill_process};
use windlass::{
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{Api, runtime::wait::await_condition},
};

use crate::author::{Author, TIMEOUT, await_gone, client, pid, text};

/// Waits until the greeting in the cluster is this one.
async fn await_text(author: &Author, expected: &str) {
    let client = client(&author.root.join(".windlass/kubeconfig")).await;
    let maps = Api::<ConfigMap>::default_namespaced(client);
    let says = |map: Option<&ConfigMap>| {
        map.and_then(|map| map.data.as_ref()).is_some_and(|data| data["text"] == expected)
    };
    let said = tokio::time::timeout(TIMEOUT, await_condition(maps, "hello", says)).await;
    said.unwrap_or_else(|_| panic!("{expected:?} was never said")).unwrap();
}

#[tokio::test]
async fn an_edit_runs_a_compile_error_does_not_and_the_cluster_stays() {
    let author = Author::new();
    let mut dev = author.start(&["dev", "--plain"]);
    dev.wait_for("https://127.0.0.1:");
    let first = pid(&dev.wait_for("operator    greeting"));
    dev.wait_for("greetings.example.com");
    dev.wait_for("hello  Ready");
    await_text(&author, "hello!").await;

    author.edit("src/lib.rs", "{text}!", "{text}, world!");
    dev.wait_for("changed src/lib.rs");
    let second = pid(&dev.wait_for("operator    greeting"));
    assert_ne!(first, second);
    await_gone(first);
    await_text(&author, "hello, world!").await;

    author.edit("src/lib.rs", "format!", "formal!");
    dev.wait_for("cannot find macro `formal`");
    dev.wait_for("greeting  does not compile (the operator of the last build goes on)");
    author.edit("config/samples/greeting.yaml", "text: hello", "text: goodbye");
    dev.wait_for("samples     greeting/hello");
    await_text(&author, "goodbye, world!").await;

    author.edit("src/lib.rs", "formal!(\"{text}, world!\")", "format!(\"{text}.\")");
    let third = pid(&dev.wait_for("operator    greeting"));
    await_gone(second);
    await_text(&author, "goodbye.").await;

    author.write(
        "config/samples/rude.yaml",
        "apiVersion: example.com/v1\nkind: Greeting\nmetadata:\n  name: rude\nspec:\n  text: ''\n",
    );
    let refused = dev.wait_for("error: failed to apply greeting/rude");
    std::fs::remove_file(author.root.join("config/samples/rude.yaml")).unwrap();
    assert!(refused.contains("denied the request: say something"), "{refused}");

    kill_process(third, Signal::KILL).unwrap();
    dev.wait_for("operator  ended (signal: 9 (SIGKILL)); starts again in 1 s");
    let fourth = pid(&dev.wait_for("operator    greeting"));

    dev.interrupt();
    dev.wait_for("stopped");
    assert_eq!(dev.ended(), Some(0));
    await_gone(fourth);
    assert!(dev.seen.iter().all(|line| !line.contains('\u{1b}')), "no colours: {:#?}", dev.seen);
    let left: Vec<_> = std::fs::read_dir(author.root.join(".windlass")).unwrap().collect();
    assert!(left.is_empty(), "the keys go with their cluster: {left:?}");
}

#[test]
fn an_operator_does_not_outlive_a_killed_windlass() {
    let author = Author::new();
    let mut dev = author.start(&["dev", "--no-samples"]);
    let operator = pid(&dev.wait_for("operator    greeting"));
    dev.child.kill().unwrap();
    dev.child.wait().unwrap();
    await_gone(operator);
}

#[test]
fn a_project_that_does_not_compile_is_waited_for() {
    let author = Author::new();
    author.edit("src/lib.rs", "struct Polite;", "struct Polite");
    let mut dev = author.start(&["dev", "--plain"]);
    dev.wait_for("greeting  does not compile (waiting for a change)");
    author.edit("src/lib.rs", "struct Polite", "struct Polite;");
    dev.wait_for("hello  Ready");
    dev.interrupt();
    dev.wait_for("stopped");
    assert_eq!(dev.ended(), Some(0));
}

#[test]
fn what_is_not_for_a_project_or_of_a_newer_windlass_is_refused() {
    let author = Author::new();
    let only = author.run(&["dev", "--only", "webserver"]);
    assert_eq!(only.status.code(), Some(1));
    assert!(text(&only.stderr).contains("hint: leave it out"), "{}", text(&only.stderr));
    author.edit("PROJECT", "windlass.dev/v1", "windlass.dev/v9");
    for command in ["dev", "run", "manifests", "explain-rbac"] {
        let newer = author.run(&[command]);
        assert_eq!(newer.status.code(), Some(1));
        let said = text(&newer.stderr);
        assert!(said.contains("failed to use a project of windlass") && said.contains("hint: "), "{said}");
    }
}
