//! An operator that is killed at every write: what survives it, and what does not. Below the line it is the guide's code,
//! word for word.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, Operator, Reconciler,
    k8s_openapi::api::core::v1::{ConfigMap, Secret},
    kube::ResourceExt,
};
use windlass_cluster::testing::{CrashTest, User};

use crate::greeting::operator;

const GUIDE: &str = include_str!("../../../windlass/src/docs/guide.md");
const LINE: &str = "// ---- from here on it is the guide's code ----\n";
const HELLO: &str = "{apiVersion: example.com/v1, kind: Greeting, metadata: {name: hello}, spec: {text: Hi}}";
const MAP: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}";

#[test]
fn the_guide_shows_the_crash_test_that_runs_here() {
    let (_, code) = include_str!("crashes.rs").rsplit_once(LINE).unwrap();
    assert!(GUIDE.contains(code.trim()), "the guide's chapter about tests must show this file's code");
}

/// Makes a Secret of any name, and only then notes that it has.
struct Forgetful;

impl Reconciler for Forgetful {
    type Resource = ConfigMap;
    type Error = windlass::Error;

    async fn reconcile(&self, map: Arc<ConfigMap>, ctx: &Context<ConfigMap>) -> windlass::Result<Action> {
        if !map.annotations().contains_key("done") && map.name_any() == "one" {
            let mut secret = Secret::default();
            secret.metadata.generate_name = Some("one-".into());
            ctx.create_child(secret).await?;
            ctx.modify(&*map, |map| drop(map.annotations_mut().insert("done".into(), "yes".into()))).await?;
        }
        Ok(Action::await_change())
    }
}

fn forgetful() -> Operator {
    let controller = Controller::new(Forgetful).owns::<Secret>().namespace("default");
    Operator::new("forgetful-operator").controller(controller)
}

async fn scenario(user: User) {
    user.apply_yaml(MAP).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "the operator died at write 1, Unanswered, and what stands at wait 1 of the scenario differs"
)]
async fn what_a_crash_leaves_behind_is_found() {
    crash_at_every_write(forgetful, scenario).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the operator has written nothing")]
async fn a_scenario_without_work_is_no_proof() {
    crash_at_every_write(forgetful, |_| async {}).await;
}

#[tokio::test]
#[should_panic(expected = "a crash test needs a paused clock")]
async fn a_crash_test_needs_a_paused_clock() {
    crash_at_every_write(forgetful, scenario).await;
}

#[tokio::test(start_paused = true)]
async fn it_is_told_at_how_many_writes_the_operator_died() {
    // The Secret with the certificates, the configuration with the authority, and the ConfigMap at least.
    let writes = CrashTest::new(operator).run(|user| async move { user.apply_yaml(HELLO).await }).await;
    assert!(writes >= 3, "{writes}");
}

// ---- from here on it is the guide's code ----
use windlass_cluster::testing::crash_at_every_write;

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_leaves_nothing_behind() {
    crash_at_every_write(operator, |user| async move {
        user.apply_yaml(HELLO).await;
        user.settled().await;
        user.delete_yaml(HELLO).await;
    })
    .await;
}
