//! Reading and writing PROJECT.

use std::path::Path;

use super::*;

fn parse(text: &str) -> Result<Project, Error> {
    Project::parse(text, Path::new("PROJECT"))
}

const SMALL: &str = "\
cliVersion: 0.1.0
domain: example.com
layout: [windlass.dev/v1]
projectName: memcached-operator
version: \"3\"
";

#[test]
fn a_project_comes_back_as_it_was() {
    let mut project = Project::new("memcached-operator", "example.com").unwrap();
    project.license = License::Apache;
    project.owner = Some("Example: \"Ltd\"".into());
    project.resources.push(Resource {
        kind: "Memcached".into(),
        version: "v1".into(),
        group: "cache".into(),
        plural: "memcacheds".into(),
        api: Some(Api { crd_version: "v1".into(), namespaced: true }),
        webhooks: Some(Webhooks { defaulting: true, webhook_version: "v1".into(), ..Webhooks::default() }),
        ..Resource::default()
    });
    assert_eq!(parse(&project.to_yaml()).unwrap(), project);
}

#[test]
fn keys_that_nobody_knows_survive() {
    let text = format!(
        "{SMALL}plugins:\n  grafana.kubebuilder.io/v1-alpha: {{}}\nresources:\n- kind: Memcached\n  version: v1\n  colour: [red, 7]\n"
    );
    let written = parse(&text).unwrap().to_yaml();
    let again = parse(&written).unwrap();
    assert_eq!(again.rest["plugins"]["grafana.kubebuilder.io/v1-alpha"], serde_json::json!({}));
    assert_eq!(again.resources[0].rest["colour"], serde_json::json!(["red", 7]));
}

#[test]
fn a_project_of_another_tool_is_refused() {
    let text = SMALL.replace("windlass.dev/v1", "go.kubebuilder.io/v4");
    let error = parse(&text).unwrap_err();
    assert!(error.to_string().contains("go.kubebuilder.io/v4") && error.hint().is_some(), "{error}");
}

#[test]
fn a_project_of_a_newer_windlass_is_refused_whatever_is_in_it() {
    for text in [
        SMALL.replace("0.1.0", "0.10.0"),
        SMALL.replace("0.1.0", "1.0.0-rc.1"),
        SMALL
            .replace("windlass.dev/v1", "windlass.dev/v2")
            .replace("domain: example.com", "domain: {new: form}"),
    ] {
        let error = parse(&text).unwrap_err();
        assert!(matches!(error, Error::NewerProject { .. }), "{error}");
        assert!(error.hint().unwrap().contains("update windlass"));
    }
}

#[test]
fn nonsense_is_an_error_of_one_line() {
    for text in ["", ":", "[1, 2]", "layout: [windlass.dev/v1]", "layout: {a: b}", "\u{0}"] {
        let error = parse(text).unwrap_err();
        assert!(!error.to_string().contains('\n') && error.hint().is_some(), "{error}");
    }
}

#[test]
fn a_name_that_a_person_spoilt_is_refused() {
    let text = SMALL.replace("memcached-operator", "../../etc");
    assert!(matches!(parse(&text).unwrap_err(), Error::Name(_)));
}

#[test]
fn a_project_is_found_from_below() {
    let folder = tempfile::tempdir().unwrap();
    let below = folder.path().join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    assert!(matches!(Project::find(&below).unwrap_err(), Error::NoProject(_)));
    std::fs::write(folder.path().join(FILE), SMALL).unwrap();
    let (root, project) = Project::find(&below).unwrap();
    assert_eq!((root.as_path(), project.project_name.as_str()), (folder.path(), "memcached-operator"));
}
