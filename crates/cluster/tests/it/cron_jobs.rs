//! CronJobs, on a clock that runs as fast as it can.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::{
    jiff::Timestamp,
    k8s_openapi::api::batch::v1::{CronJob, Job},
    kube::{Client, api::ListParams},
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, events, merge, wait};

fn cron(schedule: &str, spec: Value, annotations: Value) -> CronJob {
    let mut cron = json!({
        "apiVersion": "batch/v1", "kind": "CronJob",
        "metadata": {"name": "tick"},
        "spec": {
            "schedule": schedule,
            "jobTemplate": {"spec": {"template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "busybox"}]},
            }}},
        },
    });
    for (key, value) in spec.as_object().unwrap() {
        cron["spec"][key] = value.clone();
    }
    decode(cron)
}

async fn started(clock: &str) -> (Cluster, Client) {
    let start: Timestamp = clock.parse().unwrap();
    // Heartbeats would make a paused clock walk instead of jump.
    let cluster = Cluster::builder().start_time(start).heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    (cluster, client)
}

async fn jobs(client: &Client) -> Vec<String> {
    let jobs = api::<Job>(client).list(&ListParams::default()).await.unwrap().items;
    let mut names: Vec<String> = jobs.into_iter().filter_map(|job| job.metadata.name).collect();
    names.sort();
    names
}

fn active(count: usize) -> impl Fn(Option<&CronJob>) -> bool {
    move |cron| {
        cron.and_then(|cron| cron.status.as_ref()?.active.as_ref().map(Vec::len)).unwrap_or(0) == count
    }
}

fn endless() -> Value {
    json!({"windlass.dev/simulate": "run"})
}

#[tokio::test(start_paused = true)]
async fn jobs_start_on_time_and_only_the_last_ones_are_kept() {
    let (_cluster, client) = started("2026-01-01T10:02:00Z").await;
    create(&client, &cron("*/5 * * * *", json!({"successfulJobsHistoryLimit": 2}), json!({}))).await;
    tokio::time::sleep(Duration::from_secs(23 * 60 + 30)).await;
    // 10:20 and 10:25 remain of 10:05, 10:10, 10:15, 10:20 and 10:25.
    let minute = |clock: &str| clock.parse::<Timestamp>().unwrap().as_second() / 60;
    let expected =
        ["2026-01-01T10:20:00Z", "2026-01-01T10:25:00Z"].map(|clock| format!("tick-{}", minute(clock)));
    let done = wait(api::<CronJob>(&client), "tick", "idle", active(0)).await.unwrap();
    let status = done.status.unwrap();
    assert_eq!(status.last_schedule_time.unwrap().0, "2026-01-01T10:25:00Z".parse().unwrap());
    assert!(status.last_successful_time.is_some());
    assert_eq!(jobs(&client).await, expected);
    let job = api::<Job>(&client).get(&expected[0]).await.unwrap();
    let at = &job.metadata.annotations.unwrap()["batch.kubernetes.io/cronjob-scheduled-timestamp"];
    assert_eq!(at, "2026-01-01T10:20:00Z");
    let lines = events(&client, "CronJob", "tick").await;
    assert!(
        lines.contains(&format!("SawCompletedJob: Saw completed job: {}, condition: Complete", expected[0]))
    );
}

#[tokio::test(start_paused = true)]
async fn a_time_zone_moves_the_hour() {
    let (_cluster, client) = started("2026-01-01T00:00:00Z").await;
    create(&client, &cron("0 9 * * *", json!({"timeZone": "Asia/Tokyo"}), json!({}))).await;
    tokio::time::sleep(Duration::from_hours(25)).await;
    let tick = wait(api::<CronJob>(&client), "tick", "run", |cron| {
        cron.and_then(|cron| cron.status.as_ref()?.last_schedule_time.as_ref()).is_some()
    })
    .await
    .unwrap();
    let last = tick.status.unwrap().last_schedule_time.unwrap().0;
    assert_eq!(last, "2026-01-02T00:00:00Z".parse().unwrap(), "nine in Tokyo is midnight in Greenwich");
}

#[tokio::test(start_paused = true)]
async fn the_concurrency_policy_decides_about_overlapping_runs() {
    for (policy, running) in [("Allow", 3), ("Forbid", 1), ("Replace", 1)] {
        let (cluster, client) = started("2026-01-01T10:00:30Z").await;
        create(&client, &cron("* * * * *", json!({"concurrencyPolicy": policy}), endless())).await;
        tokio::time::sleep(Duration::from_secs(165)).await;
        let cron = wait(api::<CronJob>(&client), "tick", "running", active(running)).await.unwrap();
        let names = jobs(&client).await;
        let active = cron.status.unwrap().active.unwrap();
        assert!(active.iter().all(|job| names.contains(job.name.as_ref().unwrap())), "{policy}");
        let minute = "2026-01-01T10:03:00Z".parse::<Timestamp>().unwrap().as_second() / 60;
        let newest = active.iter().any(|job| job.name == Some(format!("tick-{minute}")));
        assert_eq!(newest, policy != "Forbid", "{policy}: {active:?}");
        cluster.shutdown().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_cron_job_starts_nothing_and_catches_up_within_its_deadline() {
    let (_cluster, client) = started("2026-01-01T10:00:30Z").await;
    let spec = json!({"suspend": true, "startingDeadlineSeconds": 60});
    create(&client, &cron("0 * * * *", spec, json!({}))).await;
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert!(jobs(&client).await.is_empty());
    // 12:00:30 is within the deadline of 12:00.
    merge::<CronJob>(&client, "tick", json!({"spec": {"suspend": false}})).await;
    wait(api::<CronJob>(&client), "tick", "run", |cron| {
        cron.and_then(|cron| cron.status.as_ref()?.last_schedule_time.as_ref()).is_some()
    })
    .await;
    assert_eq!(jobs(&client).await.len(), 1);
}
