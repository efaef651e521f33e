//! Every file that is scaffolded, as it is written: a few projects, each in one snapshot. `INSTA_UPDATE=always cargo test
//! -p windlass-scaffold --test golden` writes them anew.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{fmt::Write, path::Path, process::Command};

use windlass_scaffold::{
    Change,
    commands::{ApiRequest, InitRequest, Target, WebhookRequest, create_api, create_webhook, init},
    project::License,
};

struct Bed(tempfile::TempDir);

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

impl Bed {
    fn new(change: impl FnOnce(&mut InitRequest)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut request = InitRequest {
            name: "shop-operator".into(),
            folder: folder.path().into(),
            domain: "example.com".into(),
            ..InitRequest::default()
        };
        change(&mut request);
        let plan = init(&request).unwrap();
        plan.carry_out(&|| false).unwrap();
        Self(folder)
    }

    /// What a command writes, file by file; of a file that is there, what changes.
    fn create(&self, request: &ApiRequest) -> String {
        let plan = create_api(self.0.path(), request).unwrap();
        plan.carry_out(&|| false).unwrap();
        page(plan.visible())
    }

    /// Everything that is there.
    fn page(&self) -> String {
        let plan = init_again(self);
        page(plan.iter())
    }
}

/// The files of a project, as if they were to be created.
fn init_again(bed: &Bed) -> Vec<Change> {
    let mut found = Vec::new();
    let mut next = vec![bed.0.path().to_owned()];
    while let Some(folder) = next.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(bed.0.path()).unwrap().to_string_lossy().replace('\\', "/");
            if path.is_dir() && !name.starts_with(".windlass") {
                next.push(path);
            } else if path.is_file() {
                found.push(Change::Create { path: name, content: std::fs::read_to_string(&path).unwrap() });
            }
        }
    }
    found.sort_by(|one, other| one.path().cmp(other.path()));
    found
}

fn page<'a>(changes: impl Iterator<Item = &'a Change>) -> String {
    let mut page = String::new();
    for change in changes {
        let text = match change {
            Change::Create { content, .. } => content.clone(),
            Change::Replace { .. } => change.diff().unwrap(),
            Change::Remove { .. } => "removed\n".into(),
        };
        write!(page, "==== {} ====\n{text}\n", change.path()).unwrap();
    }
    page
}

#[test]
fn a_project_without_kinds() {
    let bed = Bed::new(|request| {
        request.license = License::Mit;
        request.owner = Some("Example Ltd".into());
        request.repo = Some("github.com/example/shop-operator".into());
    });
    insta::assert_snapshot!(bed.page());
}

#[test]
fn a_project_with_another_sdk() {
    let bed = Bed::new(|request| request.sdk = Some("https://git.example.com/windlass".into()));
    let all = init_again(&bed);
    let manifest = all.iter().filter(|change| change.path() == "Cargo.toml");
    insta::assert_snapshot!(page(manifest));
}

#[test]
fn a_kind() {
    insta::assert_snapshot!(Bed::new(|_| ()).create(&api("cache", "v1alpha1", "Memcached")));
}

#[test]
fn a_kind_that_runs_an_image() {
    let request = ApiRequest {
        image: Some("nginx:1.29".into()),
        port: Some(8080),
        run_as_user: Some(101),
        finalizer: true,
        ..api("web", "v1", "Site")
    };
    insta::assert_snapshot!(Bed::new(|_| ()).create(&request));
}

#[test]
fn a_kind_outside_of_namespaces_whose_name_rust_keeps_for_itself() {
    let request = ApiRequest { namespaced: Some(false), ..api("", "v1", "Type") };
    insta::assert_snapshot!(Bed::new(|_| ()).create(&request));
}

#[test]
fn webhooks_and_a_further_version_that_is_stored() {
    let bed = Bed::new(|_| ());
    bed.create(&api("cache", "v1alpha1", "Memcached"));
    let target = Target { group: "cache".into(), version: "v1alpha1".into(), kind: "Memcached".into() };
    let both = WebhookRequest { defaulting: true, validation: true, conversion: false };
    let plan = create_webhook(bed.0.path(), &target, both, false).unwrap();
    plan.carry_out(&|| false).unwrap();
    let first = page(plan.visible());
    let second = bed.create(&ApiRequest { hub: true, ..api("cache", "v1", "Memcached") });
    insta::assert_snapshot!(first + &second);
}

#[test]
fn kinds_of_others() {
    let bed = Bed::new(|_| ());
    let core = bed.create(&ApiRequest { external: true, ..api("apps", "v1", "Deployment") });
    let crd = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.other.org}
spec:
  group: other.org
  names: {kind: Greeting, plural: greetings}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec: {type: object, required: [text], properties: {text: {type: string, maxLength: 80}}}
";
    let typed = bed.create(&ApiRequest { crd: Some(crd.into()), ..api("", "", "") });
    insta::assert_snapshot!(core + &typed);
}

#[test]
fn rust_is_as_rustfmt_has_it_however_long_the_names_are() {
    let bed = Bed::new(|_| ());
    for (at, kind) in ["A", "Memcached", "AVeryLongKindThatMakesEveryLineOfItsCodeTooLong"].iter().enumerate()
    {
        bed.create(&api("one", "v1", kind));
        bed.create(&ApiRequest { image: Some("a:1".into()), ..api("two", "v1", &format!("{kind}{at}")) });
    }
    let files: Vec<_> = init_again(&bed)
        .into_iter()
        .filter(|change| Path::new(change.path()).extension().is_some_and(|e| e == "rs"))
        .collect();
    let paths = files.iter().map(|change| bed.0.path().join(change.path()));
    let check = Command::new("rustfmt").arg("--check").arg("--edition=2024").args(paths).output().unwrap();
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
}
