//! `windlass init`, `create`, `delete` and `upgrade` as a person meets them: messages, exit codes, and what they leave.

use std::{collections::BTreeMap, fs, path::Path, process::Output};

use crate::command::windlass;

fn run(folder: &Path, line: &str) -> Output {
    windlass().args(line.split(' ')).current_dir(folder).output().unwrap()
}

fn succeeds(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a command that the user can put right: one line for the error, one for the hint.
fn refused(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{line}: {stderr}");
    let lines: Vec<&str> = stderr.lines().collect();
    assert!(
        matches!(lines.as_slice(), [error, hint] if error.starts_with("error: ") && hint.starts_with("hint: ")),
        "{stderr}"
    );
    stderr
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut next = vec![folder.to_owned()];
    while let Some(below) = next.pop() {
        for entry in fs::read_dir(below).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                next.push(path);
            } else {
                found.insert(
                    path.strip_prefix(folder).unwrap().display().to_string(),
                    fs::read(&path).unwrap(),
                );
            }
        }
    }
    found
}

#[test]
fn a_project_begins_with_everything_that_people_know() {
    let folder = tempfile::tempdir().unwrap();
    let said = succeeds(folder.path(), "init shop --domain example.com --license apache-2.0");
    assert!(said.contains("cd shop") && said.contains("windlass create api"), "{said}");
    let root = folder.path().join("shop");
    for file in [
        "PROJECT",
        "Cargo.toml",
        "Cargo.lock",
        "rust-toolchain.toml",
        "Makefile",
        "justfile",
        "Dockerfile",
        "README.md",
        "LICENSE",
        "src/main.rs",
        "src/lib.rs",
        "tests/it/main.rs",
        ".github/workflows/test.yml",
        ".vscode/launch.json",
        ".devcontainer/devcontainer.json",
        "config/default/kustomization.yaml",
        "config/manager/manager.yaml",
        "config/rbac/service_account.yaml",
        ".windlass/scaffold/Makefile",
    ] {
        assert!(root.join(file).is_file(), "{file}");
    }
    assert!(fs::read_to_string(root.join("src/main.rs")).unwrap().lines().count() < 20);
    let before = files(&root);
    let said =
        succeeds(&root, "create api --group cache --version v1 --kind Memcached --make=false --dry-run");
    assert!(
        said.contains("create")
            && said.contains("+pub mod memcached;")
            && said.contains("nothing was written"),
        "{said}"
    );
    assert_eq!(files(&root), before);
    succeeds(&root, "create api --group cache --version v1 --kind Memcached --make=false");
    succeeds(
        &root.join("src/memcached"),
        "create webhook --group cache --version v1 --kind Memcached --defaulting --make=false",
    );
    assert!(root.join("src/memcached/webhook.rs").is_file());
    succeeds(&root, "delete api --group cache --version v1 --kind Memcached --make=false");
    assert_eq!(files(&root), before);
    assert!(succeeds(&root, "upgrade").contains("up to date"));
}

#[test]
fn wrong_input_changes_nothing_and_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    refused(folder.path(), "init Shop --domain example.com");
    refused(folder.path(), "init shop --domain nonsense");
    refused(folder.path(), "init shop");
    refused(folder.path(), "init shop --domain example.com --sdk /nonexistent");
    let no_project = refused(folder.path(), "create api --group a --version v1 --kind A");
    assert!(no_project.contains("windlass init"), "{no_project}");
    assert!(files(folder.path()).is_empty());

    succeeds(folder.path(), "init shop --domain example.com");
    let root = folder.path().join("shop");
    succeeds(&root, "create api --group cache --version v1 --kind Memcached --make=false");
    let before = files(&root);
    refused(folder.path(), "init shop --domain example.com");
    for line in [
        "create api --group Cache --version v1 --kind Other",
        "create api --group cache --version 1 --kind Other",
        "create api --group cache --version v1 --kind my-kind",
        "create api --group cache --version v1 --kind Self",
        "create api --group cache --version v1 --kind Memcached",
        "create api --group cache --version v1",
        "create api --from-crd /nonexistent.yaml",
        "create webhook --group cache --version v1 --kind Memcached --conversion",
        "create webhook --group cache --version v1 --kind Nothing --defaulting",
        "delete api --group cache --version v2 --kind Memcached",
    ] {
        refused(&root, line);
        assert_eq!(files(&root), before, "{line}");
    }
    fs::write(root.join("PROJECT"), "layout: [windlass.dev/v2]\ncliVersion: 9.0.0\n").unwrap();
    let newer = refused(&root, "create api --group cache --version v1 --kind Other");
    assert!(newer.contains("update windlass"), "{newer}");
}

#[test]
fn a_conflict_of_an_upgrade_is_shown_with_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    succeeds(folder.path(), "init shop --domain example.com");
    let root = folder.path().join("shop");
    let (file, copy) = (root.join("rustfmt.toml"), root.join(".windlass/scaffold/rustfmt.toml"));
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&copy, text.replace("max_width = 110", "max_width = 90")).unwrap();
    fs::write(&file, text.replace("max_width = 110", "max_width = 80")).unwrap();
    let output = run(&root, "upgrade");
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("max_width = 80") && stdout.contains("max_width = 110"), "{stdout}");
    assert!(stderr.contains("rustfmt.toml") && stderr.contains("--conflict-markers"), "{stderr}");
    assert!(fs::read_to_string(&file).unwrap().contains("max_width = 80"));
}

#[test]
fn a_go_project_becomes_a_project_with_a_list_of_what_is_left_to_port() {
    let folder = tempfile::tempdir().unwrap();
    let go = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scaffold/tests/go");
    let line = format!("init --from-kubebuilder {} --make=false", go.display());
    succeeds(folder.path(), &format!("{line} --dry-run"));
    assert!(files(folder.path()).is_empty());
    succeeds(folder.path(), &line);
    let root = folder.path().join("cronjob-tutorial");
    let text = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let porting = text("PORTING.md");
    for left in [
        "`nextSchedule` (internal/controller/cronjob_controller.go:15)",
        "clock.go",
        "v1alpha1 has other fields",
    ] {
        assert!(porting.contains(left), "{porting}");
    }
    assert!(text("src/cronjob/controller.rs").contains(".owns::<Job>()"));
    assert!(text("src/cronjob/webhook.rs").contains("struct Rules"));
    assert!(text("src/lib.rs").contains(r#"rule("batch", ["jobs/status"], ["get"])"#));
    assert!(text("src/calendar/api.rs").contains("pub mod v1beta1;"));
    let sample = fs::read_to_string(go.join("config/samples/batch_v1_cronjob.yaml")).unwrap();
    assert_eq!(text("config/samples/batch_v1_cronjob.yaml"), sample.replace("\r\n", "\n"));
    assert!(refused(folder.path(), &line).contains("not empty"));
}

#[test]
fn what_is_no_go_project_is_refused_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("old", "version: \"1\"\ndomain: example.com\n", "its version is"),
        ("ours", "version: \"3\"\nlayout: [windlass.dev/v1]\n", "Windlass project already"),
        ("torn", "a: [\n", "failed to understand"),
    ];
    for (name, text, _) in &cases {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("PROJECT"), text).unwrap();
    }
    let before = files(folder.path());
    for (name, _, expected) in cases {
        let said = refused(folder.path(), &format!("init new --from-kubebuilder {name}"));
        assert!(said.contains(expected), "{said}");
    }
    assert!(refused(folder.path(), "init new --from-kubebuilder missing").contains("PROJECT in missing"));
    assert_eq!(files(folder.path()), before);
}
