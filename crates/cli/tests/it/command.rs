//! Commands that end by themselves, and those that fail at once.

use std::{
    net::TcpListener,
    process::{Command, Output},
};

pub(crate) fn windlass() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
    command.env_remove("RUST_LOG");
    command
}

fn run(arguments: &[&str]) -> Output {
    windlass().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn the_version_names_windlass_and_kubernetes() {
    let output = run(&["version"]);
    assert!(output.status.success());
    let expected = format!("windlass {}\nkubernetes 1.37\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn completion_knows_the_commands() {
    let output = run(&["completion", "bash"]);
    assert!(output.status.success());
    assert!(text(&output.stdout).contains("--no-samples"));
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_port_in_use_is_an_error_with_advice() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let output = windlass().args(["dev", "--port", &port, "--kubeconfig"]).arg(&kubeconfig).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains(&format!("error: failed to serve the API on 127.0.0.1:{port}")), "{stderr}");
    assert!(stderr.contains("hint: something else listens on port"), "{stderr}");
    assert!(!kubeconfig.exists(), "nothing is left");
}

#[test]
fn a_kubeconfig_that_cannot_be_written_is_an_error_with_advice() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let place = file.path().join("kubeconfig");
    let output = windlass().args(["cluster", "up", "--kubeconfig"]).arg(&place).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    let wanted = format!("failed to write the kubeconfig {}", place.display());
    assert!(stderr.contains(&wanted), "{stderr}");
    assert!(stderr.contains("hint: choose another place with --kubeconfig"), "{stderr}");
}

#[test]
fn an_unknown_operator_is_refused_with_the_known_ones() {
    let output = run(&["dev", "--only", "nothing"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("possible values: podmanager, webserver"));
}

#[test]
fn operators_manifests_writes_what_the_repository_has() {
    let folder = tempfile::tempdir().unwrap();
    let output = windlass().args(["operators", "manifests", "--out"]).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let config = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config");
    for file in ["default/kustomization.yaml", "rbac/role.yaml", "manager/manager.yaml"] {
        let written = std::fs::read_to_string(folder.path().join(file)).unwrap();
        assert_eq!(written, std::fs::read_to_string(config.join(file)).unwrap(), "{file}");
    }
}

#[test]
fn a_kubeconfig_that_is_not_there_is_an_error_with_advice() {
    let output = run(&["operators", "run", "--kubeconfig", "/nonexistent/kubeconfig"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("failed to read the kubeconfig /nonexistent/kubeconfig"), "{stderr}");
    assert!(stderr.contains("hint: "), "{stderr}");
}

#[test]
fn commands_of_a_project_say_elsewhere_how_to_come_to_one() {
    let folder = tempfile::tempdir().unwrap();
    let lines: [&[&str]; 9] = [
        &["run"],
        &["manifests"],
        &["explain-rbac"],
        &["dev", "--debugger", ":2345"],
        &["install"],
        &["uninstall"],
        &["deploy", "--image", "a:1"],
        &["undeploy"],
        &["image", "build"],
    ];
    for arguments in lines {
        let output = windlass().args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.contains("error: failed to find a project"), "{stderr}");
        assert!(stderr.contains("hint: change into a project, or make one: windlass init"), "{stderr}");
    }
}

#[test]
fn an_image_that_was_not_built_is_neither_pushed_nor_loaded() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["image", "push", "example.com/shop:1"][..], &["image", "load"]] {
        let output = windlass().args(arguments).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with("error: failed to read an image: there is no image in dist"), "{stderr}");
        assert!(stderr.contains("hint: build it with `windlass image build`"), "{stderr}");
    }
    let output = run(&["image", "push", "Example.com/Shop:1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("a path has lower case letters"), "{}", text(&output.stderr));
}

#[test]
fn a_project_without_cargo_is_an_error_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let project = "layout: [windlass.dev/v1]\nprojectName: shop\ndomain: example.com\ncliVersion: 0.1.0\nversion: \"3\"\n";
    std::fs::write(folder.path().join("PROJECT"), project).unwrap();
    for command in ["manifests", "dev"] {
        let mut without = windlass();
        let output =
            without.arg(command).current_dir(folder.path()).env("CARGO", "/nonexistent").output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let stderr = text(&output.stderr);
        assert!(stderr.contains("error: failed to run cargo (/nonexistent)"), "{stderr}");
        assert!(stderr.contains("hint: install Rust from https://rustup.rs"), "{stderr}");
    }
    let doctor =
        windlass().arg("doctor").current_dir(folder.path()).env("CARGO", "/nonexistent").output().unwrap();
    assert_eq!(doctor.status.code(), Some(1));
    let said = text(&doctor.stdout);
    assert!(said.contains("fail  cargo") && said.contains("fix: install Rust"), "{said}");
}
