//! The commands on a project on disk.

use std::{collections::BTreeMap, path::PathBuf};

use super::*;
use crate::plan::{Folder, Plan};

struct Bed {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

fn snapshot(root: &std::path::Path) -> BTreeMap<String, String> {
    let folder = Folder(root);
    folder
        .list("")
        .unwrap()
        .into_iter()
        .map(|path| (path.clone(), folder.read(&path).unwrap().unwrap()))
        .collect()
}

fn api(group: &str, version: &str, kind: &str) -> ApiRequest {
    ApiRequest {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
        plural: None,
        namespaced: None,
        controller: true,
        external: false,
        crd: None,
        image: None,
        port: None,
        run_as_user: None,
        finalizer: false,
        hub: false,
        force: false,
    }
}

fn target(group: &str, version: &str, kind: &str) -> Target {
    Target { group: group.into(), version: version.into(), kind: kind.into() }
}

impl Bed {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("memcached-operator");
        let request = InitRequest {
            name: "memcached-operator".into(),
            folder: root.clone(),
            domain: "example.com".into(),
            ..InitRequest::default()
        };
        init(&request).unwrap().carry_out(&|| false).unwrap();
        Self { _folder: folder, root }
    }

    fn with_kind() -> Self {
        let bed = Self::new();
        bed.create(&api("cache", "v1alpha1", "Memcached")).unwrap();
        bed
    }

    fn create(&self, request: &ApiRequest) -> Result<Plan, Error> {
        let plan = create_api(&self.root, request)?;
        plan.carry_out(&|| false)?;
        Ok(plan)
    }

    fn read(&self, path: &str) -> String {
        Folder(&self.root).read(path).unwrap().unwrap_or_default()
    }

    fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{text}");
        std::fs::write(self.root.join(path), text.replace(from, to)).unwrap();
    }
}

#[test]
fn a_kind_that_is_deleted_leaves_the_project_as_it_was() {
    let bed = Bed::new();
    let before = snapshot(&bed.root);
    bed.create(&ApiRequest { image: Some("nginx:1.29".into()), ..api("web", "v1", "Site") }).unwrap();
    let hooks = WebhookRequest { defaulting: true, validation: true, conversion: false };
    create_webhook(&bed.root, &target("web", "v1", "Site"), hooks, false)
        .unwrap()
        .carry_out(&|| false)
        .unwrap();
    bed.create(&api("web", "v2", "Site")).unwrap();
    delete_api(&bed.root, &target("web", "v2", "Site"), false).unwrap().carry_out(&|| false).unwrap();
    let none = WebhookRequest::default();
    delete_webhook(&bed.root, &target("web", "v1", "Site"), none, false)
        .unwrap()
        .carry_out(&|| false)
        .unwrap();
    let plan = delete_api(&bed.root, &target("web", "v1", "Site"), false).unwrap();
    assert_eq!(plan.kept, [""; 0]);
    plan.carry_out(&|| false).unwrap();
    assert_eq!(snapshot(&bed.root), before);
}

#[test]
fn what_a_person_made_of_a_kind_stays_when_it_is_deleted() {
    let bed = Bed::with_kind();
    bed.edit("src/memcached/build.rs", "Children::new()", "Children::default()");
    let plan = delete_api(&bed.root, &target("cache", "v1alpha1", "Memcached"), false).unwrap();
    assert_eq!(plan.kept, ["src/memcached/build.rs"]);
    plan.carry_out(&|| false).unwrap();
    assert!(
        bed.root.join("src/memcached/build.rs").exists() && !bed.root.join("src/memcached/api.rs").exists()
    );
    assert!(!bed.read("src/lib.rs").contains("memcached::register"));
}

#[test]
fn a_kind_is_there_once() {
    let bed = Bed::with_kind();
    let before = snapshot(&bed.root);
    let error = bed.create(&api("cache", "v1alpha1", "Memcached")).unwrap_err();
    assert_eq!(error.to_string(), "the project has Memcached in cache.example.com/v1alpha1 already");
    assert_eq!(snapshot(&bed.root), before);
    bed.edit("src/memcached/build.rs", "Children::new()", "Children::default()");
    bed.create(&ApiRequest { force: true, finalizer: true, ..api("cache", "v1alpha1", "Memcached") })
        .unwrap();
    assert!(bed.read("src/memcached/controller.rs").contains("FINALIZER"));
}

#[test]
fn two_kinds_of_one_name_in_two_groups_have_two_modules() {
    let bed = Bed::with_kind();
    bed.create(&api("other", "v1", "Memcached")).unwrap();
    let lib = bed.read("src/lib.rs");
    assert!(lib.contains("pub mod memcached;\npub mod other_example_com_memcached;"), "{lib}");
}

#[test]
fn a_further_version_begins_with_the_fields_that_there_are() {
    for hub in [false, true] {
        let bed = Bed::with_kind();
        bed.edit(
            "src/memcached/api.rs",
            "    pub message: String,",
            "    pub message: String,\n\n    /// Mine.\n    pub size: u8,",
        );
        bed.edit("config/samples/cache_v1alpha1_memcached.yaml", "spec:", "spec:\n  size: 3");
        bed.create(&ApiRequest { hub, ..api("cache", "v1", "Memcached") }).unwrap();
        let (stored, spoke) = if hub { ("v1", "v1alpha1") } else { ("v1alpha1", "v1") };
        let (api, other) =
            (bed.read("src/memcached/api.rs"), bed.read(&format!("src/memcached/api/{spoke}.rs")));
        assert!(api.contains(&format!("version = \"{stored}\"")) && api.contains("pub size: u8"), "{api}");
        assert!(api.contains(&format!("pub mod {spoke};")), "{api}");
        assert!(
            other.contains(&format!("version = \"{spoke}\"")) && other.contains("pub size: u8"),
            "{other}"
        );
        for version in ["v1", "v1alpha1"] {
            let sample = bed.read(&format!("config/samples/cache_{version}_memcached.yaml"));
            assert!(
                sample.contains("size: 3") && sample.contains(&format!("cache.example.com/{version}")),
                "{sample}"
            );
        }
        assert!(bed.read("Cargo.toml").contains("proptest"));
    }
}

#[test]
fn the_version_that_is_stored_goes_last() {
    let bed = Bed::with_kind();
    bed.create(&api("cache", "v1", "Memcached")).unwrap();
    let error = delete_api(&bed.root, &target("cache", "v1alpha1", "Memcached"), false).unwrap_err();
    assert!(error.hint().unwrap().ends_with("it: v1"), "{error}");
}

#[test]
fn what_cannot_be_granted_says_what_to_do() {
    let bed = Bed::with_kind();
    let kind = target("cache", "v1alpha1", "Memcached");
    let ask = |defaulting, conversion| WebhookRequest { defaulting, validation: false, conversion };
    let refused = [
        create_webhook(&bed.root, &kind, ask(false, false), false),
        create_webhook(&bed.root, &kind, ask(false, true), false),
        create_webhook(&bed.root, &target("cache", "v9", "Memcached"), ask(true, false), false),
        delete_webhook(&bed.root, &kind, ask(true, false), false),
        delete_api(&bed.root, &target("", "v1", "Nothing"), false),
        create_api(&bed.root, &ApiRequest { hub: true, ..api("cache", "v1", "Other") }),
        create_api(&bed.root, &ApiRequest { namespaced: Some(false), ..api("cache", "v1", "Memcached") }),
    ];
    for result in refused {
        let error = result.unwrap_err();
        assert!(
            !error.to_string().contains('\n') && error.hint().is_some_and(|hint| !hint.contains('\n')),
            "{error}"
        );
    }
}

#[test]
fn a_folder_with_something_in_it_is_no_place_for_a_project() {
    let bed = Bed::new();
    let request = InitRequest {
        name: "it".into(),
        folder: bed.root.clone(),
        domain: "example.com".into(),
        ..InitRequest::default()
    };
    assert!(matches!(init(&request).unwrap_err(), Error::NotEmpty { .. }));
    let empty = tempfile::tempdir().unwrap();
    std::fs::create_dir(empty.path().join(".git")).unwrap();
    assert!(init(&InitRequest { folder: empty.path().into(), ..request }).is_ok());
}

/// Turns the scaffold of a file back into what an older windlass might have written.
fn age(bed: &Bed, path: &str, from: &str, to: &str) {
    bed.edit(path, from, to);
    bed.edit(&format!(".windlass/scaffold/{path}"), from, to);
}

#[test]
fn an_upgrade_of_the_newest_scaffold_changes_nothing() {
    let bed = Bed::with_kind();
    bed.edit("src/memcached/build.rs", "Children::new()", "Children::default()");
    let plan = upgrade(&bed.root, false).unwrap();
    assert!(plan.is_empty(), "{plan:?}");
}

#[test]
fn an_upgrade_brings_what_is_new_and_keeps_what_is_changed() {
    let bed = Bed::with_kind();
    let newest = bed.read("Makefile");
    age(&bed, "Makefile", "VERSION ?= 0.0.1", "VERSION ?= 0.0.0");
    age(&bed, "src/memcached/build.rs", "The children of a Memcached.", "Old words.");
    bed.edit(
        "src/memcached/build.rs",
        "..ConfigMap::default()",
        "immutable: None,\n        ..ConfigMap::default()",
    );
    std::fs::remove_file(bed.root.join("rustfmt.toml")).unwrap();
    std::fs::remove_file(bed.root.join(".windlass/scaffold/clippy.toml")).unwrap();
    std::fs::remove_file(bed.root.join("clippy.toml")).unwrap();
    let plan = upgrade(&bed.root, false).unwrap();
    plan.carry_out(&|| false).unwrap();
    assert_eq!(bed.read("Makefile"), newest);
    let build = bed.read("src/memcached/build.rs");
    assert!(build.contains("The children of a Memcached.") && build.contains("immutable: None,"), "{build}");
    assert!(bed.root.join("clippy.toml").exists(), "what is new comes");
    assert!(!bed.root.join("rustfmt.toml").exists(), "what was removed stays away");
    assert!(upgrade(&bed.root, false).unwrap().is_empty());
}

#[test]
fn a_conflict_of_an_upgrade_is_shown_and_left_to_a_person() {
    let bed = Bed::with_kind();
    age(&bed, "src/memcached/build.rs", "The children of a Memcached.", "Old words.");
    bed.edit("src/memcached/build.rs", "Old words.", "My words.");
    let before = bed.read("src/memcached/build.rs");
    let plan = upgrade(&bed.root, false).unwrap();
    let (path, merged) = &plan.conflicts[0];
    assert_eq!(path, "src/memcached/build.rs");
    assert!(
        merged.contains("<<<<<<<") && merged.contains("My words.") && merged.contains("The children"),
        "{merged}"
    );
    plan.carry_out(&|| false).unwrap();
    assert_eq!(bed.read("src/memcached/build.rs"), before);
    assert_eq!(upgrade(&bed.root, false).unwrap().conflicts.len(), 1, "it is shown again");
    upgrade(&bed.root, true).unwrap().carry_out(&|| false).unwrap();
    assert!(bed.read("src/memcached/build.rs").contains(">>>>>>>"));
    assert!(upgrade(&bed.root, false).unwrap().conflicts.is_empty());
}
