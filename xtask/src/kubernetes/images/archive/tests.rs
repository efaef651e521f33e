//! What a container runtime will find in an archive. How layers and archives are written is tested in windlass-image.

use std::{collections::BTreeMap, io::Read};

use serde_json::json;

use super::*;

fn entries(bytes: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(bytes);
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        assert!(found.insert(path.clone(), content).is_none(), "{path} is there twice");
    }
    found
}

#[test]
fn the_manifest_names_files_that_are_there() {
    let layer = Layer::default().file("usr/bin/app", "binary", 0o755);
    let image = Image {
        tags: vec!["docker.io/library/app:1".to_owned()],
        layers: vec![layer.clone()],
        entrypoint: vec!["/usr/bin/app".to_owned()],
        ports: vec![8080],
        user: "65532".to_owned(),
        ..Image::default()
    };
    let mut out = Vec::new();
    write_archive(&mut out, &[image]).unwrap();
    let found = entries(&out);
    let manifest: serde_json::Value = serde_json::from_slice(&found["manifest.json"]).unwrap();
    assert_eq!(manifest[0]["RepoTags"], json!(["docker.io/library/app:1"]));
    assert_eq!(found[manifest[0]["Layers"][0].as_str().unwrap()], layer.to_tar(0).unwrap());
    let config: serde_json::Value =
        serde_json::from_slice(&found[manifest[0]["Config"].as_str().unwrap()]).unwrap();
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/app"]));
    assert_eq!(config["config"]["ExposedPorts"], json!({"8080/tcp": {}}));
    assert_eq!(config["config"]["User"], "65532");
}

#[test]
fn a_short_name_is_completed_and_a_nameless_one_refused() {
    for (short, full) in [
        ("nginx:1", "docker.io/library/nginx:1"),
        ("org/app:1", "docker.io/org/app:1"),
        ("registry.example:5000/app:1", "registry.example:5000/app:1"),
        ("localhost/app:1", "localhost/app:1"),
    ] {
        assert_eq!(parse_tag(short).as_deref(), Ok(full));
    }
    for bad in ["nginx", ":1", "nginx:", "a b:1", "registry.example:5000/app"] {
        assert!(parse_tag(bad).is_err(), "{bad:?} was accepted");
    }
}
