//! Build, cron, sizes and status, without a cluster.

mod backups;
mod servers;

use std::sync::Arc;

use k8s_openapi::{
    ByteString,
    api::{
        apps::v1::StatefulSet,
        batch::v1::Job,
        core::v1::{PersistentVolumeClaim, Secret},
    },
};
use serde_json::{Value, json};
use windlass::{
    conditions::{self, DEGRADED, READY},
    jiff::Timestamp,
};

use super::{
    Database,
    api::{Location, Method},
    build,
    credentials::{self, Credentials},
    cron, quantity, restore, sample,
    status::{self, BACKUP_HEALTHY, Observed, STORAGE_RESIZING},
    storage,
};

fn db(spec: Value) -> Database {
    let mut full = serde_json::to_value(sample().spec).unwrap();
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut db = Database::new("my-db", serde_json::from_value(full).unwrap());
    db.metadata.namespace = Some("shop".into());
    db.metadata.uid = Some("u-1".into());
    db.metadata.generation = Some(1);
    db
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn next(schedule: &str, now: &str) -> String {
    next_in(schedule, "Etc/UTC", now)
}

fn next_in(schedule: &str, zone: &str, now: &str) -> String {
    let zone = cron::zone(zone).unwrap();
    cron::parse(schedule).unwrap().next_after(at(now), &zone).unwrap().to_string()
}

#[test]
fn time_zones_are_known_where_the_system_has_none() {
    // As in an image that holds nothing but the program.
    for name in ["Etc/UTC", "Europe/Rome", "Asia/Shanghai"] {
        assert!(windlass::jiff::tz::TimeZoneDatabase::bundled().get(name).is_ok(), "{name}");
    }
}

#[test]
fn a_schedule_is_due_in_its_own_time_zone() {
    assert_eq!(next_in("0 2 * * *", "Europe/Rome", "2026-01-10T12:00:00Z"), "2026-01-11T01:00:00Z");
    assert_eq!(next_in("0 2 * * *", "Europe/Rome", "2026-07-10T12:00:00Z"), "2026-07-11T00:00:00Z");
    assert_eq!(next_in("0 2 * * *", "Asia/Tokyo", "2026-01-10T16:59:00Z"), "2026-01-10T17:00:00Z");
    // There is no 02:30 on 29 March in Rome, so the CronJob does nothing on that day.
    assert_eq!(next_in("30 2 * * *", "Europe/Rome", "2026-03-28T12:00:00Z"), "2026-03-30T00:30:00Z");
    let problem = build::check(&db(json!({"backup": {"timeZone": "Rome"}}))).unwrap_err();
    assert!(problem.message.contains("spec.backup.timeZone"), "{problem}");
    let job = build::cron_job(&db(json!({"backup": {"timeZone": "Europe/Rome"}})));
    assert_eq!(job.spec.time_zone.as_deref(), Some("Europe/Rome"));
}

#[test]
fn a_schedule_knows_when_it_is_due_next() {
    let now = "2026-02-27T12:30:15Z";
    assert_eq!(next("0 2 * * *", now), "2026-02-28T02:00:00Z");
    assert_eq!(next("*/15 * * * *", now), "2026-02-27T12:45:00Z");
    assert_eq!(next("30 12 * * *", now), "2026-02-27T12:30:00Z".replace("27", "28"));
    assert_eq!(next("0 0 1 * *", now), "2026-03-01T00:00:00Z");
    assert_eq!(next("0 0 29 2 *", now), "2028-02-29T00:00:00Z");
    assert_eq!(next("0 0 * * 0", now), "2026-03-01T00:00:00Z");
    assert_eq!(next("0 0 13 * 1", now), "2026-03-02T00:00:00Z", "a day or a weekday, as in cron");
    assert_eq!(
        next("0 0 */2 * MON", now),
        "2026-03-01T00:00:00Z",
        "*/2 is not *: every other day, and Mondays"
    );
    assert_eq!(next("0 0 * * mon", now), "2026-03-02T00:00:00Z");
    assert_eq!(next("0 0 ? MAR-MAY ?", now), "2026-03-01T00:00:00Z");
    assert_eq!(next("@daily", now), "2026-02-28T00:00:00Z");
    assert_eq!(next("@every 1h30m", now), "2026-02-27T14:00:15Z");
    assert_eq!(next("5,10 8-9 * 3 1-5", now), "2026-03-02T08:05:00Z");
}

#[test]
fn a_wrong_schedule_is_refused_with_the_field() {
    for (bad, why) in [
        ("0 2 * *", "4 fields"),
        ("60 2 * * *", "minute"),
        ("0 24 * * *", "hour"),
        ("0 2 0 * *", "day of the month"),
        ("0 2 * 13 *", "month"),
        ("0 2 * * 7", "from 0 to 6, names from sun to sat"),
        ("0 2 * * MOON", "day of the week"),
        ("@never", "@never is no schedule"),
        ("@every 1s", "a minute or more"),
        ("@every 6 hours", "@every 6 hours is no schedule"),
        ("CRON_TZ=Asia/Tokyo 0 2 * * *", "spec.backup.timeZone"),
        ("*/0 * * * *", "minute"),
        ("9-5 * * * *", "minute"),
    ] {
        let error = cron::parse(bad).unwrap_err();
        assert!(error.contains(why), "{bad}: {error}");
    }
    let problem = build::check(&db(json!({"backup": {"schedule": "every day at 2"}}))).unwrap_err();
    assert!(problem.message.contains("spec.backup.schedule"), "{problem}");
}

#[test]
fn sizes_are_compared_as_quantities() {
    assert!(quantity::is_less("6G", "6Gi"), "decimal is not binary");
    assert!(!quantity::is_less("1Gi", "1024Mi"));
    assert!(quantity::is_less("1.5Gi", "1537Mi"));
    assert!(quantity::is_less("500m", "1") && !quantity::is_less("2", "1500m"), "shares of a processor");
    assert_eq!(quantity::times("10Gi", 8).as_deref(), Some("80Gi"));
    assert_eq!(quantity::times("1.5Ki", 2).as_deref(), Some("3Ki"));
    assert_eq!(quantity::bytes("ten"), None);
}

#[test]
fn the_statefulset_leaves_restarts_to_the_operator_and_runs_unprivileged() {
    let set = build::stateful_set(&db(json!({})), "10Gi");
    let spec = serde_json::to_value(&set.spec).unwrap();
    assert_eq!(spec["updateStrategy"]["type"], "OnDelete");
    let pod = &spec["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    for container in [&pod["initContainers"][0], &pod["containers"][0]] {
        assert_eq!(container["image"], "postgres:13");
        assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
        assert_eq!(container["securityContext"]["capabilities"]["drop"][0], "ALL");
    }
    assert_eq!(spec["volumeClaimTemplates"][0]["spec"]["resources"]["requests"]["storage"], "10Gi");
}

#[test]
fn a_disabled_schedule_is_suspended_not_removed() {
    let job = build::cron_job(&db(json!({"backup": {"suspend": true, "schedule": "0 2 * * *"}})));
    assert_eq!(job.spec.suspend, Some(true));
    let job = build::cron_job(&db(json!({})));
    assert_eq!((job.spec.suspend, job.spec.concurrency_policy.as_deref()), (Some(false), Some("Forbid")));
    assert_eq!(job.spec.schedule, "0 2 * * *");
}

#[test]
fn a_restore_mounts_the_other_databases_backups_beside_its_own_data() {
    let location = Location {
        claim: "old-backups".into(),
        directory: "on-demand/now".into(),
        method: Method::Physical,
        version: "13".into(),
        image: "postgres:13".into(),
    };
    let job = serde_json::to_value(build::restore_job(&db(json!({})), &location)).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_array().unwrap();
    let claims: Vec<&str> =
        volumes.iter().filter_map(|it| it["persistentVolumeClaim"]["claimName"].as_str()).collect();
    assert_eq!(claims, ["old-backups", "data-my-db-0"]);
    let env = pod["containers"][0]["env"].as_array().unwrap();
    let from = env.iter().find(|it| it["name"] == "RESTORE_FROM").unwrap();
    assert_eq!(from["value"], "/backups/on-demand/now");
    let mark = |uid: &str| {
        let mut database = db(json!({}));
        database.metadata.uid = Some(uid.into());
        let job = serde_json::to_value(build::restore_job(&database, &location)).unwrap();
        let env = job["spec"]["template"]["spec"]["containers"][0]["env"].as_array().unwrap().clone();
        env.into_iter().find(|it| it["name"] == "RESTORE_MARK").unwrap()["value"].clone()
    };
    assert_eq!(mark("u-1"), "u-1 old-backups/on-demand/now Physical");
    assert_ne!(mark("u-1"), mark("u-2"), "another Database of the name restores for itself");
    let rule = &job["spec"]["podFailurePolicy"]["rules"][0];
    assert_eq!((&rule["action"], &rule["onExitCodes"]["values"]), (&json!("FailJob"), &json!([73])));
}

#[test]
fn only_a_database_that_opened_a_volume_or_made_it_may_delete_it() {
    let made = |time: &str| k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(time));
    let mut database = db(json!({}));
    database.metadata.creation_timestamp = Some(made("2026-01-02T00:00:00Z"));
    let mut volume = claim("1Gi", "1Gi");
    volume.metadata.creation_timestamp = Some(made("2026-01-01T00:00:00Z"));
    assert!(
        !restore::owns_data(&database, Some(&volume)),
        "an earlier one made it, and nobody has opened it since"
    );
    database.status.get_or_insert_default().initialized = true;
    assert!(restore::owns_data(&database, Some(&volume)), "a server of this one has opened it");
    database.status = None;
    volume.metadata.creation_timestamp = Some(made("2026-01-02T00:00:00Z"));
    assert!(restore::owns_data(&database, Some(&volume)), "it was made for this one");
    assert!(restore::owns_data(&database, None), "there is nothing to keep");
}

fn secret(uid: &str, entries: &[(&str, &str)]) -> Secret {
    let data = entries.iter().map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    let mut secret = build::secret(&db(json!({})), "password", "superuser");
    secret.metadata.uid = Some(uid.into());
    secret.data.as_mut().unwrap().extend(data);
    secret
}

#[test]
fn other_credentials_are_another_digest_and_the_same_words_in_another_secret_too() {
    let found = |secret: &Secret| Credentials::of(&db(json!({})), &Observed::default(), secret);
    let recorded = |digest: &str, secret: &Secret| {
        let mut database = db(json!({}));
        database.status.get_or_insert_default().credentials = Some(digest.to_owned());
        Credentials::of(&database, &Observed::default(), secret)
    };
    let first = secret("s-1", &[]);
    let name = build::login_job(&db(json!({})), "x").metadata.name.unwrap();
    let complete: Job = serde_json::from_value(json!({
        "metadata": {"name": name}, "status": {"conditions": [{"type": "Complete", "status": "True"}]},
    }))
    .unwrap();
    assert_eq!(found(&first), Credentials::Waiting, "no server runs");
    let seen = Observed { jobs: vec![Arc::new(complete)], ..Observed::default() };
    assert_eq!(
        Credentials::of(&db(json!({})), &seen, &first),
        Credentials::Waiting,
        "the login of other credentials counts for nothing"
    );
    let digest = credentials::digest(&first).unwrap();
    assert_eq!(recorded(&digest, &first), Credentials::Synced(digest.clone()));
    for other in
        [secret("s-2", &[]), secret("s-1", &[("password", "other")]), secret("s-1", &[("username", "me")])]
    {
        assert_eq!(recorded(&digest, &other), Credentials::Waiting);
    }
    assert_eq!(
        recorded(&digest, &secret("s-1", &[("note", "more")])),
        Credentials::Synced(digest),
        "what is no credential is no change"
    );
}

#[test]
fn an_address_says_any_password() {
    let uri = build::uri("app", "a:b/c@d%é", "host", "5432", "app");
    assert_eq!(uri, "postgresql://app:a%3Ab%2Fc%40d%25%C3%A9@host:5432/app");
}

#[test]
fn another_wish_is_another_login() {
    let name = |spec: Value, digest: &str| build::login_job(&db(spec), digest).metadata.name.unwrap();
    let first = name(json!({}), "a");
    assert_eq!(first, name(json!({}), "a"));
    assert_ne!(first, name(json!({}), "b"));
    assert_ne!(first, name(json!({"image": "postgres:13.1"}), "a"), "what a Job runs cannot be changed");
    let mut long = db(json!({}));
    long.metadata.name = Some("d".repeat(40));
    assert!(build::login_job(&long, "a").metadata.name.unwrap().len() <= 63);
}

#[test]
fn a_removal_names_one_backup_and_nothing_else() {
    let database = db(json!({"pod": {"imagePullPolicy": "Never"}}));
    let backup = crate::database::backup_sample();
    let location = build::location(&database, &backup);
    let job = serde_json::to_value(build::removal_job(&backup, &location, Some(&database))).unwrap();
    let pod = &job["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let place = "/backups/on-demand/my-db-now";
    assert_eq!(container["command"], json!(["rm", "-rf", place, format!("{place}.partial")]));
    assert_eq!(
        (&container["image"], &container["imagePullPolicy"]),
        (&json!("postgres:13"), &json!("Never"))
    );
    assert_eq!(pod["volumes"][0]["persistentVolumeClaim"]["claimName"], "my-db-backups");
    let orphan = serde_json::to_value(build::removal_job(&backup, &location, None)).unwrap();
    assert_eq!(orphan["spec"]["template"]["spec"]["containers"][0]["image"], "postgres:13");
}

#[test]
fn the_last_backup_has_another_name_in_each_life_and_fits() {
    let mut database = db(json!({"backup": {"method": "Logical"}}));
    database.metadata.name = Some("d".repeat(40));
    database.metadata.uid = Some("0a1b2c3d-4e5f".into());
    let last = build::last_backup(&database);
    assert_eq!(last.metadata.name.as_deref().unwrap(), format!("{}-final-0a1b2c3d", "d".repeat(40)));
    assert_eq!(last.metadata.name.unwrap().len(), 55);
    assert_eq!((last.spec.method, last.metadata.owner_references), (Method::Logical, None));
}

#[test]
fn the_version_of_the_data_decides_not_the_last_spec() {
    let mut changed = db(json!({"version": "15"}));
    assert!(build::check_version(&changed).is_ok(), "nothing has opened the data yet");
    changed.status.get_or_insert_default().version = Some("13".into());
    let problem = build::check_version(&changed).unwrap_err();
    assert_eq!(problem.reason, "UpgradeBlocked");
    changed.spec.version = "13".into();
    assert!(build::check_version(&changed).is_ok(), "and back");
    assert!(build::is_out_of_life(&changed));
    let odd = build::check(&db(json!({"version": "9"}))).unwrap_err();
    assert!(odd.message.contains("from 13 to 18"), "{odd}");
}

fn claim(requested: &str, capacity: &str) -> PersistentVolumeClaim {
    serde_json::from_value(json!({
        "metadata": {"name": "data-my-db-0"},
        "spec": {"resources": {"requests": {"storage": requested}}},
        "status": {"capacity": {"storage": capacity}},
    }))
    .unwrap()
}

#[test]
fn growth_is_recorded_first_and_shrinking_refused() {
    let grown = db(json!({"storage": {"size": "20Gi"}}));
    assert!(storage::must_record(&grown, Some(&claim("10Gi", "10Gi"))));
    assert!(!storage::must_record(&grown, Some(&claim("20480Mi", "10Gi"))), "asked for already");
    assert!(!storage::must_record(&grown, None));
    assert!(storage::shrinks(&grown, Some(&claim("30Gi", "30Gi"))).is_some());
    assert_eq!(storage::shrinks(&grown, Some(&claim("20Gi", "20Gi"))), None);
    let set: StatefulSet = build::stateful_set(&db(json!({})), "10Gi");
    assert_eq!(storage::wanted_template(&grown, Some(&set)), "10Gi", "what is there cannot be changed");
    assert_eq!(storage::wanted_template(&grown, None), "20Gi");
}

#[test]
fn a_growth_is_over_when_the_storage_system_says_so() {
    let mut grown = db(json!({"storage": {"size": "20Gi"}}));
    grown.status.get_or_insert_default().resizing_to = Some("20Gi".into());
    let mut seen = Observed { claim: Some(Arc::new(claim("20Gi", "10Gi"))), ..Observed::default() };
    let now = at("2026-01-01T00:00:00Z");
    let growing = status::observed(&grown, &seen, now);
    assert!(conditions::holds(&growing.conditions, STORAGE_RESIZING));
    assert_eq!(growing.resizing_to.as_deref(), Some("20Gi"));
    seen.claim = Some(Arc::new(claim("20Gi", "20Gi")));
    let done = status::observed(&grown, &seen, now);
    assert!(!conditions::holds(&done.conditions, STORAGE_RESIZING));
    assert_eq!((done.resizing_to, done.storage_size.as_deref()), (None, Some("20Gi")));
}

#[test]
fn a_status_tells_when_the_next_backup_is_due() {
    let now = at("2026-01-01T00:00:00Z");
    let status = status::observed(&db(json!({})), &Observed::default(), now);
    assert_eq!(status.next_backup.unwrap().0.to_string(), "2026-01-01T02:00:00Z");
    assert!(!conditions::holds(&status.conditions, READY));
    assert!(!conditions::holds(&status.conditions, DEGRADED));
    assert_eq!(conditions::find(&status.conditions, BACKUP_HEALTHY).unwrap().status, "Unknown");
    let off = db(json!({"backup": {"suspend": true, "schedule": "0 2 * * *"}}));
    assert_eq!(status::observed(&off, &Observed::default(), now).next_backup, None);
}

#[test]
fn the_last_failure_counts_until_a_backup_succeeds() {
    let job = |name: &str, type_: &str, time: &str| {
        Arc::new(
            serde_json::from_value(json!({
                "metadata": {"name": name},
                "spec": {"template": {}},
                "status": {"conditions": [{
                    "type": type_, "status": "True", "message": "BackoffLimitExceeded", "lastTransitionTime": time,
                }]},
            }))
            .unwrap(),
        )
    };
    let now = at("2026-01-02T00:00:00Z");
    let failed = Observed { jobs: vec![job("b", "Failed", "2026-01-01T02:00:00Z")], ..Observed::default() };
    let mut db = db(json!({}));
    let status = status::observed(&db, &failed, now);
    let condition = conditions::find(&status.conditions, BACKUP_HEALTHY).unwrap();
    assert_eq!((condition.status.as_str(), condition.reason.as_str()), ("False", "BackupFailed"));
    db.status.get_or_insert_default().last_successful_backup =
        Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at("2026-01-01T03:00:00Z")));
    let status = status::observed(&db, &failed, now);
    assert!(conditions::holds(&status.conditions, BACKUP_HEALTHY));
}
