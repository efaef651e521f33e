//! The seven operators, by the same road: packed, pushed to a registry that asks for a password, pulled by containerd with
//! an imagePullSecret, deployed; every sample becomes ready; taken out and deployed again, every object is still there.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

use super::registry::{PASSWORD, Registry, USER};
use super::{Road, empty, step, text};
use crate::kubernetes::images;
use crate::kubernetes::layout::Layout;

/// Where they run.
const NAMESPACE: &str = "windlass-system";
const SECRET: &str = "registry";
/// The samples that stand for objects, and how it is told that one is well: of the seven kinds, and a backup.
const SAMPLES: [(&str, &str, &str); 8] = [
    ("apps_v1_podmanager.yaml", "podmanager/my-pod-manager", "condition=Ready"),
    ("webserver_v1_webserver.yaml", "webserver/webserver-sample", "condition=Ready"),
    ("batch_v1alpha1_imoocpod.yaml", "imoocpod/imoocpod-sample", "condition=Ready"),
    ("cache_v1alpha1_memcached.yaml", "memcached/memcached-sample", "condition=Ready"),
    ("test_v1alpha1_helloworld.yaml", "helloworld/helloworld-sample", "condition=Ready"),
    ("apps_v1alpha1_webapp.yaml", "webapp/my-webapp", "condition=Ready"),
    ("database_v1_database.yaml", "database/my-db", "condition=Ready"),
    ("database_v1_databasebackup.yaml", "databasebackup/my-db-now", "jsonpath={.status.phase}=Succeeded"),
];

pub(super) fn ship(layout: &Layout, road: &Road) -> Result<()> {
    let registry = Registry::closed(layout, road.inner)?;
    let outcome = travel(road, &registry.address);
    // Best effort: whatever was reached is removed, and the failure itself is what is reported.
    let count = objects(road).map_or(0, |objects| objects.len());
    let _ = road.windlass(&format!("operators undeploy --delete-objects={count}"));
    let _ = road.windlass("operators uninstall");
    let _ = road.kubectl.output(&["delete", "namespace", NAMESPACE, "--wait=false"]);
    outcome
}

fn travel(road: &Road, registry: &str) -> Result<()> {
    let repository = format!("{registry}/team/windlass-operators");
    let (program, layout) = (images::operators_program()?, text(&empty("ship-operators")?));
    road.windlass(&format!(
        "image build --package windlass-operators --binary linux/amd64={} --image {repository}:v1 --output oci:{layout}",
        program.display()
    ))?;
    let push = format!("image push {repository}:v1 --from oci:{layout} --insecure");
    let denied = road.fails_inside(&push)?;
    ensure!(denied.contains("denies access to") && denied.contains("hint: log in"), "{denied}");
    for tag in ["v1", "v2"] {
        let push = format!(
            "image push {repository}:{tag} --from oci:{layout} --insecure --username {USER} --password-stdin"
        );
        road.windlass_told(&push, PASSWORD)?;
    }
    step("the seven: their image is pushed to a registry that asks for a password, and not without it");

    let told = road.fails(&format!("operators deploy --image {repository}:v1"))?;
    ensure!(told.contains("401 Unauthorized") && told.contains("hint: "), "{told}");
    let server = format!("--docker-server={registry}");
    let (user, password) = (format!("--docker-username={USER}"), format!("--docker-password={PASSWORD}"));
    let secret = ["--namespace", NAMESPACE, "create", "secret", "docker-registry", SECRET];
    road.kubectl.output(&[&secret[..], &[&server, &user, &password]].concat())?;
    let deploy = |tag: &str| {
        road.windlass(&format!("operators deploy --image {repository}:{tag} --image-pull-secrets {SECRET}"))
    };
    let said = deploy("v1")?;
    ensure!(said.contains("the API server reaches the webhooks"), "{said}");
    step("containerd is denied it and says so; with an imagePullSecret a second run finishes the first");

    for (file, ..) in SAMPLES {
        road.kubectl.output(&[
            "apply",
            "--filename",
            &text(&road.folder.join("config/samples").join(file)),
        ])?;
    }
    ready(road)?;
    let before = objects(road)?;
    ensure!(before.len() == SAMPLES.len(), "there are {before:?}");
    step("every sample becomes ready");

    let changes = road.while_changing("database/my-db", || deploy("v2"))?;
    ready(road)?;
    step(&format!("they are upgraded during {changes} changes, none of which failed"));

    let kept = road.windlass("operators undeploy")?;
    ensure!(kept.contains("kept CustomResourceDefinition databases.database.example.com"), "{kept}");
    // The namespace stays, because somebody else's Secret is in it.
    road.kubectl.output(&["--namespace", NAMESPACE, "get", "secret", SECRET])?;
    let left = road.kubectl.output(&["--namespace", NAMESPACE, "get", "deployments", "--output=name"])?;
    ensure!(left.is_empty(), "there is still {left}");
    ensure!(objects(road)? == before, "objects are others: {:?}", objects(road)?);
    let refused = road.fails("operators uninstall")?;
    ensure!(refused.contains("--delete-objects="), "{refused}");
    step("taken out, they leave every object, and nothing deletes them unasked");

    deploy("v2")?;
    road.kubectl.output(&[
        "patch",
        "memcached/memcached-sample",
        "--type=merge",
        "--patch={\"spec\":{\"size\":2}}",
    ])?;
    ready(road)?;
    ensure!(objects(road)? == before, "objects are others: {:?}", objects(road)?);
    step("deployed again, they go on with the same objects");
    Ok(())
}

fn ready(road: &Road) -> Result<()> {
    for (_, object, well) in SAMPLES {
        let well = format!("--for={well}");
        road.kubectl.output(&["wait", &well, object, "--timeout=300s"])?;
    }
    Ok(())
}

/// The uids of all objects of the seven, by their names.
fn objects(road: &Road) -> Result<BTreeMap<String, String>> {
    const PRINT: &str =
        "--output=jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{\"\\n\"}{end}";
    let listed = road.kubectl.output(&["get", "windlass", "--all-namespaces", PRINT])?;
    let pair = |line: &str| line.split_once(' ').map(|(name, uid)| (name.to_owned(), uid.to_owned()));
    listed.lines().map(|line| pair(line).context("an object has no uid")).collect()
}
