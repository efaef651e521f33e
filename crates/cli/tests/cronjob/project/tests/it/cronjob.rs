//! The behaviours that kubebuilder's tutorial asks of its CronJob, on the embedded cluster.

use std::time::Duration;

use cronjob_operator::operator;
use windlass::{
    k8s_openapi::api::batch::v1::Job,
    kube::{ResourceExt, api::ListParams},
    serde_json::{Value, json},
};
use windlass_cluster::{Cluster, Timing, testing::Environment};

use cronjob_operator::cronjob::CronJob;

const MINUTE: Duration = Duration::from_mins(1);

/// A CronJob of every minute.
pub(crate) fn cronjob(change: impl FnOnce(&mut Value)) -> CronJob {
    let mut object = json!({
        "apiVersion": "batch.tutorial.kubebuilder.io/v1",
        "kind": "CronJob",
        "metadata": {"name": "hello", "namespace": "default"},
        "spec": {
            "schedule": "*/1 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never",
                "containers": [{"name": "hello", "image": "busybox:1.37", "args": ["date"]}],
            }}}},
        },
    });
    change(&mut object["spec"]);
    windlass::serde_json::from_value(object).unwrap()
}

/// Jobs take this long.
pub(crate) async fn started(run: Duration) -> Environment {
    let timing = Timing { run, ..Timing::default() };
    let cluster = Cluster::builder().heartbeat(None).timing(timing).start().await.unwrap();
    Environment::on(cluster, operator).await
}

async fn jobs(env: &Environment) -> Vec<Job> {
    let mut jobs = env.api::<Job>().list(&ListParams::default()).await.unwrap().items;
    jobs.sort_by_key(ResourceExt::name_any);
    jobs
}

async fn status(env: &Environment) -> cronjob_operator::cronjob::CronJobStatus {
    env.api::<CronJob>().get("hello").await.unwrap().status.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_job_starts_on_the_minute_and_is_active_while_it_runs() {
    let env = started(Duration::from_secs(20)).await;
    env.apply(&cronjob(|_| {})).await;
    env.settled().await;
    assert!(jobs(&env).await.is_empty(), "nothing is due yet");
    env.advance(MINUTE).await;
    let made = jobs(&env).await;
    assert_eq!(made.len(), 1);
    let at = made[0].annotations()["batch.tutorial.kubebuilder.io/scheduled-at"].clone();
    assert!(at.ends_with(":00Z"), "{at}");
    assert_eq!(status(&env).await.last_schedule_time.unwrap().0.to_string(), at);
    env.advance(MINUTE * 59).await;
    assert!(status(&env).await.active.len() <= 1);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_run_of_three_hours_is_made_once_and_the_history_is_short() {
    let env = started(Duration::from_secs(5)).await;
    let mut cron = cronjob(|spec| spec["schedule"] = json!("*/5 * * * *"));
    env.apply(&cron).await;
    env.requests().take_writes();
    env.advance(Duration::from_hours(3)).await;
    let created = env.requests().take_writes().iter().filter(|write| write.path.ends_with("/jobs")).count();
    assert_eq!(created, 36);
    assert_eq!(jobs(&env).await.len(), 3, "successfulJobsHistoryLimit is 3 by default");
    cron.spec.successful_jobs_history_limit = Some(1);
    env.apply(&cron).await;
    env.settled().await;
    assert_eq!(jobs(&env).await.len(), 1);
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn failed_jobs_have_a_history_of_their_own() {
    let env = started(Duration::from_secs(1)).await;
    let failing = json!({"windlass.dev/exit-code": "1"});
    let cron = cronjob(|spec| {
        spec["jobTemplate"]["spec"]["backoffLimit"] = json!(0);
        spec["jobTemplate"]["spec"]["template"]["metadata"] = json!({"annotations": failing});
    });
    env.apply(&cron).await;
    env.advance(MINUTE * 5).await;
    assert_eq!(jobs(&env).await.len(), 1, "failedJobsHistoryLimit is 1 by default");
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_suspended_one_starts_nothing_until_it_goes_on() {
    let env = started(Duration::from_secs(5)).await;
    let mut cron = cronjob(|spec| spec["suspend"] = json!(true));
    env.apply(&cron).await;
    env.advance(MINUTE * 10).await;
    assert!(jobs(&env).await.is_empty());
    cron.spec.suspend = Some(false);
    env.apply(&cron).await;
    env.advance(MINUTE).await;
    assert!(!jobs(&env).await.is_empty());
    env.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_policy_decides_about_runs_that_overlap() {
    for (policy, most) in [("Allow", 10), ("Forbid", 1), ("Replace", 1)] {
        let env = started(Duration::from_hours(1)).await;
        env.apply(&cronjob(|spec| spec["concurrencyPolicy"] = json!(policy))).await;
        env.advance(MINUTE * 2).await;
        let first = jobs(&env).await[0].name_any();
        env.advance(MINUTE * 8).await;
        let left = jobs(&env).await;
        let status = status(&env).await;
        assert_eq!(left.len(), most, "{policy}");
        assert_eq!(status.active.len(), most, "{policy}");
        let replaced = left[0].name_any() != first;
        assert_eq!(replaced, policy == "Replace", "{policy}");
        env.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn runs_that_a_stopped_operator_missed_are_made_up_for_once_unless_too_late() {
    for (deadline, made) in [(None, 1), (Some(30), 0)] {
        let mut env = started(Duration::from_secs(5)).await;
        env.apply(&cronjob(|spec| {
            spec["schedule"] = json!("0 * * * *");
            if let Some(deadline) = deadline {
                spec["startingDeadlineSeconds"] = json!(deadline);
            }
        }))
        .await;
        env.settled().await;
        env.restart_after(Duration::from_mins(150)).await;
        env.settled().await;
        assert_eq!(jobs(&env).await.len(), made, "{deadline:?}");
        env.stop().await;
    }
}
