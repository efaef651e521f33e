//! The operator of the guide: a Greeting is kept in a ConfigMap; one without words is refused.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Children, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::ConfigMap,
    kube::{CustomResource, ResourceExt},
    webhook::{Defaulter, Request, Validator, Verdict},
};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced)]
#[kube(crates(kube_core = "windlass::kube::core", k8s_openapi = "windlass::k8s_openapi"))]
pub(crate) struct GreetingSpec {
    pub(crate) text: String,
    pub(crate) to: Option<String>,
}

pub(crate) struct Greetings;

impl Reconciler for Greetings {
    type Resource = Greeting;
    type Error = windlass::Error;

    async fn reconcile(&self, greeting: Arc<Greeting>, ctx: &Context<Greeting>) -> windlass::Result<Action> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(greeting.name_any());
        map.data = Some([("text".to_owned(), greeting.spec.text.clone())].into());
        ctx.apply(Children::new().with(map)).await?;
        Ok(Action::await_change())
    }
}

/// Refuses a greeting without words, and greets the world unless told otherwise.
pub(crate) struct Polite;

impl Validator for Polite {
    type Resource = Greeting;

    async fn validate_create(&self, greeting: &Greeting, _: &Request) -> Verdict {
        let mut verdict = Verdict::allow();
        if greeting.spec.text.is_empty() {
            verdict.invalid("spec.text", "", "must say something");
        }
        verdict
    }
}

impl Defaulter for Polite {
    type Resource = Greeting;

    async fn default(&self, greeting: &mut Greeting, _: &Request) -> Verdict {
        greeting.spec.to.get_or_insert_with(|| "world".to_owned());
        Verdict::allow()
    }
}

pub(crate) fn operator() -> Operator {
    Operator::new("greeting-operator")
        .crd::<Greeting>()
        .controller(Controller::new(Greetings).owns::<ConfigMap>())
        .validates(Polite)
        .defaults(Polite)
}
