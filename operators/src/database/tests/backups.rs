//! Scheduled backups, their volume, and whether they are healthy.

use std::sync::Arc;

use k8s_openapi::{api::batch::v1::Job, apimachinery::pkg::apis::meta::v1::Time};
use kube::ResourceExt;
use serde_json::{Value, json};
use windlass::conditions;

use super::{at, claim, db};
use crate::database::{
    DatabaseBackup,
    api::{Method, Phase},
    build, schedule,
    status::{self, BACKUP_HEALTHY, Observed},
    storage,
};

fn backup(name: &str, scheduled: bool, phase: &str, day: i32) -> Arc<DatabaseBackup> {
    let labels = if scheduled { json!({"database.example.com/scheduled": "true"}) } else { json!({}) };
    Arc::new(
        serde_json::from_value(json!({
            "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
            "metadata": {"name": name, "labels": labels},
            "spec": {"databaseRef": {"name": "my-db"}},
            "status": {"phase": phase, "completionTime": format!("2026-01-{day:02}T02:00:00Z")},
        }))
        .unwrap(),
    )
}

#[test]
fn as_many_good_scheduled_backups_are_kept_as_the_spec_says_whatever_fails() {
    let mut all: Vec<_> = (1..=5).map(|day| backup(&format!("good-{day}"), true, "Succeeded", day)).collect();
    all.extend((6..=15).map(|day| backup(&format!("bad-{day:02}"), true, "Failed", day)));
    all.extend((1..=9).map(|day| backup(&format!("mine-{day}"), false, "Succeeded", day)));
    all.push(backup("now", true, "Running", 16));
    let names = |keep: i32| -> Vec<String> {
        let mut names: Vec<_> = schedule::surplus(&all, keep).iter().map(|it| it.name_any()).collect();
        names.sort();
        names
    };
    let bad: Vec<String> = (6..=12).map(|day| format!("bad-{day:02}")).collect();
    let with = |good: &[&str]| [bad.clone(), good.iter().map(ToString::to_string).collect()].concat();
    assert_eq!(names(3), with(&["good-1", "good-2"]), "the oldest go");
    assert_eq!(names(9), with(&[]));
    assert_eq!(names(1), with(&["good-1", "good-2", "good-3", "good-4"]));
    assert_eq!(names(0), names(1), "the last good one stays");
}

#[test]
fn a_scheduled_backup_has_the_name_and_the_method_of_its_job() {
    let mut database = db(json!({"backup": {"method": "Logical"}}));
    database.metadata.name = Some("d".repeat(40));
    let cron = build::cron_job(&database);
    let labels = cron.spec.job_template.metadata.unwrap().labels.unwrap();
    let name = format!("{}-29384756", cron.metadata.name.unwrap());
    let job: Job = serde_json::from_value(json!({
        "metadata": {"name": name, "labels": labels}, "spec": cron.spec.job_template.spec,
    }))
    .unwrap();
    // By now the spec says something else.
    let found = build::scheduled_backup(&db(json!({})), &job);
    assert!(build::is_scheduled(&found));
    assert_eq!((found.name_any(), found.spec.method), (name.clone(), Method::Logical));
    assert_eq!(build::backup_job_name(&found), name);
    assert_eq!(build::location(&database, &found).directory, format!("scheduled/{name}"));
    let removal = build::removal_job(&found, &build::location(&database, &found), None);
    assert!(removal.name_any().len() <= 63, "a Job's name is also a label");
}

#[test]
fn the_volume_for_backups_holds_every_copy_that_is_kept_and_one_more() {
    let size = |spec: Value| build::backup_storage(&db(spec)).0.size;
    assert_eq!(size(json!({})), "80Gi", "seven copies of 10Gi are kept");
    assert_eq!(size(json!({"backup": {"retention": {"count": 1}}})), "20Gi");
    let asked = json!({"backup": {"target": {"persistentVolumeClaim": {"size": "5Gi"}}}});
    assert_eq!(size(asked.clone()), "5Gi");
    let note = |spec: Value| build::backups(&db(spec)).annotations().contains_key(build::SIZED);
    assert!(note(json!({})) && !note(asked), "only a size that nobody asked for follows the data");
}

fn healthy(spec: Value, seen: &Observed, last: Option<&str>, now: &str) -> (String, String, String) {
    let mut database = db(spec);
    let first = status::observed(&database, &Observed::default(), at("2026-01-01T00:00:00Z"));
    database.status = Some(first);
    database.status.as_mut().unwrap().last_successful_backup = last.map(|time| Time(at(time)));
    let status = status::observed(&database, seen, at(now));
    let found = conditions::find(&status.conditions, BACKUP_HEALTHY).unwrap();
    (found.status.clone(), found.reason.clone(), found.message.clone())
}

#[test]
fn a_backup_that_is_overdue_is_not_healthy() {
    let none = Observed::default();
    let told = |spec: Value, last: Option<&str>, now: &str| healthy(spec, &none, last, now).1;
    // Due at two, an hour to begin, six to end.
    assert_eq!(told(json!({}), None, "2026-01-01T08:59:00Z"), "NoBackup");
    let (state, reason, message) = healthy(json!({}), &none, None, "2026-01-01T09:01:00Z");
    assert_eq!((state.as_str(), reason.as_str()), ("False", "BackupOverdue"));
    assert!(message.contains("2026-01-01T02:00:00Z") && message.contains("my-db-backup"), "{message}");
    assert_eq!(told(json!({}), Some("2026-01-03T02:10:00Z"), "2026-01-04T08:00:00Z"), "BackupSucceeded");
    assert_eq!(told(json!({}), Some("2026-01-03T02:10:00Z"), "2026-01-04T09:01:00Z"), "BackupOverdue");
    let short = json!({"backup": {"activeDeadlineSeconds": 60}});
    assert_eq!(told(short, None, "2026-01-01T03:02:00Z"), "BackupOverdue");
    let off = json!({"backup": {"suspend": true}});
    assert_eq!(told(off, Some("2026-01-03T02:10:00Z"), "2026-02-04T09:01:00Z"), "BackupSucceeded");
    // A schedule that begins to be kept has missed nothing yet.
    let mut database = db(json!({"backup": {"suspend": true}}));
    database.status = Some(status::observed(&database, &none, at("2026-01-01T00:00:00Z")));
    database.spec.backup.as_mut().unwrap().suspend = false;
    let resumed = status::observed(&database, &none, at("2026-02-01T00:00:00Z"));
    assert_eq!(conditions::find(&resumed.conditions, BACKUP_HEALTHY).unwrap().reason, "NoBackup");
}

#[test]
fn a_status_is_looked_at_again_when_it_would_say_something_else() {
    let database = db(json!({}));
    let now = at("2026-01-01T01:59:00Z");
    let status = status::observed(&database, &Observed::default(), now);
    let wait = status::look_again(&database, &status, now).unwrap();
    assert_eq!(wait.as_secs(), 61, "when the next backup is due");
    let off = db(json!({"backup": {"suspend": true}}));
    let status = status::observed(&off, &Observed::default(), now);
    assert_eq!(status::look_again(&off, &status, now), None);
}

#[test]
fn a_failed_backup_is_told_in_its_pods_own_words() {
    let mut failed = (*backup("now", true, "Failed", 2)).clone();
    let said = "Job now: BackoffLimitExceeded; its Pod said: connection refused";
    failed.status.as_mut().unwrap().error = Some(said.into());
    assert_eq!(failed.status.as_ref().unwrap().phase, Phase::Failed);
    let seen = Observed { backups: vec![Arc::new(failed)], ..Observed::default() };
    let told = healthy(json!({}), &seen, Some("2026-01-01T03:00:00Z"), "2026-01-02T03:00:00Z");
    assert_eq!(told, ("False".into(), "BackupFailed".into(), said.into()));
}

#[test]
fn no_backup_runs_for_ever() {
    let deadline = |job: &Value| job["spec"]["activeDeadlineSeconds"].clone();
    let database = db(json!({"backup": {"activeDeadlineSeconds": 120}}));
    let cron = serde_json::to_value(build::cron_job(&database)).unwrap();
    assert_eq!(deadline(&cron["spec"]["jobTemplate"]), 120);
    let demand = build::backup_job(&database, &crate::database::backup_sample());
    assert_eq!(deadline(&serde_json::to_value(demand).unwrap()), 120);
    let plain = build::backup_job(&db(json!({})), &crate::database::backup_sample());
    assert_eq!(deadline(&serde_json::to_value(plain).unwrap()), 21600);
}

#[test]
fn a_backup_is_of_the_version_of_the_data() {
    let mut asked = db(json!({"version": "16"}));
    asked.status.get_or_insert_default().version = Some("15".into());
    let location = build::location(&build::of_data(&asked), &crate::database::backup_sample());
    assert_eq!((location.version.as_str(), location.image.as_str()), ("15", "postgres:15"));
}

#[test]
fn what_cannot_be_changed_on_a_statefulset_is_left_as_it_is() {
    let wanted = || build::stateful_set(&db(json!({})), "10Gi");
    assert_eq!(storage::unchanged(wanted(), None), wanted());
    // As the server keeps it: with defaults, and a class that it chose.
    let mut live = wanted();
    let spec = live.spec.volume_claim_templates.as_mut().unwrap()[0].spec.as_mut().unwrap();
    spec.storage_class_name = Some("standard".into());
    assert_eq!(
        storage::unchanged(wanted(), Some(&live)),
        wanted(),
        "what says as much is not sent otherwise"
    );
    live.spec.volume_claim_templates = Some(vec![{
        let mut older = claim("10Gi", "10Gi");
        older.metadata.name = Some("data".into());
        older.metadata.labels = Some([("app".to_owned(), "older".to_owned())].into());
        older
    }]);
    live.spec.service_name = Some("older".into());
    live.spec.pod_management_policy = Some("Parallel".into());
    let kept = storage::unchanged(wanted(), Some(&live)).spec;
    assert_eq!(kept.volume_claim_templates, live.spec.volume_claim_templates);
    assert_eq!(
        (kept.service_name, kept.pod_management_policy),
        (live.spec.service_name, live.spec.pod_management_policy)
    );
    assert_eq!(kept.template, wanted().spec.template, "and the rest follows");
}
