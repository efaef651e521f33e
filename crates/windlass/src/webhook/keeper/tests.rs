//! Certificates over months of a paused clock, against the embedded API server.

use std::{sync::Mutex, time::Duration};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingWebhookConfiguration;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_apiserver::{ApiServer, auth::Identity, environment, registry::Registry, store::Store};

use super::*;
use crate::{
    clock::TokioClock,
    webhook::{Request, Validator, Verdict, Webhook},
};

struct Maps;

impl Validator for Maps {
    type Resource = k8s_openapi::api::core::v1::ConfigMap;

    async fn validate_create(&self, _: &Self::Resource, _: &Request) -> Verdict {
        Verdict::allow()
    }
}

struct World {
    client: Client,
    clock: TokioClock,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl World {
    fn new() -> Self {
        let start = Timestamp::from_second(1_800_000_000).unwrap();
        let environment = environment::Environment::new(environment::TokioClock::starting_at(start), 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        let server = ApiServer::new(Arc::new(registry)).as_user(Identity::admin());
        let client = Client::new(server, "default");
        Self { client, clock: TokioClock::starting_at(start), tasks: Mutex::default() }
    }

    fn hooks() -> Webhooks {
        Webhooks { admission: vec![Webhook::validating(Maps)], conversions: Vec::new() }
    }

    fn keeper(&self, reach: &Reach) -> Keeper {
        Keeper {
            operator: "op".into(),
            secret: "certs".into(),
            namespace: "default".into(),
            client: self.client.clone(),
            clock: Arc::new(self.clock),
            metrics: Metrics::default(),
            handle: crate::Handle::default(),
            in_process: false,
            hooks: Self::hooks(),
            reach: reach.clone(),
            certificate: Certificate::default(),
            failure: watch::Sender::new(Some("not there".to_owned())),
        }
    }

    /// Starts one replica's keeper.
    fn start(&self, reach: &Reach) -> (Certificate, watch::Receiver<Option<String>>) {
        let keeper = self.keeper(reach);
        let seen = (keeper.certificate.clone(), keeper.failure.subscribe());
        self.tasks.lock().unwrap().push(tokio::spawn(keeper.run()));
        seen
    }

    fn stop(&self) {
        self.tasks.lock().unwrap().drain(..).for_each(|task| task.abort());
    }

    fn configurations(&self) -> Api<ValidatingWebhookConfiguration> {
        Api::all(self.client.clone())
    }

    async fn trusted(&self, name: &str) -> Option<String> {
        let live = self.configurations().get_opt(name).await.unwrap()?;
        let bundle = live.webhooks?.first()?.client_config.ca_bundle.clone()?;
        String::from_utf8(bundle.0).ok()
    }

    async fn secret(&self) -> Bundle {
        let secrets = Api::<Secret>::namespaced(self.client.clone(), "default");
        Bundle::read(&secrets.get("certs").await.unwrap().data.unwrap()).unwrap()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop();
    }
}

fn service() -> Reach {
    Reach::Service { namespace: "default".into(), name: "op-webhook".into() }
}

async fn wait(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn replicas_that_start_together_share_one_certificate() {
    let world = World::new();
    let configuration = World::hooks().validating("op", &service(), None).unwrap();
    world.configurations().create(&PostParams::default(), &configuration).await.unwrap();
    let replicas = [world.start(&service()), world.start(&service()), world.start(&service())];
    wait(Duration::from_secs(10)).await;
    let served: Vec<String> = replicas
        .iter()
        .map(|(certificate, failure)| {
            assert_eq!(*failure.borrow(), None, "every replica is ready");
            format!("{:?}", certificate.served().unwrap().cert)
        })
        .collect();
    assert!(served.iter().all(|one| *one == served[0]));
    assert_eq!(world.trusted("op").await, Some(world.secret().await.trusted()));
}

#[tokio::test(start_paused = true)]
async fn a_drifted_bundle_is_put_back_and_a_lost_secret_made_again() {
    let world = World::new();
    let configuration = World::hooks().validating("op", &service(), None).unwrap();
    world.configurations().create(&PostParams::default(), &configuration).await.unwrap();
    let _replica = world.start(&service());
    wait(Duration::from_secs(10)).await;
    let live = world.configurations().get("op").await.unwrap();
    let mut webhooks: Value = serde_json::to_value(&live.webhooks).unwrap();
    webhooks[0]["clientConfig"]["caBundle"] = "Cg==".into();
    let patch = Patch::Merge(json!({ "webhooks": webhooks }));
    world.configurations().patch("op", &PatchParams::default(), &patch).await.unwrap();
    wait(Duration::from_secs(1)).await;
    let before = world.secret().await;
    assert_eq!(world.trusted("op").await, Some(before.trusted()));

    let secrets = Api::<Secret>::namespaced(world.client.clone(), "default");
    secrets.delete("certs", &kube::api::DeleteParams::default()).await.unwrap();
    wait(Duration::from_secs(10)).await;
    let after = world.secret().await;
    assert_ne!(after.trusted(), before.trusted());
    assert_eq!(world.trusted("op").await, Some(after.trusted()));
}

#[tokio::test(start_paused = true)]
async fn certificates_are_rotated_long_before_they_end() {
    let world = World::new();
    let configuration = World::hooks().validating("op", &service(), None).unwrap();
    world.configurations().create(&PostParams::default(), &configuration).await.unwrap();
    let keeper = world.keeper(&service());
    keeper.step().await.unwrap();
    let (first, before) = (world.secret().await, keeper.certificate.served().unwrap());
    tokio::time::advance(Duration::from_hours(24 * 59)).await;
    keeper.step().await.unwrap();
    assert_eq!(world.secret().await, first);
    tokio::time::advance(Duration::from_hours(24 * 2)).await;
    keeper.step().await.unwrap();
    let second = world.secret().await;
    assert_ne!(second.certificate, first.certificate, "a serving certificate lives 90 days");
    assert_ne!(keeper.certificate.served().unwrap().cert, before.cert, "and the server has the new one");
    assert_eq!(second.trusted(), first.trusted(), "under the same authority");

    for days in [60, 60, 60] {
        tokio::time::advance(Duration::from_hours(24 * days)).await;
        keeper.step().await.unwrap();
    }
    assert_eq!(world.secret().await.trusted(), first.trusted(), "an authority lives a year");
    tokio::time::advance(Duration::from_hours(24 * 4)).await;
    let soon = keeper.step().await.unwrap();
    let both = world.secret().await;
    assert!(both.trusted().contains(&first.trusted()) && both.trusted() != first.trusted());
    assert_eq!(world.trusted("op").await, Some(both.trusted()), "the API server trusts the next authority");
    tokio::time::advance(soon * 2).await;
    keeper.step().await.unwrap();
    assert_ne!(world.secret().await.certificate, both.certificate, "before anything it signed is served");
    assert_eq!(world.secret().await.trusted(), both.trusted());
}

#[tokio::test(start_paused = true)]
async fn outside_the_cluster_the_configuration_is_made_and_removed_again() {
    let world = World::new();
    let reach = Reach::Url("https://127.0.0.1:9443".into());
    let _replica = world.start(&reach);
    wait(Duration::from_secs(10)).await;
    let live = world.configurations().get("op-local").await.unwrap();
    let client = live.webhooks.unwrap().remove(0).client_config;
    assert_eq!(client.url.as_deref(), Some("https://127.0.0.1:9443/validate--v1-configmap"));
    assert_eq!(world.trusted("op-local").await, Some(world.secret().await.trusted()));
    world.stop();
    let hooks = World::hooks();
    Injector { client: &world.client, operator: "op", hooks: &hooks, reach: &reach }.remove().await;
    assert!(world.configurations().get_opt("op-local").await.unwrap().is_none());
}
