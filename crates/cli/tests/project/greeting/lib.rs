//! A greeting is kept in a ConfigMap, unless it is rude.

use std::{sync::Arc, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Children, Context, Controller, Operator, Reconciler, conditions,
    k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::Condition},
    kube::{CustomResource, ResourceExt},
    webhook::{Request, Validator, Verdict},
};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
#[kube(crates(
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
pub struct GreetingSpec {
    text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct GreetingStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[inline(never)]
fn polished(text: &str) -> String {
    format!("{text}!")
}

struct Greetings;

impl Reconciler for Greetings {
    type Resource = Greeting;
    type Error = windlass::Error;

    async fn reconcile(&self, greeting: Arc<Greeting>, ctx: &Context<Greeting>) -> windlass::Result<Action> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(greeting.name_any());
        map.data = Some([("text".to_owned(), polished(&greeting.spec.text))].into());
        ctx.apply(Children::new().with(map)).await?;
        let mut conditions = greeting.status.clone().unwrap_or_default().conditions;
        let ready = conditions::is_true(conditions::READY, "Greeted", "it was said");
        conditions::set(&mut conditions, ready, &*greeting, ctx.now());
        ctx.update_status(GreetingStatus { conditions }).await?;
        Ok(Action::await_change())
    }
}

struct Polite;

impl Validator for Polite {
    type Resource = Greeting;

    async fn validate_create(&self, greeting: &Greeting, _: &Request) -> Verdict {
        if greeting.spec.text.is_empty() { Verdict::deny("say something") } else { Verdict::allow() }
    }
}

pub fn operator() -> Operator {
    // A breakpoint lasts longer than this.
    let greetings = Controller::new(Greetings).owns::<ConfigMap>().timeout(Duration::from_secs(2));
    Operator::new("greeting").crd::<Greeting>().controller(greetings).validates(Polite)
}
