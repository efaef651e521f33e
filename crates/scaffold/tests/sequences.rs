//! Any sequence of commands leaves a project that is what its PROJECT says: nothing is left to upgrade, a command that
//! is refused changes nothing, and a project whose kinds are all deleted is the one that `init` made.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{collections::BTreeMap, fs, path::Path};

use proptest::prelude::*;
use windlass_scaffold::{
    Error, Plan, Project,
    commands::{
        ApiRequest, InitRequest, Target, WebhookRequest, create_api, create_webhook, delete_api,
        delete_webhook, init, upgrade,
    },
};

/// One command. Kinds, groups and versions are few, so that commands meet.
#[derive(Clone, Debug)]
enum Step {
    Create(ApiRequest),
    Delete(Target),
    Hook(Target, WebhookRequest),
    Unhook(Target, WebhookRequest),
    Upgrade,
}

fn target() -> impl Strategy<Value = Target> {
    let group = prop::sample::select(vec!["cache", "web", ""]);
    // One begins like another, one is a word of Rust's, one has a plural of its own.
    let kind = prop::sample::select(vec!["Site", "SiteMap", "Match", "Policy"]);
    let version = prop::sample::select(vec!["v1", "v1alpha1", "v2"]);
    (group, version, kind).prop_map(|(group, version, kind)| Target {
        group: group.into(),
        version: version.into(),
        kind: kind.into(),
    })
}

fn create() -> impl Strategy<Value = Step> {
    let image = prop::option::weighted(0.3, Just("nginx:1.29".to_owned()));
    let scope = prop::option::weighted(0.2, any::<bool>());
    let flags =
        (prop::bool::weighted(0.85), any::<bool>(), prop::bool::weighted(0.3), prop::bool::weighted(0.1));
    (target(), image, scope, flags).prop_map(
        |(target, image, namespaced, (controller, finalizer, hub, force))| {
            let Target { group, version, kind } = target;
            let request = ApiRequest {
                group,
                version,
                kind,
                namespaced,
                controller,
                image,
                finalizer,
                hub,
                force,
                ..ApiRequest::default()
            };
            Step::Create(request)
        },
    )
}

fn external() -> impl Strategy<Value = Step> {
    let kinds = vec![("apps", "Deployment"), ("", "Pod"), ("cert-manager.io", "Certificate")];
    prop::sample::select(kinds).prop_map(|(group, kind)| {
        let (group, version, kind) = (group.into(), "v1".into(), kind.into());
        Step::Create(ApiRequest {
            group,
            version,
            kind,
            controller: true,
            external: true,
            ..ApiRequest::default()
        })
    })
}

fn hooks() -> impl Strategy<Value = WebhookRequest> {
    (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)).prop_map(
        |(defaulting, validation, conversion)| WebhookRequest { defaulting, validation, conversion },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => create(),
        1 => external(),
        2 => target().prop_map(Step::Delete),
        3 => (target(), hooks()).prop_map(|(target, hooks)| Step::Hook(target, hooks)),
        1 => (target(), hooks()).prop_map(|(target, hooks)| Step::Unhook(target, hooks)),
        1 => Just(Step::Upgrade),
    ]
}

impl Step {
    fn plan(&self, root: &Path) -> Result<Plan, Error> {
        match self {
            Self::Create(request) => create_api(root, request),
            Self::Delete(target) => delete_api(root, target, false),
            Self::Hook(target, hooks) => create_webhook(root, target, *hooks, false),
            Self::Unhook(target, hooks) => delete_webhook(root, target, *hooks, false),
            Self::Upgrade => upgrade(root, false),
        }
    }
}

/// Every file, by its path below the root.
fn files(root: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut next = vec![root.to_owned()];
    while let Some(folder) = next.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                next.push(path);
            } else {
                let name = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

fn carry_out(plan: &Plan) {
    plan.carry_out(&|| false).unwrap();
}

/// Deletes every kind: webhooks before their kind, the version that is stored after the others.
fn delete_everything(root: &Path) {
    for _ in 0..100 {
        let project = Project::read(root).unwrap();
        if project.resources.is_empty() {
            return;
        }
        let targets = project.resources.iter().map(|resource| Target {
            group: resource.group.clone(),
            version: resource.version.clone(),
            kind: resource.kind.clone(),
        });
        let mut plans = targets.flat_map(|target| {
            let all = WebhookRequest::default();
            [delete_api(root, &target, false), delete_webhook(root, &target, all, false)]
        });
        let plan = plans.find_map(Result::ok).expect("one of the kinds must be free to go");
        assert_eq!(plan.kept, [""; 0], "nobody changed anything");
        carry_out(&plan);
    }
    panic!("kinds are left: {:?}", Project::read(root).unwrap().resources);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn after_any_sequence_a_project_is_what_its_file_says(steps in prop::collection::vec(step(), 1..12)) {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("operator");
        let request = InitRequest {
            name: "my-operator".into(), folder: root.clone(), domain: "example.com".into(), ..InitRequest::default()
        };
        carry_out(&init(&request).unwrap());
        let new = files(&root);
        for step in &steps {
            let before = files(&root);
            match step.plan(&root) {
                Ok(plan) => {
                    prop_assert_eq!(files(&root), before, "a plan alone changes nothing");
                    carry_out(&plan);
                }
                Err(error) => {
                    prop_assert!(!error.to_string().contains('\n'), "{}", error);
                    prop_assert_eq!(files(&root), before, "{:?}: {}", step, error);
                }
            }
            let left = upgrade(&root, false).unwrap();
            prop_assert!(left.is_empty() && left.conflicts.is_empty(), "after {:?}: {:#?}", step, left);
        }
        delete_everything(&root);
        prop_assert_eq!(files(&root), new);
    }
}
