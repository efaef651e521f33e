//! What the API server asks the webhooks before it stores a CronJob.

use std::time::Duration;

use cronjob_operator::cronjob::CronJob;
use windlass::{kube::api::PostParams, serde_json::json};

use crate::cronjob::{cronjob, started};

#[tokio::test(start_paused = true)]
async fn the_webhook_fills_in_and_refuses() {
    let env = started(Duration::ZERO).await;
    let stored = env.apply(&cronjob(|_| {})).await;
    assert_eq!(stored.spec.suspend, Some(false));
    assert_eq!(
        (stored.spec.successful_jobs_history_limit, stored.spec.failed_jobs_history_limit),
        (Some(3), Some(1))
    );
    let mut bad = cronjob(|spec| spec["schedule"] = json!("every minute"));
    bad.metadata.name = Some("bad".into());
    let refused = env.api::<CronJob>().create(&PostParams::default(), &bad).await.unwrap_err();
    assert!(refused.to_string().contains("spec.schedule"), "{refused}");
    let mut long = cronjob(|_| {});
    long.metadata.name = Some("a".repeat(53));
    let refused = env.api::<CronJob>().create(&PostParams::default(), &long).await.unwrap_err();
    assert!(refused.to_string().contains("no more than 52"), "{refused}");
    env.stop().await;
}
