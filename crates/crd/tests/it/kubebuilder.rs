//! Go projects, as kubebuilder lays them out.

use std::path::{Path, PathBuf};

use windlass_crd::{
    Options,
    kubebuilder::{Error, GoKind, Permission, Project},
};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kubebuilder").join(name)
}

fn kinds(kinds: &[GoKind]) -> Vec<String> {
    kinds
        .iter()
        .map(|kind| kind.rust_path().unwrap_or_else(|| format!("{}.{}", kind.package, kind.kind)))
        .collect()
}

#[test]
fn a_project_gives_its_kinds_and_what_is_left_to_port() {
    let project = Project::read(&folder("single")).unwrap();
    assert_eq!((project.name.as_str(), project.domain.as_str()), ("clock-operator", "example.com"));
    let groups: Vec<String> =
        project.resources.iter().map(|r| format!("{}.{}", r.plural, r.api_group())).collect();
    assert_eq!(
        groups,
        [
            "clocks.time.example.com",
            "deployments.apps",
            "zones.time.example.com",
            "certificates.cert-manager.io"
        ]
    );
    let defined: Vec<bool> = project.resources.iter().map(|resource| resource.defined).collect();
    assert_eq!(defined, [true, false, true, false]);

    let clock = &project.resources[0];
    assert!(clock.webhooks.defaulting, "PROJECT says so");
    assert!(clock.webhooks.validation, "the manifests say so");
    assert!(!clock.webhooks.conversion);
    let controller = clock.controller.as_ref().unwrap();
    assert_eq!(controller.file, Path::new("internal/controller/clock_controller.go"));
    assert_eq!(kinds(&controller.reconciles), ["github.com/example/clock-operator/api/v1.Clock"]);
    assert_eq!(kinds(&controller.owns), ["k8s_openapi::api::apps::v1::Deployment"]);
    let watched = ["k8s_openapi::api::core::v1::Secret", "k8s_openapi::api::core::v1::ConfigMap"];
    assert_eq!(kinds(&controller.watches), watched);
    let functions: Vec<_> = controller.functions.iter().map(|f| (f.name.as_str(), f.line)).collect();
    assert_eq!(functions, [("Reconcile", 15), ("handsOf", 21), ("SetupWithManager", 23)]);
    assert_eq!(clock.webhook_files[0].file, Path::new("internal/webhook/v1/clock_webhook.go"));
    assert_eq!(project.other_files, [Path::new("internal/schedule/tick.go")]);

    let definition = project.definition(clock).unwrap();
    assert!(definition.rust("v1", &Options::default()).unwrap().source.contains("pub struct ClockSpec"));
    assert_eq!(project.samples.len(), 1);
    assert_eq!(project.samples[0].kind, "Clock");
    assert_eq!(
        project.notes,
        [
            "the controller of Deployment apps/v1 was not found",
            "Zone time.example.com/v1 has no definition in config/crd/bases: run `make manifests` there first",
            "the controller of Certificate cert-manager.io/v1 was not found",
        ]
    );
}

#[test]
fn permissions_that_follow_from_the_controllers_are_left_out() {
    let project = Project::read(&folder("single")).unwrap();
    let permission = |group: &str, resource: &str, verbs: &[&str]| Permission {
        group: group.to_owned(),
        resource: resource.to_owned(),
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
        ..Permission::default()
    };
    let expected = [
        permission("", "configmaps", &["create"]),
        permission("", "pods/exec", &["create", "get"]),
        permission("apps", "deployments", &["deletecollection"]),
        permission("time.example.com", "clocks", &["create", "delete"]),
        Permission {
            urls: vec!["/metrics".to_owned()],
            verbs: vec!["get".to_owned()],
            ..Permission::default()
        },
    ];
    assert_eq!(project.permissions_beyond(), expected);
}

#[test]
fn an_old_project_with_several_groups_is_read_too() {
    let project = Project::read(&folder("multigroup")).unwrap();
    assert_eq!(project.name, "multigroup");
    let found: Vec<_> = project
        .resources
        .iter()
        .map(|resource| {
            let controller = resource.controller.as_ref().unwrap();
            let path =
                controller.file.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/");
            (resource.plural.as_str(), resource.api_group(), path, kinds(&controller.owns))
        })
        .collect();
    let job = || vec!["k8s_openapi::api::batch::v1::Job".to_owned()];
    let expected = ["cache", "ship"].map(|group| {
        (
            "proxies",
            format!("{group}.tutorial.example.com"),
            format!("controllers/{group}/proxy_controller.go"),
            job(),
        )
    });
    assert_eq!(found, expected);
    assert_eq!(project.notes.len(), 3, "{:?}", project.notes);
}

#[test]
fn what_is_no_go_project_is_refused() {
    assert!(matches!(Project::read(&folder("missing")), Err(Error::NoProject(_))));
    let cases = [
        ("version: \"1\"\ndomain: example.com\n", "its version is \"1\", and 2 and 3 are known"),
        ("version: \"3\"\nlayout: [windlass.dev/v1]\n", "it is a Windlass project already"),
        ("a: [\n", "failed to understand"),
    ];
    for (text, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("PROJECT"), text).unwrap();
        let error = Project::read(folder.path()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
