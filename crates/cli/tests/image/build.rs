//! What is built: the same bytes every time, which others can read.

use std::{fs, path::Path, process::Command};

use serde_json::Value;

use crate::author::{Author, files, succeeds};

/// Runs skopeo, which must be there.
pub(crate) fn skopeo(arguments: &[&str]) -> String {
    let mut command = Command::new("skopeo");
    command.args(arguments);
    succeeds(command)
}

fn digest(layout: &Path) -> String {
    let index: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    index["manifests"][0]["digest"].as_str().unwrap().to_owned()
}

#[test]
fn two_builds_in_two_directories_are_equal_byte_for_byte() {
    let (one, other) = (Author::with_image(), Author::with_image());
    let found = files(&one.image());
    assert!(found.len() > 10, "{found:?}");
    assert!(found == files(&other.image()), "the layouts differ");
    let archives = "image build --output oci-archive:a.tar --output docker-archive:b.tar";
    one.succeeds(archives);
    other.succeeds(archives);
    for file in ["a.tar", "b.tar"] {
        assert!(fs::read(one.path(file)).unwrap() == fs::read(other.path(file)).unwrap(), "{file} differs");
    }
    // And no path of this machine is in the program.
    let program = fs::read(one.path("target/x86_64-unknown-linux-musl/release/hello")).unwrap();
    let place = one.folder.path().to_str().unwrap().as_bytes().to_vec();
    assert!(!program.windows(place.len()).any(|window| window == place));
}

#[test]
fn skopeo_inspects_and_copies_what_was_built() {
    let author = Author::with_image();
    let layout = format!("oci:{}:0.3.0", author.image().display());
    for (architecture, flag) in [("amd64", "--override-arch=amd64"), ("arm64", "--override-arch=arm64")] {
        let seen: Value = serde_json::from_str(&skopeo(&[flag, "inspect", &layout])).unwrap();
        assert_eq!((&seen["Architecture"], &seen["Os"]), (&architecture.into(), &"linux".into()));
        assert_eq!(seen["Created"], "1970-01-01T00:00:00Z");
        assert_eq!(seen["Labels"]["org.opencontainers.image.version"], "0.3.0");
        let config: Value = serde_json::from_str(&skopeo(&[flag, "inspect", "--config", &layout])).unwrap();
        assert_eq!(config["config"]["User"], "65532:65532");
    }
    let copy = author.path("copy");
    skopeo(&["copy", "--all", "--quiet", &layout, &format!("oci:{}:0.3.0", copy.display())]);
    assert_eq!(digest(&copy), digest(&author.image()));

    author.succeeds("image build --image example.com/team/hello:1 --output oci-archive:a.tar --output docker-archive:b.tar");
    for place in ["oci-archive:a.tar", "docker-archive:b.tar"] {
        let (kind, file) = place.split_once(':').unwrap();
        let place = format!("{kind}:{}", author.path(file).display());
        let name = if kind == "oci-archive" { ":1" } else { ":example.com/team/hello:1" };
        let seen: Value = serde_json::from_str(&skopeo(&["inspect", &format!("{place}{name}")])).unwrap();
        assert_eq!(seen["Labels"]["org.opencontainers.image.title"], "hello", "{place}");
    }
}

#[test]
fn a_program_of_the_wrong_kind_is_refused() {
    let author = Author::new();
    let own = env!("CARGO_BIN_EXE_windlass");
    let error = author.fails(&format!("image build --binary linux/amd64={own}"));
    assert!(error.contains("it is not statically linked"), "{error}");
    author.succeeds("image build");
    let built = "target/x86_64-unknown-linux-musl/release/hello";
    let error = author.fails(&format!("image build --binary linux/arm64={built}"));
    assert!(error.contains("it is a program for linux/amd64, not for linux/arm64"), "{error}");
    author.succeeds(&format!("image build --binary linux/amd64={built}"));
}
