//! For any two sets of manifests: the second deployed over the first and undone is the first.

use proptest::prelude::*;
use serde_json::{Value, json};
use windlass_deploy::{Error, Release};

use crate::bed::{Bed, HOME, objects, options, release, release_with};

/// What a set of manifests has beside its Deployment: maps with their data, Services with their ports, roles.
#[derive(Clone, Debug)]
struct Case {
    image: u8,
    maps: Vec<(u8, Vec<(u8, u8)>)>,
    ports: Vec<(u8, u16)>,
    roles: Vec<(u8, bool)>,
    replicas: u8,
}

fn case() -> impl Strategy<Value = Case> {
    let maps = prop::collection::vec((0..4_u8, prop::collection::vec((0..3_u8, 0..3_u8), 0..3)), 0..4);
    let ports = prop::collection::vec((0..3_u8, 1..3_u16), 0..3);
    let roles = prop::collection::vec((0..3_u8, any::<bool>()), 0..3);
    (0..2_u8, maps, ports, roles, 1..3_u8).prop_map(|(image, maps, ports, roles, replicas)| Case {
        image,
        maps,
        ports,
        roles,
        replicas,
    })
}

impl Case {
    fn release(&self) -> Release {
        let mut found = std::collections::BTreeMap::new();
        let mut add = |object: Value| {
            let key = format!("{} {}", object["kind"], object["metadata"]["name"]);
            found.insert(key, object);
        };
        for (name, data) in &self.maps {
            let data: serde_json::Map<String, Value> =
                data.iter().map(|(key, value)| (format!("k{key}"), format!("v{value}").into())).collect();
            add(json!({
                "apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": format!("map{name}"), "namespace": HOME}, "data": data,
            }));
        }
        for (name, port) in &self.ports {
            add(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": format!("service{name}"), "namespace": HOME},
                "spec": {"clusterIP": "None", "selector": {"a": "b"}, "ports": [{"name": format!("p{port}"), "port": port}]},
            }));
        }
        for (name, wide) in &self.roles {
            let verbs = if *wide { json!(["get", "list"]) } else { json!(["get"]) };
            add(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": format!("boxes-role{name}")},
                "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": verbs}],
            }));
        }
        let mut all = objects(&format!("op:{}", self.image));
        all[3]["spec"]["replicas"] = self.replicas.into();
        Release::new(all.into_iter().chain(found.into_values()).collect()).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn undone_is_as_it_was(first in case(), second in case()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (first, second) = (first.release(), second.release());
        runtime.block_on(async {
            let bed = Bed::start().await;
            bed.deploy(&first).await.unwrap();
            let before = bed.state().await;
            bed.deploy(&second).await.unwrap();
            let after = bed.state().await;
            match bed.undo(options()).await {
                Ok(()) => assert_eq!(bed.state().await, before),
                // Twice the same is one revision.
                Err(Error::NothingToUndo { .. }) => assert_eq!(before, after),
                Err(error) => panic!("{error}"),
            }
            if before != after {
                bed.undo(options()).await.unwrap();
                assert_eq!(bed.state().await, after, "undone twice is done");
            }
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_deployment_changes_nothing_and_is_the_same_revision() {
    let bed = Bed::start().await;
    bed.deploy(&release("op:1")).await.unwrap();
    bed.told();
    let before = bed.state().await;
    bed.deploy(&release("op:1")).await.unwrap();
    let told = bed.told();
    assert!(
        told.iter().all(|line| !line.starts_with("created") && !line.starts_with("changed")),
        "{told:#?}"
    );
    assert_eq!(told.last().unwrap(), "deployed box-operator as revision 1");
    assert_eq!(bed.state().await, before);
    let error = bed.undo(options()).await.unwrap_err();
    assert!(matches!(error, Error::NothingToUndo { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_revision_can_be_named_and_one_that_is_not_kept_is_an_error_with_those_that_are() {
    let bed = Bed::start().await;
    for image in ["op:1", "op:2", "op:3"] {
        bed.deploy(&release(image)).await.unwrap();
    }
    let undo = |revision: u64| {
        bed.with(options(), move |deployer| async move {
            deployer.undo("box-operator", HOME, Some(revision)).await
        })
    };
    undo(1).await.unwrap();
    let deployment = bed.get("apps", "Deployment", Some(HOME), "box-operator").await.unwrap();
    assert_eq!(deployment["spec"]["template"]["spec"]["containers"][0]["image"], "op:1");
    let error = undo(9).await.unwrap_err();
    assert_eq!(error.to_string(), "failed to find revision 9 of box-operator; there are 1, 2, 3, 4");
}

#[tokio::test(start_paused = true)]
async fn ten_old_revisions_are_kept() {
    let bed = Bed::start().await;
    for number in 1..=14 {
        bed.deploy(&release(&format!("op:{number}"))).await.unwrap();
    }
    let secrets = bed.api("", "v1", "Secret", Some(HOME));
    let list = secrets.list(&windlass::kube::api::ListParams::default()).await.unwrap().items;
    let names: Vec<String> = list.into_iter().filter_map(|secret| secret.metadata.name).collect();
    let records: Vec<&String> = names.iter().filter(|name| name.starts_with("windlass-release-")).collect();
    assert_eq!(records.len(), 10, "{names:?}");
    assert!(names.contains(&"windlass-release-box-operator-14".to_owned()), "{names:?}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_shows_every_difference_and_makes_none() {
    let bed = Bed::start().await;
    let preview = |release: Release| {
        bed.with(options(), move |deployer| async move { deployer.preview(&release, false).await })
    };
    let before = bed.state().await;
    preview(release("op:1")).await.unwrap();
    let told = bed.told();
    assert!(told.contains(&"would create Deployment boxes/box-operator".to_owned()), "{told:#?}");
    assert_eq!(bed.state().await, before);
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": HOME}, "data": {"k": "1"}});
    bed.deploy(&release_with("op:1", [map])).await.unwrap();
    bed.told();
    let before = bed.state().await;
    preview(release("op:2")).await.unwrap();
    let told = bed.told().join("\n");
    assert!(told.contains("would change Deployment boxes/box-operator"), "{told}");
    assert!(told.contains("-      - image: op:1") && told.contains("+      - image: op:2"), "{told}");
    assert!(told.contains("would delete ConfigMap boxes/m, which is no longer part of it"), "{told}");
    assert!(told.contains("unchanged: 3"), "{told}");
    assert_eq!(bed.state().await, before);
}
