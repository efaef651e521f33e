//! The smallest operator: a Greeting is kept in a ConfigMap, and its status says how long the text is.
//!
//! Try it: `cargo run -p windlass --example greeting -- install`, then without arguments, then apply
//!
//! ```yaml
//! apiVersion: example.com/v1
//! kind: Greeting
//! metadata: { name: hello }
//! spec: { text: "Hello, world" }
//! ```

use std::{process::ExitCode, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    Action, Children, Context, Controller, Event, Operator, Reconciler,
    conditions::{self, READY},
    jiff::Timestamp,
    k8s_openapi::{
        api::core::v1::ConfigMap,
        apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
    },
    kube::{CustomResource, ResourceExt},
};

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Greeting", namespaced, status = "GreetingStatus")]
struct GreetingSpec {
    text: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct GreetingStatus {
    length: usize,
    #[serde(default)]
    conditions: Vec<Condition>,
}

struct Greetings;

impl Reconciler for Greetings {
    type Resource = Greeting;
    type Error = windlass::Error;

    async fn reconcile(&self, greeting: Arc<Greeting>, ctx: &Context<Greeting>) -> windlass::Result<Action> {
        let applied = ctx.apply(children(&greeting)).await?;
        if applied.written() > 0 {
            ctx.event(Event::normal("Written", "wrote the greeting down"));
        }
        ctx.update_status(observed(&greeting, ctx.now())).await?;
        Ok(Action::await_change())
    }
}

/// Pure: what should exist for a greeting.
fn children(greeting: &Greeting) -> Children {
    Children::new().with(ConfigMap {
        metadata: ObjectMeta { name: Some(greeting.name_any()), ..ObjectMeta::default() },
        data: Some([("text".to_owned(), greeting.spec.text.clone())].into()),
        ..ConfigMap::default()
    })
}

/// Pure: what is to be said about a greeting.
fn observed(greeting: &Greeting, now: Timestamp) -> GreetingStatus {
    let mut status = greeting.status.clone().unwrap_or_default();
    status.length = greeting.spec.text.len();
    let ready = conditions::is_true(READY, "Written", "the greeting is in its ConfigMap");
    conditions::set(&mut status.conditions, ready, greeting, now);
    status
}

fn main() -> ExitCode {
    Operator::new("greeting-operator")
        .crd::<Greeting>()
        .controller(Controller::new(Greetings).owns::<ConfigMap>())
        .main()
}
