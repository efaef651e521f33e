//! A rollout's conditions over time, as kube-controller-manager writes them.

use super::{super::limits::tests::rolling, *};
use crate::pods::tests::at;

fn deployment(status: DeploymentStatus) -> Deployment {
    let mut deployment = Deployment { status: Some(status), ..Deployment::default() };
    deployment.metadata.name = Some("web".into());
    deployment.metadata.generation = Some(1);
    deployment
}

fn spec() -> DeploymentSpec {
    DeploymentSpec { progress_deadline_seconds: Some(600), ..rolling(2, "25%", "25%") }
}

fn new_set(pods: i32, ready: i32) -> Sets {
    let mut set = super::super::rolling::tests::set("web-1", 2, ready);
    let status = Arc::get_mut(&mut set).unwrap().status.as_mut().unwrap();
    status.replicas = pods;
    status.ready_replicas = Some(ready);
    status.terminating_replicas = Some(0);
    status.observed_generation = Some(1);
    Sets { new: Some(set), old: Vec::new() }
}

fn step(old: DeploymentStatus, sets: &Sets, second: i64) -> DeploymentStatus {
    let deployment = deployment(old.clone());
    let mut status = counted(&deployment, &spec(), old, sets, at(second));
    note_progress(&mut status, &deployment, &spec(), sets, at(second));
    status
}

fn lines(status: &DeploymentStatus) -> Vec<String> {
    let line = |condition: &DeploymentCondition| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        format!(
            "{}={} {}: {}",
            text(&condition.type_),
            text(&condition.status),
            text(&condition.reason),
            text(&condition.message)
        )
    };
    status.conditions.iter().flatten().map(line).collect()
}

#[test]
fn a_rollout_goes_from_created_over_progressing_to_available() {
    let mut status = DeploymentStatus::default();
    note_created(&mut status, &spec(), "web-1", at(1));
    let status = step(status, &new_set(0, 0), 1);
    assert_eq!(
        lines(&status),
        [
            "Progressing=True NewReplicaSetCreated: Created new replica set \"web-1\"",
            "Available=False MinimumReplicasUnavailable: Deployment does not have minimum availability.",
        ]
    );
    assert_eq!(status.unavailable_replicas, Some(2));
    let status = step(status, &new_set(2, 0), 2);
    assert_eq!(lines(&status)[1], "Progressing=True ReplicaSetUpdated: ReplicaSet \"web-1\" is progressing.");
    let status = step(status, &new_set(2, 2), 3);
    assert_eq!(
        lines(&status),
        [
            "Available=True MinimumReplicasAvailable: Deployment has minimum availability.",
            "Progressing=True NewReplicaSetAvailable: ReplicaSet \"web-1\" has successfully progressed.",
        ]
    );
    assert_eq!((status.available_replicas, status.unavailable_replicas), (Some(2), None));
    assert_eq!(status.conditions.as_ref().unwrap()[1].last_transition_time, Some(Time(at(1))));
    assert_eq!(step(status.clone(), &new_set(2, 2), 9), status);
}

#[test]
fn a_rollout_without_progress_times_out() {
    let mut status = DeploymentStatus::default();
    note_created(&mut status, &spec(), "web-1", at(0));
    let status = step(status, &new_set(2, 0), 1);
    let target = deployment(status.clone());
    assert_eq!(time_left(&status, &target, &spec(), at(101)), Some(Duration::from_secs(500)));
    let status = step(status, &new_set(2, 0), 601);
    assert!(lines(&status).iter().any(|line| line.contains("ReplicaSetUpdated")), "601 is on time");
    let status = step(status, &new_set(2, 0), 602);
    assert!(
        lines(&status).contains(
            &"Progressing=False ProgressDeadlineExceeded: ReplicaSet \"web-1\" has timed out progressing."
                .to_owned()
        )
    );
    assert_eq!(time_left(&status, &target, &spec(), at(700)), None);
}

#[test]
fn a_pause_stops_the_clock() {
    let mut status = DeploymentStatus::default();
    note_created(&mut status, &spec(), "web-1", at(0));
    let paused = DeploymentSpec { paused: Some(true), ..spec() };
    note_pause(&mut status, &paused, at(10));
    assert_eq!(lines(&status), ["Progressing=Unknown DeploymentPaused: Deployment is paused"]);
    note_pause(&mut status, &spec(), at(5000));
    assert_eq!(lines(&status), ["Progressing=Unknown DeploymentResumed: Deployment is resumed"]);
    assert!(!has_timed_out(&status, &spec(), at(5001)));
}

#[test]
fn a_set_that_cannot_make_pods_fails_the_deployment() {
    let mut sets = new_set(0, 0);
    let set = Arc::get_mut(sets.new.as_mut().unwrap()).unwrap();
    set.status.as_mut().unwrap().conditions = Some(vec![ReplicaSetCondition {
        type_: Some(REPLICA_FAILURE.into()),
        status: Some("True".into()),
        reason: Some("FailedCreate".into()),
        message: Some("pods \"x\" is forbidden".into()),
        last_transition_time: Some(Time(at(4))),
    }]);
    let status = step(DeploymentStatus::default(), &sets, 5);
    assert_eq!(lines(&status)[1], "ReplicaFailure=True FailedCreate: pods \"x\" is forbidden");
    let status = step(status, &new_set(0, 0), 6);
    assert!(!lines(&status).iter().any(|line| line.starts_with(REPLICA_FAILURE)));
}
