//! The seven operators on a real cluster, by what `windlass operators deploy` and its siblings do: up, upgraded while
//! everybody writes, back from an image that there is not, out with their objects kept, and up again.
//!
//! A program of its own, like `operators/tests/deployed`: what is deployed works in every namespace. The node needs the
//! images that `cargo xtask kubernetes load-software` and `load-operators` give it.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{apps::v1::Deployment, core::v1::Namespace},
    kube::{
        Api, Client, Config,
        api::{DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams},
    },
};
use windlass_deploy::{Deployer, Error, Options, Release};
use windlass_operators::{entry, manifests};

const HOME: &str = "windlass-system";
const SHOP: &str = "windlass-shipping";
const TIMEOUT: Duration = Duration::from_secs(150);

#[expect(clippy::print_stdout, reason = "it is what a person would read")]
fn deployer(client: &Client, wait: Duration) -> Deployer<'static> {
    let options = Options { wait: Some(wait), ..Options::default() };
    Deployer::new(client.clone(), options, &|line: &str| println!("{line}"))
}

/// The seven as they are shipped, with another Pod template for each version.
fn release(version: &str, image: &str) -> Release {
    let mut objects = manifests::shipped(&[]).manifests(&manifests::placement(HOME, image));
    for object in objects.iter_mut().filter(|object| object["kind"] == "Deployment") {
        object["spec"]["template"]["metadata"]["annotations"] = json!({"windlass.dev/version": version});
    }
    Release::new(objects).unwrap()
}

async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, mut check: impl FnMut() -> F) -> T {
    let search = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, search).await.unwrap_or_else(|_| panic!("never happened: {what}"))
}

fn objects(client: &Client, kind: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), SHOP, &entry(kind).unwrap().resource())
}

fn sample(kind: &str) -> DynamicObject {
    serde_json::from_value(entry(kind).unwrap().sample().unwrap()).unwrap()
}

/// Waits until the samples are ready, and returns their uids.
async fn ready(client: &Client) -> Vec<String> {
    let mut uids = Vec::new();
    for kind in ["memcached", "podmanager"] {
        let name = sample(kind).metadata.name.unwrap();
        let found = eventually(&format!("{kind} is ready"), || async {
            let found = objects(client, kind).get(&name).await.ok()?;
            let conditions = found.data["status"]["conditions"].as_array()?.clone();
            let ready = |one: &Value| one["type"] == "Ready" && one["status"] == "True";
            conditions.iter().any(ready).then_some(found)
        })
        .await;
        uids.push(found.metadata.uid.unwrap());
    }
    uids
}

/// Reads an older version, which takes a conversion, and would create a Database, which takes an admission, again and
/// again. Returns how often, and what went wrong.
async fn visit(client: Client, stop: Arc<AtomicBool>) -> (u64, Vec<String>) {
    let (mut visits, mut wrong) = (0, Vec::new());
    let path = format!("/apis/apps.mycompany.com/v1alpha1/namespaces/{SHOP}/podmanagers/my-pod-manager");
    while !stop.load(Ordering::Relaxed) {
        let request = http::Request::get(&path).body(Vec::new()).unwrap();
        if let Err(error) = client.request::<Value>(request).await {
            wrong.push(format!("conversion: {error}"));
        }
        let dry = PostParams { dry_run: true, ..PostParams::default() };
        let asked = objects(&client, "database").create(&dry, &sample("database")).await;
        // Whoever says no has answered.
        if let Some(error) = asked.err().filter(|error| !error.to_string().contains("denied the request")) {
            wrong.push(format!("admission: {error}"));
        }
        let change = json!({"metadata": {"annotations": {"example.com/visit": visits.to_string()}}});
        let name = sample("podmanager").metadata.name.unwrap();
        let managers = objects(&client, "podmanager");
        let changed = managers.patch(&name, &PatchParams::default(), &Patch::Merge(change)).await;
        if let Err(error) = changed {
            wrong.push(format!("change: {error}"));
        }
        visits += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (visits, wrong)
}

async fn story(client: Client) {
    deployer(&client, TIMEOUT).deploy(&release("1", manifests::IMAGE)).await.unwrap();
    // One of an earlier run may still be going.
    let namespaces = Api::<Namespace>::all(client.clone());
    eventually("the shop of an earlier run is gone", || async {
        namespaces.get_opt(SHOP).await.unwrap().is_none().then_some(())
    })
    .await;
    let metadata = ObjectMeta { name: Some(SHOP.into()), ..ObjectMeta::default() };
    let shop = Namespace { metadata, ..Namespace::default() };
    namespaces.create(&PostParams::default(), &shop).await.unwrap();
    for kind in ["memcached", "podmanager"] {
        objects(&client, kind).create(&PostParams::default(), &sample(kind)).await.unwrap();
    }
    let uids = ready(&client).await;

    // An upgrade while everybody writes: no request fails.
    let stop = Arc::new(AtomicBool::new(false));
    let visitor = tokio::spawn(visit(client.clone(), stop.clone()));
    deployer(&client, TIMEOUT).deploy(&release("2", manifests::IMAGE)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(15)).await;
    stop.store(true, Ordering::Relaxed);
    let (visits, wrong) = visitor.await.unwrap();
    assert!(
        wrong.is_empty(),
        "{} of {visits} visits failed: {:#?}",
        wrong.len(),
        &wrong[..wrong.len().min(5)]
    );
    assert!(visits > 50, "only {visits} visits");

    // An image that there is not: the kubelet's words, and the replicas that there were still serve.
    let missing = release("3", "windlass-operators:missing");
    let error = deployer(&client, Duration::from_mins(2)).deploy(&missing).await.unwrap_err();
    let Error::NotReady { why, .. } = &error else { panic!("{error:?}") };
    assert!(why.contains("ImagePull") && why.contains("windlass-operators:missing"), "{why}");
    let deployments = Api::<Deployment>::namespaced(client.clone(), HOME);
    let status = deployments.get("windlass").await.unwrap().status.unwrap();
    assert!(status.available_replicas >= Some(2), "{status:?}");
    deployer(&client, TIMEOUT).undo("windlass", HOME, None).await.unwrap();
    let template = deployments.get("windlass").await.unwrap().spec.template;
    let annotations = template.metadata.unwrap().annotations.unwrap();
    assert_eq!(annotations["windlass.dev/version"], "2");

    // Out, and everything of the users is still there when they are back.
    deployer(&client, TIMEOUT).undeploy(&release("2", manifests::IMAGE), None, false).await.unwrap();
    eventually("the operators' namespace is gone", || async {
        namespaces.get_opt(HOME).await.unwrap().is_none().then_some(())
    })
    .await;
    deployer(&client, TIMEOUT).deploy(&release("4", manifests::IMAGE)).await.unwrap();
    assert_eq!(ready(&client).await, uids);

    // Objects with finalizers, ended while the operator runs.
    let agreed = |loss: &windlass_deploy::Loss| loss.total == 2;
    deployer(&client, TIMEOUT).undeploy(&release("4", manifests::IMAGE), Some(&agreed), false).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real cluster"]
async fn the_seven_are_deployed_upgraded_undone_taken_out_and_back_and_nothing_is_lost() {
    let config = Config::infer().await.expect("KUBECONFIG must name a cluster");
    let client = Client::try_from(config).unwrap();
    let told = tokio::spawn(story(client.clone())).await;
    // The kinds stay: others may have objects of them.
    let namespaces = Api::<Namespace>::all(client.clone());
    namespaces.delete(SHOP, &DeleteParams::default()).await.unwrap();
    if told.is_err() {
        // The operators are still there to let go of their objects.
        let gone = async {
            while namespaces.get_opt(SHOP).await.is_ok_and(|found| found.is_some()) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        let _ = tokio::time::timeout(TIMEOUT, gone).await;
        let _ = deployer(&client, TIMEOUT).undeploy(&release("1", manifests::IMAGE), None, false).await;
    }
    told.unwrap();
}
