//! What a container runtime will find in an archive.

use std::io::Read;

use super::*;

fn entries(bytes: &[u8]) -> BTreeMap<String, (Header, Vec<u8>)> {
    let mut archive = tar::Archive::new(bytes);
    let mut found = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let mut content = Vec::new();
        entry.read_to_end(&mut content).unwrap();
        let path = entry.path().unwrap().to_string_lossy().into_owned();
        assert!(
            found.insert(path.clone(), (entry.header().clone(), content)).is_none(),
            "{path} is there twice"
        );
    }
    found
}

fn layer() -> Vec<u8> {
    Layer::default()
        .file("usr/bin/app", b"binary".to_vec(), 0o755)
        .symlink("usr/bin/alias", "app")
        .directory("tmp", 0o1777)
        .to_tar()
        .unwrap()
}

fn archive(images: &[Image]) -> BTreeMap<String, (Header, Vec<u8>)> {
    let mut out = Vec::new();
    write_archive(&mut out, images).unwrap();
    entries(&out)
}

#[test]
fn a_layer_has_its_files_links_and_parent_directories() {
    let found = entries(&layer());
    let paths: Vec<_> = found.keys().map(String::as_str).collect();
    assert_eq!(paths, ["tmp/", "usr/", "usr/bin/", "usr/bin/alias", "usr/bin/app"]);
    let (header, content) = &found["usr/bin/app"];
    assert_eq!((header.mode().unwrap(), content.as_slice()), (0o755, b"binary".as_slice()));
    assert_eq!(found["tmp/"].0.mode().unwrap(), 0o1777);
    assert_eq!(found["usr/bin/alias"].0.link_name().unwrap().unwrap().to_str(), Some("app"));
}

#[test]
fn an_equal_layer_has_an_equal_digest() {
    assert_eq!(digest(&layer()), digest(&layer()));
    assert_eq!(digest(b""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

#[test]
fn the_manifest_names_files_that_are_there() {
    let image = Image {
        tags: vec!["docker.io/library/app:1".to_owned()],
        layers: vec![layer()],
        entrypoint: vec!["/usr/bin/app".to_owned()],
        ports: vec![8080],
        user: "65532".to_owned(),
        ..Image::default()
    };
    let found = archive(&[image]);
    let manifest: serde_json::Value = serde_json::from_slice(&found["manifest.json"].1).unwrap();
    assert_eq!(manifest[0]["RepoTags"], json!(["docker.io/library/app:1"]));
    let layer_name = manifest[0]["Layers"][0].as_str().unwrap();
    assert_eq!(found[layer_name].1, layer());
    let config: serde_json::Value =
        serde_json::from_slice(&found[manifest[0]["Config"].as_str().unwrap()].1).unwrap();
    assert_eq!(config["rootfs"]["diff_ids"][0], format!("sha256:{}", digest(&layer())));
    assert_eq!(config["config"]["Entrypoint"], json!(["/usr/bin/app"]));
    assert_eq!(config["config"]["ExposedPorts"], json!({"8080/tcp": {}}));
    assert_eq!(config["config"]["User"], "65532");
}

#[test]
fn a_shared_layer_is_written_once() {
    let image = |tag: &str, command: &str| Image {
        tags: vec![tag.to_owned()],
        layers: vec![layer()],
        command: vec![command.to_owned()],
        ..Image::default()
    };
    let found = archive(&[image("a:1", "one"), image("b:1", "two")]);
    // One layer, two configurations and the manifest.
    assert_eq!(found.len(), 4);
    assert!(found.contains_key(&format!("{}.tar", digest(&layer()))));
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
