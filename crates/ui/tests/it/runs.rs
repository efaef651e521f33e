//! The runs of an operator are on the page while somebody looks, with what they wrote.

use std::sync::Arc;

use tracing_subscriber::{layer::SubscriberExt, util::SubscriberInitExt};
use windlass::{
    Action, AnyError, Children, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount},
    kube::{Api, api::PostParams},
    serde_json::{self, Value, from_value, json},
};
use windlass_ui::{Operators, Options};

use crate::World;

/// Makes an account and a Secret for every ConfigMap named `source…`, and fails for those that say so.
struct Accounts;

impl Reconciler for Accounts {
    type Resource = ConfigMap;
    type Error = AnyError;

    async fn reconcile(&self, source: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> Result<Action, AnyError> {
        let name = source.metadata.name.clone().unwrap_or_default();
        if !name.starts_with("source") {
            return Ok(Action::await_change());
        }
        tracing::info!(name, "making an account");
        if name.ends_with("bad") {
            return Err("told to fail".into());
        }
        let account: ServiceAccount = from_value(json!({"metadata": {"name": format!("{name}-account")}}))?;
        let secret: Secret = from_value(
            json!({"metadata": {"name": format!("{name}-secret")}, "stringData": {"a": "hidden-value"}}),
        )?;
        ctx.apply(Children::new().with(account).with(secret)).await?;
        Ok(Action::await_change())
    }
}

fn runs(text: &str) -> Vec<Value> {
    let updates =
        text.lines().filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
    updates.flat_map(|update| update["runs"].as_array().cloned().unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_run_tells_what_woke_it_what_it_wrote_and_how_it_ended() {
    let _ = tracing_subscriber::registry().with(windlass::runs::layer()).try_init();
    let operators = Operators::default();
    let world = World::with(Options { operators: operators.clone(), ..Options::default() }).await;
    let controller = Controller::new(Accounts).owns::<ServiceAccount>().owns::<Secret>();
    let operator = Operator::new("accounts").controller(controller);
    operators.add(operator.handle());
    let ready = operator.ready();
    tokio::spawn(operator.run(world.cluster.client(), std::future::pending()));
    ready.await;
    let mut events = world.browser.events().await;
    events.whole().await;
    // The page asks the operator at once; from then on runs are recorded.
    events.until("the first answer of the operator", |text| text.contains("event: runs")).await;
    let api: Api<ConfigMap> = Api::namespaced(world.cluster.client(), "default");
    let mut found = None;
    // The first may have run before anybody looked.
    for round in 0.. {
        let name = format!("source-{round}");
        api.create(&PostParams::default(), &from_value(json!({"metadata": {"name": name}})).unwrap())
            .await
            .unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let listen = events.until("a run", |text| {
            runs(text).iter().any(|run| run["name"] == name.as_str() && run["writes"] == 2)
        });
        if tokio::time::timeout(std::time::Duration::from_secs(5), listen).await.is_ok() {
            found =
                runs(&events.text).into_iter().find(|run| run["name"] == name.as_str() && run["writes"] == 2);
            break;
        }
        assert!(round < 10, "no run is recorded");
    }
    let run = found.unwrap();
    assert_eq!((&run["controller"], &run["outcome"]), (&json!("configmap"), &json!("success")), "{run}");
    let page = world.browser.get(&format!("/run?id={}", run["id"])).await.body;
    for shown in ["ConfigMap default/source", "making an account", "+  name: source", "/serviceaccounts/"] {
        assert!(page.contains(shown), "{shown} is not in {page}");
    }
    assert!(!page.contains("hidden-value"), "what goes into a Secret is nobody's: {page}");

    api.create(&PostParams::default(), &from_value(json!({"metadata": {"name": "source-bad"}})).unwrap())
        .await
        .unwrap();
    events.until("a failure", |text| runs(text).iter().any(|run| run["outcome"] == "error")).await;
    events
        .until("the queue with its backoff", |text| {
            text.contains("\"failures\":1") || text.contains("\"failures\":2")
        })
        .await;
    let id = runs(&events.text).iter().find(|run| run["outcome"] == "error").unwrap()["id"].clone();
    let page = world.browser.get(&format!("/run?id={id}")).await.body;
    assert!(page.contains("told to fail") && page.contains("Next try in"), "{page}");
}
