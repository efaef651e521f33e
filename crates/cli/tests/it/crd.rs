//! `windlass crd diff`: what it prints, and its exit codes.

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Output, Stdio},
};

use crate::command::windlass;

const OLD: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {a: {type: string, maxLength: 9}, b: {type: string}}}}
";

struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn diff(&self, old: &str, new: &str, more: &[&str]) -> Output {
        let mut command = windlass();
        command.args(["crd", "diff"]).arg(self.path(old)).arg(self.path(new)).args(more);
        command.output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn nothing_breaking_is_success() {
    let looser = OLD.replace("maxLength: 9", "maxLength: 10");
    let files = Files::new(&[
        ("old.yaml", OLD),
        ("new/deep/crd.yml", &looser),
        ("new/kustomization.yaml", "resources: []"),
    ]);
    let output = files.diff("old.yaml", "old.yaml", &[]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "no differences\n"));
    let output = files.diff("old.yaml", "new", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).ends_with("0 breaking, 0 warnings, 1 harmless\n"),
        "{}",
        text(&output.stdout)
    );
}

#[test]
fn breaking_is_failure_and_says_what_to_do() {
    let files = Files::new(&[("old.yaml", OLD), ("new.yaml", &OLD.replace(", b: {type: string}", ""))]);
    let output = files.diff("old.yaml", "new.yaml", &[]);
    assert_eq!(output.status.code(), Some(1));
    let stdout = text(&output.stdout);
    assert!(stdout.contains("things.example.com\n  breaking  v1 .spec.b: it is gone"), "{stdout}");
    assert!(stdout.contains("keep the field, and stop using it"), "{stdout}");
    assert_eq!(text(&output.stderr), "error: 1 of the changes breaks stored objects or clients\n");

    let output = files.diff("old.yaml", "new.yaml", &["-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["breaking"], 1);
    assert_eq!(report["findings"][0]["reason"], "FieldRemoved");
    assert_eq!(report["findings"][0]["path"], ".spec.b");
    let output = files.diff("old.yaml", "new.yaml", &["-o", "yaml"]);
    assert!(text(&output.stdout).contains("  reason: FieldRemoved\n"));
}

#[test]
fn one_side_may_come_from_stdin() {
    let files = Files::new(&[("old.yaml", OLD)]);
    let mut command = windlass();
    command
        .args(["crd", "diff", "-"])
        .arg(files.path("old.yaml"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(OLD.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "no differences\n"));
}

#[test]
fn what_cannot_be_compared_is_told_apart_from_what_breaks() {
    let beta = OLD.replace("k8s.io/v1\n", "k8s.io/v1beta1\n");
    let files = Files::new(&[
        ("old.yaml", OLD),
        ("pod.yaml", "apiVersion: v1\nkind: Pod\n"),
        ("bad.yaml", "a: [\n"),
        (
            "half.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {group: a}\n",
        ),
        ("beta.yaml", &beta),
        ("twice/a.yaml", OLD),
        ("twice/b.yaml", OLD),
        ("empty/README.md", "nothing"),
    ]);
    let cases = [
        ("missing.yaml", "missing.yaml: ", "hint: name a file or a directory"),
        ("pod.yaml", "failed to find a CustomResourceDefinition in", "hint: name a file or a directory"),
        ("empty", "failed to find a CustomResourceDefinition in", "hint: name a file or a directory"),
        ("bad.yaml", "bad.yaml: failed to read the YAML: ", ""),
        ("half.yaml", "missing field", ""),
        ("beta.yaml", "its apiVersion is \"apiextensions.k8s.io/v1beta1\"", "hint: let a cluster convert it"),
        ("twice", "things.example.com twice", ""),
    ];
    for (name, error, hint) in cases {
        let output = files.diff(name, "old.yaml", &[]);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{name}: {stderr}");
        assert_eq!(text(&output.stdout), "", "{name}");
        assert!(
            stderr.starts_with("error: ") && stderr.contains(error) && stderr.contains(hint),
            "{name}: {stderr}"
        );
        assert!(stderr.lines().count() <= 2, "{name}: {stderr}");
    }
    let output = windlass().args(["crd", "diff", "-", "-"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("failed to read both sides from stdin"));
}

#[test]
fn definitions_of_this_repository_do_not_differ_from_themselves() {
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/crd");
    let output = windlass().args(["crd", "diff"]).arg(&config).arg(&config).output().unwrap();
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "no differences\n"));
}
