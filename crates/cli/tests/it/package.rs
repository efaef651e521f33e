//! `manifests --format`, `bundle` and `catalog` as a user meets them. What Helm and OLM make of the files is shown by
//! `tests/packaging`.

use std::{path::Path, process::Output};

use crate::command::windlass;

fn run(folder: &Path, line: &str) -> Output {
    windlass().args(line.split(' ')).current_dir(folder).output().unwrap()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn ok(folder: &Path, line: &str) -> String {
    let output = run(folder, line);
    assert!(output.status.success(), "{line}: {}", said(&output));
    said(&output)
}

#[test]
fn a_chart_that_was_changed_by_hand_is_not_overwritten_silently() {
    let folder = tempfile::tempdir().unwrap();
    let line = "operators manifests --format helm --only memcached";
    let told = ok(folder.path(), &format!("{line} --dry-run"));
    assert!(told.contains("would write") && !folder.path().join("chart").exists(), "{told}");
    ok(folder.path(), line);
    ok(folder.path(), &format!("{line} --check"));
    assert!(ok(folder.path(), line).contains("up to date"));

    let values = folder.path().join("chart/values.yaml");
    std::fs::write(&values, "replicas: 7\n").unwrap();
    let told = ok(folder.path(), &format!("{line} --version 9.0.0"));
    assert!(told.contains("kept") && told.contains("--force") && told.contains("Chart.yaml"), "{told}");
    assert_eq!(std::fs::read_to_string(&values).unwrap(), "replicas: 7\n");
    let stale = run(folder.path(), &format!("{line} --check"));
    assert_eq!(stale.status.code(), Some(1), "{}", said(&stale));
    assert!(said(&stale).contains("hint: write it anew: windlass operators manifests"), "{}", said(&stale));
    ok(folder.path(), &format!("{line} --force"));
    assert!(std::fs::read_to_string(&values).unwrap().contains("# How many replicas"));
}

#[test]
fn a_catalogue_grows_by_one_version_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    for version in ["0.1.0", "0.2.0"] {
        ok(folder.path(), &format!("operators bundle --only memcached --version {version} --out ."));
        ok(folder.path(), "bundle validate");
        ok(folder.path(), "catalog add");
    }
    assert!(ok(folder.path(), "catalog validate").contains("with 2 versions"));
    let rendered = ok(folder.path(), "catalog render");
    assert!(rendered.contains("replaces: memcached-operator.v0.1.0"), "{rendered}");
    let answer = ok(folder.path(), "catalog add -o json");
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["written"], serde_json::json!([]));
    // The same version with another content is a mistake, until it is said that it is none.
    ok(folder.path(), "operators bundle --only memcached --version 0.2.0 --image other:1 --out .");
    let refused = run(folder.path(), "catalog add");
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        said(&refused).contains("memcached-operator.v0.2.0") && said(&refused).contains("--force"),
        "{}",
        said(&refused)
    );
    ok(folder.path(), "catalog add --force");
}

#[test]
fn what_cannot_be_packed_is_told_in_one_line_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("operators bundle --out . --version latest", "MAJOR.MINOR.PATCH"),
        ("operators bundle --out . --maintainer nobody<nowhere>", "NAME <MAIL>"),
        ("operators bundle --out . --icon picture.txt", ".svg, .png"),
        ("catalog render", "windlass catalog add"),
        ("manifests --format helm", "windlass init"),
    ];
    for (line, hint) in cases {
        let output = run(folder.path(), line);
        assert_eq!(output.status.code(), Some(1), "{line}: {}", said(&output));
        let told = said(&output);
        assert!(
            told.contains("error: ") && told.contains(hint) && told.lines().count() == 2,
            "{line}: {told}"
        );
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}
