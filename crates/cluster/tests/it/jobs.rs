//! Jobs, from their first Pod to their end.

use std::time::Duration;

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::api::{
        batch::v1::{Job, JobStatus},
        core::v1::{Namespace, Pod},
    },
    kube::{
        Api, Client,
        api::{DeleteParams, PostParams},
    },
};
use windlass_cluster::Cluster;

use crate::support::{api, create, decode, events, list, merge, wait};

fn job(name: &str, spec: Value) -> Job {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "work", "image": "busybox"}]},
        }},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    decode(job)
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_pods_found_no_node_does_not_keep_its_namespace() {
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &decode(json!({"metadata": {"name": "shop"}}))).await.unwrap();
    let mut work = job("work", json!({"completions": 2, "parallelism": 2, "podReplacementPolicy": "Failed"}));
    let pod = work.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.node_selector = Some([("kubernetes.io/os".to_owned(), "plan9".to_owned())].into());
    let jobs: Api<Job> = Api::namespaced(client.clone(), "shop");
    jobs.create(&PostParams::default(), &work).await.unwrap();
    wait(jobs, "work", "started", |job| job.and_then(|job| job.status.as_ref()?.active) == Some(2)).await;
    namespaces.delete("shop", &DeleteParams::default()).await.unwrap();
    wait(namespaces, "shop", "gone", |shop| shop.is_none()).await;
}

fn simulating(mut job: Job, annotations: Value) -> Job {
    let template = &mut job.spec.as_mut().unwrap().template;
    template.metadata.get_or_insert_default().annotations = Some(decode(annotations));
    job
}

fn holds(job: &Job, type_: &str) -> bool {
    let conditions = job.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == type_ && condition.status == "True")
}

async fn wait_for(client: &Client, name: &str, type_: &'static str) -> Job {
    let done =
        wait(api::<Job>(client), name, type_, move |job| job.is_some_and(|job| holds(job, type_))).await;
    done.expect("the Job must be there")
}

fn status(job: &Job) -> JobStatus {
    job.status.clone().unwrap()
}

fn conditions(job: &Job) -> Vec<String> {
    let line = |condition: &windlass::k8s_openapi::api::batch::v1::JobCondition| {
        format!(
            "{}={} {}",
            condition.type_,
            condition.status,
            condition.reason.as_deref().unwrap_or_default()
        )
    };
    status(job).conditions.unwrap().iter().map(line).collect()
}

#[tokio::test]
async fn a_job_runs_until_enough_pods_have_succeeded() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &job("work", json!({"completions": 5, "parallelism": 2}))).await;
    let done = wait_for(&client, "work", "Complete").await;
    let status = status(&done);
    assert_eq!(
        conditions(&done),
        ["SuccessCriteriaMet=True CompletionsReached", "Complete=True CompletionsReached"]
    );
    assert_eq!((status.succeeded, status.failed, status.active), (Some(5), None, None));
    assert_eq!((status.ready, status.terminating), (Some(0), Some(0)));
    assert!(status.completion_time.is_some() && status.start_time.is_some());
    assert_eq!(status.uncounted_terminated_pods, Some(decode(json!({}))));
    let pods = list::<Pod>(&client, "app=work").await;
    assert_eq!(pods.len(), 5);
    for pod in pods {
        assert_eq!(pod.status.unwrap().phase.as_deref(), Some("Succeeded"));
        assert_eq!(pod.metadata.finalizers, None, "a counted Pod needs no finalizer");
        assert_eq!(pod.metadata.labels.unwrap()["batch.kubernetes.io/job-name"], "work");
    }
    let lines = events(&client, "Job", "work").await;
    assert_eq!(
        lines.iter().filter(|line| line.starts_with("SuccessfulCreate: Created pod: work-")).count(),
        5
    );
}

#[tokio::test]
async fn an_indexed_job_has_a_pod_for_every_index() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &job("work", json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3})))
        .await;
    let done = wait_for(&client, "work", "Complete").await;
    assert_eq!(status(&done).completed_indexes.as_deref(), Some("0-2"));
    let mut pods = list::<Pod>(&client, "app=work").await;
    pods.sort_by_key(|pod| pod.metadata.name.clone());
    for (index, pod) in pods.iter().enumerate() {
        assert!(pod.metadata.name.as_deref().unwrap().starts_with(&format!("work-{index}-")));
        let spec = pod.spec.as_ref().unwrap();
        assert_eq!(spec.hostname, Some(format!("work-{index}")));
        assert_eq!(spec.containers[0].env.as_ref().unwrap()[0].name, "JOB_COMPLETION_INDEX");
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_keeps_failing_backs_off_and_gives_up() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let failing =
        simulating(job("work", json!({"backoffLimit": 1})), json!({"windlass.dev/simulate": "fail"}));
    let start = cluster.now();
    create(&client, &failing).await;
    let failed =
        wait(api::<Job>(&client), "work", "failed", |job| job.is_some_and(|job| holds(job, "Failed"))).await;
    let failed = failed.unwrap();
    assert_eq!(
        conditions(&failed),
        ["FailureTarget=True BackoffLimitExceeded", "Failed=True BackoffLimitExceeded"]
    );
    assert_eq!(status(&failed).failed, Some(2));
    let took = Duration::try_from(cluster.now().duration_since(start)).unwrap();
    assert!(took >= Duration::from_secs(9), "10 s must pass between the Pods: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn an_index_has_a_limit_of_its_own() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let spec =
        json!({"completionMode": "Indexed", "completions": 2, "parallelism": 2, "backoffLimitPerIndex": 1});
    create(&client, &simulating(job("work", spec), json!({"windlass.dev/simulate": "fail"}))).await;
    let failed = wait_for(&client, "work", "Failed").await;
    assert_eq!(conditions(&failed)[0], "FailureTarget=True FailedIndexes");
    let status = status(&failed);
    assert_eq!((status.failed_indexes.as_deref(), status.failed), (Some("0,1"), Some(4)));
    let mut counts: Vec<String> = list::<Pod>(&client, "app=work")
        .await
        .into_iter()
        .map(|pod| pod.metadata.annotations.unwrap()["batch.kubernetes.io/job-index-failure-count"].clone())
        .collect();
    counts.sort();
    assert_eq!(counts, ["0", "0", "1", "1"]);
}

#[tokio::test]
async fn a_failure_policy_fails_the_job_at_once() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let spec = json!({"podFailurePolicy": {"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]}});
    create(&client, &simulating(job("work", spec), json!({"windlass.dev/exit-code": "42"}))).await;
    let failed = wait_for(&client, "work", "Failed").await;
    let condition = &status(&failed).conditions.unwrap()[1];
    assert_eq!(condition.reason.as_deref(), Some("PodFailurePolicy"));
    assert!(
        condition
            .message
            .as_deref()
            .unwrap()
            .contains("failed with exit code 42 matching FailJob rule at index 0")
    );
}

#[tokio::test(start_paused = true)]
async fn a_deadline_stops_a_running_job() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let endless = simulating(
        job("work", json!({"activeDeadlineSeconds": 20})),
        json!({"windlass.dev/simulate": "run"}),
    );
    create(&client, &endless).await;
    wait(api::<Job>(&client), "work", "running", |job| {
        job.and_then(|job| job.status.as_ref()?.ready).unwrap_or(0) == 1
    })
    .await;
    let failed = wait_for(&client, "work", "Failed").await;
    assert_eq!(conditions(&failed)[1], "Failed=True DeadlineExceeded");
    assert_eq!((status(&failed).failed, status(&failed).active), (Some(1), None));
    assert!(list::<Pod>(&client, "app=work").await.is_empty(), "Pods that were stopped are deleted");
}

#[tokio::test]
async fn suspension_stops_the_pods_and_resumption_starts_them_again() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let endless = simulating(
        job("work", json!({"parallelism": 2, "completions": 2})),
        json!({"windlass.dev/simulate": "run"}),
    );
    create(&client, &endless).await;
    let active = |count: i32| {
        move |job: Option<&Job>| {
            job.and_then(|job| job.status.clone()).is_some_and(|status| {
                status.active.unwrap_or(0) == count
                    && status.ready == Some(count)
                    && status.terminating == Some(0)
            })
        }
    };
    wait(api::<Job>(&client), "work", "running", active(2)).await;
    merge::<Job>(&client, "work", json!({"spec": {"suspend": true}})).await;
    let suspended = wait_for(&client, "work", "Suspended").await;
    assert_eq!(status(&suspended).start_time, None);
    wait(api::<Job>(&client), "work", "empty", active(0)).await;
    merge::<Job>(&client, "work", json!({"spec": {"suspend": false}})).await;
    let resumed = wait(api::<Job>(&client), "work", "running again", active(2)).await.unwrap();
    assert_eq!(conditions(&resumed), ["Suspended=False JobResumed"]);
    assert_eq!(status(&resumed).failed, None, "Pods that were stopped by suspension are no failures");
}

#[tokio::test(start_paused = true)]
async fn a_finished_job_goes_with_its_pods_when_its_time_is_up() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &job("work", json!({"ttlSecondsAfterFinished": 100}))).await;
    wait_for(&client, "work", "Complete").await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(api::<Job>(&client).get_opt("work").await.unwrap().is_some());
    wait(api::<Job>(&client), "work", "gone", |job| job.is_none()).await;
    assert!(list::<Pod>(&client, "app=work").await.is_empty());
}

#[tokio::test]
async fn deleting_a_job_leaves_no_pod_behind() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let endless = simulating(job("work", json!({})), json!({"windlass.dev/simulate": "run"}));
    create(&client, &endless).await;
    wait(api::<Job>(&client), "work", "running", |job| {
        job.and_then(|job| job.status.as_ref()?.ready).unwrap_or(0) == 1
    })
    .await;
    let pod = list::<Pod>(&client, "app=work").await[0].metadata.name.clone().unwrap();
    api::<Job>(&client).delete("work", &DeleteParams::background()).await.unwrap();
    wait(api::<Pod>(&client), &pod, "gone", |pod| pod.is_none()).await;
}

#[tokio::test(start_paused = true)]
async fn restarts_in_place_count_towards_the_limit() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let mut failing =
        simulating(job("work", json!({"backoffLimit": 2})), json!({"windlass.dev/simulate": "fail"}));
    failing.spec.as_mut().unwrap().template.spec.as_mut().unwrap().restart_policy = Some("OnFailure".into());
    create(&client, &failing).await;
    let failed = wait_for(&client, "work", "Failed").await;
    assert_eq!(conditions(&failed)[1], "Failed=True BackoffLimitExceeded");
    assert_eq!(status(&failed).failed, Some(1));
}

#[tokio::test(start_paused = true)]
async fn pods_that_are_cut_short_by_a_success_have_not_failed() {
    use windlass::kube::api::{Patch, PatchParams};
    let cluster = Cluster::builder().heartbeat(None).start().await.unwrap();
    let client = cluster.client();
    let mut pick = job(
        "pick",
        json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed",
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
    );
    let pod = pick.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.containers[0].command = Some(vec!["sleep".into(), "1000".into()]);
    create(&client, &pick).await;
    wait(api::<Job>(&client), "pick", "running", |job| {
        job.and_then(|job| job.status.as_ref()?.ready) == Some(3)
    })
    .await;
    let pods: Vec<Pod> = list(&client, "batch.kubernetes.io/job-completion-index=0").await;
    let name = pods[0].metadata.name.clone().unwrap();
    let done = Patch::Merge(json!({"status": {"phase": "Succeeded"}}));
    api::<Pod>(&client).patch_status(&name, &PatchParams::default(), &done).await.unwrap();
    let ended = wait(api::<Job>(&client), "pick", "complete", |job| {
        let conditions = job.and_then(|job| job.status.as_ref()?.conditions.as_ref());
        conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Complete" && c.status == "True"))
    });
    let status = ended.await.unwrap().status.unwrap();
    assert_eq!((status.succeeded, status.failed), (Some(1), None));
}
