//! Database with real PostgreSQL servers in real Pods: rows go in, disasters happen, rows come out.
//!
//! These need the node, the storage and the images of the testbed: `cargo xtask kubernetes load-software`.

use std::sync::atomic::{AtomicUsize, Ordering};

use k8s_openapi::api::{
    batch::v1::CronJob,
    core::v1::{PersistentVolume, PersistentVolumeClaim, Pod, ResourceQuota, Secret},
};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, LogParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{
    condition, create,
    credentials::{accepted, set},
    database, merge, operator, settled,
};
use crate::bed::{Bed, Ground, eventually, run};

/// Defines tests for the real cluster only: a simulated node runs no server.
macro_rules! with_real_servers {
    ($($case:ident)+) => {
        mod real {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs a real cluster"]
            async fn $case() {
                super::run(super::Ground::Real, super::operator, super::$case).await;
            })+
        }
    };
}

with_real_servers! {
    rows_survive_the_loss_of_the_database_and_its_volume
    rows_survive_kill_9_and_growth
    a_dump_moves_rows_to_a_newer_version
    a_quota_that_forbids_the_server_is_told
    kept_data_is_never_passed_off_as_restored
    other_passwords_are_accepted_by_the_running_server
    a_lost_secret_locks_nobody_out_of_kept_data
}

pub(super) const ROWS: &str = "SELECT count(*) || ':' || sum(n) FROM t";

/// Runs SQL as the application does: from another Pod, through the Service, with the Secret's credentials.
pub(super) async fn sql(bed: &Bed, db: &str, statement: &str) -> String {
    let (phase, log) = client(bed, db, statement, None).await;
    assert_eq!(phase, "Succeeded", "{statement}: {log}");
    log
}

/// Runs SQL with the Secret's credentials, or another password, and returns how that ended and what was printed.
async fn client(bed: &Bed, db: &str, statement: &str, password: Option<&str>) -> (String, String) {
    as_user(bed, db, statement, password, None).await
}

/// The same as another user. A database is renamed from another one.
pub(super) async fn as_user(
    bed: &Bed,
    db: &str,
    statement: &str,
    password: Option<&str>,
    user: Option<&str>,
) -> (String, String) {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let name = format!("client-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let key = |key: &str| json!({"secretKeyRef": {"name": format!("{db}-credentials"), "key": key}});
    let password = match password {
        Some(password) => json!({"name": "PGPASSWORD", "value": password}),
        None => json!({"name": "PGPASSWORD", "valueFrom": key("password")}),
    };
    let named = |name: &str, own: &str, other: Option<&str>| match other {
        Some(value) => json!({"name": name, "value": value}),
        None => json!({"name": name, "valueFrom": key(own)}),
    };
    let renames = statement.starts_with("ALTER DATABASE");
    let place = if renames { Some("postgres") } else { None };
    let host = format!("$({}_RW_SERVICE_HOST)", db.to_uppercase().replace('-', "_"));
    // Ready is the server's word; until the node's proxy has heard it too, the Service refuses connections.
    let script = "for attempt in $(seq 150); do pg_isready --quiet && break; sleep 0.2; done; \
                  psql --no-psqlrc --tuples-only --no-align --set=ON_ERROR_STOP=1 --command=\"$STATEMENT\"";
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "psql", "image": "postgres:15", "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
                "env": [
                    // The testbed has no DNS; the kubelet tells each container the addresses of the Services.
                    {"name": "PGHOST", "value": host},
                    named("PGUSER", "username", user),
                    password,
                    named("PGDATABASE", "database", place),
                    {"name": "STATEMENT", "value": statement},
                ],
            }],
        },
    });
    bed.create::<Pod>(pod).await;
    ended(bed, &name, statement).await
}

/// What a Pod printed that ran to its end.
async fn finished(bed: &Bed, name: &str, what: &str) -> String {
    let (phase, log) = ended(bed, name, what).await;
    assert_eq!(phase, "Succeeded", "{what}: {log}");
    log
}

/// How a Pod ended, and what it printed.
async fn ended(bed: &Bed, name: &str, what: &str) -> (String, String) {
    let pods = bed.api::<Pod>();
    let phase = eventually(&format!("{name} has run {what}"), || async {
        let phase = pods.get(name).await.unwrap().status?.phase?;
        ["Succeeded", "Failed"].contains(&phase.as_str()).then_some(phase)
    })
    .await;
    let log = pods.logs(name, &LogParams::default()).await.unwrap();
    pods.delete(name, &DeleteParams::default()).await.unwrap();
    (phase, log.trim().to_owned())
}

pub(super) async fn fill(bed: &Bed, db: &str) -> String {
    sql(bed, db, "CREATE TABLE t AS SELECT n FROM generate_series(1, 10000) AS n").await;
    let rows = sql(bed, db, ROWS).await;
    assert_eq!(rows, "10000:50005000");
    rows
}

pub(super) async fn backup(bed: &Bed, db: &str, name: &str, method: &str) -> Value {
    let backup = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": name}, "spec": {"databaseRef": {"name": db}, "method": method},
    });
    create(bed, "databasebackup", backup).await;
    succeeded(bed, name).await
}

pub(super) async fn succeeded(bed: &Bed, name: &str) -> Value {
    eventually(&format!("the backup {name} is over"), || async {
        let object = bed.dynamic("databasebackup").get_opt(name).await.unwrap()?;
        let status = object.data.get("status")?.clone();
        assert_ne!(status["phase"], "Failed", "{status}");
        (status["phase"] == "Succeeded").then_some(status)
    })
    .await
}

pub(super) fn restored_from(backup: &str) -> Value {
    json!({"bootstrap": {"recovery": {"backupRef": {"name": backup}}}})
}

async fn rows_survive_the_loss_of_the_database_and_its_volume(bed: Bed) {
    let lossy = json!({"deletionPolicy": "BackupThenDelete", "backup": {"schedule": "* * * * *"}});
    create(&bed, "database", database("db", lossy)).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    let files = backup(&bed, "db", "files", "Physical").await;
    assert!(files["sizeKiB"].as_i64().unwrap() > 1000, "{files}");
    eventually("the schedule has been kept", || async {
        let job = bed.api::<CronJob>().get("db-backup").await.unwrap();
        job.status?.last_successful_time.map(|_| ())
    })
    .await;
    condition(&bed, "db", "BackupHealthy", "True", "BackupSucceeded").await;
    // After the backups of above: only the last one, which the deletion takes, has it.
    sql(&bed, "db", "INSERT INTO t VALUES (1)").await;

    let claims = bed.api::<PersistentVolumeClaim>();
    let volume = claims.get("data-db-0").await.unwrap().spec.unwrap().volume_name.unwrap();
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the Database and its volume are gone", || async {
        let gone = bed.dynamic("database").get_opt("db").await.unwrap().is_none()
            && claims.get_opt("data-db-0").await.unwrap().is_none()
            && Api::<PersistentVolume>::all(bed.client.clone()).get_opt(&volume).await.unwrap().is_none();
        gone.then_some(())
    })
    .await;

    create(&bed, "database", database("early", restored_from("files"))).await;
    let all = bed.dynamic("databasebackup").list(&ListParams::default()).await.unwrap().items;
    let last = all.iter().map(ResourceExt::name_any).find(|name| name.starts_with("db-final-")).unwrap();
    create(&bed, "database", database("late", restored_from(&last))).await;
    settled(&bed, "early").await;
    assert_eq!(sql(&bed, "early", ROWS).await, rows);
    settled(&bed, "late").await;
    assert_eq!(sql(&bed, "late", ROWS).await, "10001:50005001");
}

async fn rows_survive_kill_9_and_growth(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    kill_9(&bed, &before).await;
    eventually("the server was started again", || async {
        let pod = bed.api::<Pod>().get("db-0").await.unwrap();
        let status = pod.status?.container_statuses?.into_iter().find(|it| it.name == "postgresql")?;
        (status.restart_count == 1 && status.ready).then_some(())
    })
    .await;
    settled(&bed, "db").await;
    assert_eq!(sql(&bed, "db", ROWS).await, rows);

    merge(&bed, "db", json!({"spec": {"storage": {"size": "2Gi"}}})).await;
    eventually("the volume has grown", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        (status["storageSize"] == "2Gi" && status["resizingTo"].is_null()).then_some(())
    })
    .await;
    settled(&bed, "db").await;
    let after = bed.api::<Pod>().get("db-0").await.unwrap();
    assert_eq!(after.uid(), before.uid(), "the server went on running");
    assert_eq!(sql(&bed, "db", ROWS).await, rows);
}

/// Kills the first process of the server from outside its container, as the kernel would.
async fn kill_9(bed: &Bed, pod: &Pod) {
    let all = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref()).unwrap();
    let status = all.iter().find(|status| status.name == "postgresql").unwrap();
    let id = status.container_id.as_ref().unwrap().rsplit('/').next().unwrap();
    let script = "for process in $(ls /proc | grep -E '^[0-9]+$' | sort -n); do \
                  grep -q \"$ID\" /proc/$process/cgroup 2>/dev/null && kill -9 $process && exit 0; done; exit 1";
    let killer = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "killer"},
        "spec": {
            "hostPID": true, "restartPolicy": "Never",
            "containers": [{
                "name": "killer", "image": "busybox:1.37", "imagePullPolicy": "IfNotPresent",
                "command": ["sh", "-c", script],
                "env": [{"name": "ID", "value": id}],
                "securityContext": {"privileged": true},
            }],
        },
    });
    bed.create::<Pod>(killer).await;
    finished(bed, "killer", "kill -9").await;
}

async fn a_dump_moves_rows_to_a_newer_version(bed: Bed) {
    create(&bed, "database", database("old", json!({"version": "13"}))).await;
    settled(&bed, "old").await;
    let rows = fill(&bed, "old").await;
    backup(&bed, "old", "files", "Physical").await;
    backup(&bed, "old", "dump", "Logical").await;
    create(
        &bed,
        "database",
        database(
            "never",
            json!({
                "version": "15", "bootstrap": {"recovery": {"backupRef": {"name": "files"}}},
            }),
        ),
    )
    .await;
    let message = condition(&bed, "never", "Progressing", "True", "WaitingForBackup").await;
    assert!(message.contains("files of version 13"), "{message}");
    create(&bed, "database", database("new", restored_from("dump"))).await;
    let status = settled(&bed, "new").await;
    assert_eq!(status["version"], "15");
    assert_eq!(sql(&bed, "new", ROWS).await, rows);
    let version = sql(&bed, "new", "SHOW server_version_num").await;
    assert!(version.starts_with("15"), "{version}");

    let files = || async {
        let list = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lister"},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "ls", "image": "busybox:1.37", "imagePullPolicy": "IfNotPresent",
                    "command": ["ls", "/backups/on-demand"],
                    "volumeMounts": [{"name": "backups", "mountPath": "/backups"}],
                }],
                "volumes": [{"name": "backups", "persistentVolumeClaim": {"claimName": "old-backups"}}],
            },
        });
        bed.create::<Pod>(list).await;
        finished(&bed, "lister", "ls").await
    };
    assert_eq!(files().await, "dump\nfiles");
    bed.dynamic("databasebackup").delete("files", &DeleteParams::default()).await.unwrap();
    eventually("the backup is gone", || async {
        bed.dynamic("databasebackup").get_opt("files").await.unwrap().is_none().then_some(())
    })
    .await;
    eventually("the lister is gone", || async {
        bed.api::<Pod>().get_opt("lister").await.unwrap().is_none().then_some(())
    })
    .await;
    assert_eq!(files().await, "dump", "and so are its files");
}

/// A StatefulSet's status says nothing about a Pod that may not be made; its events do.
async fn a_quota_that_forbids_the_server_is_told(bed: Bed) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}},
    });
    bed.create::<ResourceQuota>(quota).await;
    let quotas = bed.api::<ResourceQuota>();
    eventually("the quota is kept", || async { quotas.get("none").await.unwrap().status?.hard.map(|_| ()) })
        .await;
    create(&bed, "database", database("db", json!({}))).await;
    let message = condition(&bed, "db", "Degraded", "True", "FailedCreate").await;
    assert!(message.contains("exceeded quota"), "{message}");
    let more = Patch::Merge(json!({"spec": {"hard": {"pods": "9"}}}));
    quotas.patch("none", &PatchParams::default(), &more).await.unwrap();
    settled(&bed, "db").await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;
}

/// Deletes a Database and waits until it and its server are gone. Its volumes are kept.
async fn let_go(bed: &Bed) {
    bed.dynamic("database").delete("db", &DeleteParams::default()).await.unwrap();
    eventually("the Database and its server are gone", || async {
        let gone = bed.dynamic("database").get_opt("db").await.unwrap().is_none()
            && bed.api::<Pod>().get_opt("db-0").await.unwrap().is_none();
        gone.then_some(())
    })
    .await;
}

/// A row that was written after a backup is not in that backup; where it is seen, the data is not what was asked for.
async fn kept_data_is_never_passed_off_as_restored(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    backup(&bed, "db", "files", "Physical").await;
    backup(&bed, "db", "dump", "Logical").await;
    sql(&bed, "db", "INSERT INTO t VALUES (1)").await;
    let_go(&bed).await;

    for from in ["files", "dump"] {
        create(&bed, "database", database("db", restored_from(from))).await;
        let message = condition(&bed, "db", "Degraded", "True", "RestoreRefused").await;
        assert!(message.contains("data-db-0"), "{message}");
        condition(&bed, "db", "Ready", "False", "RestoreRefused").await;
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        assert_eq!(status["restoredFrom"], Value::Null, "{status}");
        let_go(&bed).await;
    }
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    assert_eq!(sql(&bed, "db", ROWS).await, "10001:50005001", "nobody has touched it");
    let_go(&bed).await;

    for from in ["files", "dump"] {
        create(&bed, "database", database("db", restored_from(from))).await;
        condition(&bed, "db", "Degraded", "True", "RestoreRefused").await;
        bed.api::<PersistentVolumeClaim>().delete("data-db-0", &DeleteParams::default()).await.unwrap();
        let status = settled(&bed, "db").await;
        assert_eq!(status["restoredFrom"]["directory"], format!("on-demand/{from}"));
        assert_eq!(sql(&bed, "db", ROWS).await, rows, "what the backup {from} holds, and nothing else");
        // A restart finds data that was restored, and goes on with it.
        sql(&bed, "db", "INSERT INTO t VALUES (2)").await;
        let before = bed.api::<Pod>().get("db-0").await.unwrap();
        bed.api::<Pod>().delete("db-0", &DeleteParams::default()).await.unwrap();
        eventually("another server runs", || async {
            let pod = bed.api::<Pod>().get_opt("db-0").await.unwrap()?;
            (pod.uid() != before.uid()).then_some(())
        })
        .await;
        settled(&bed, "db").await;
        assert_eq!(sql(&bed, "db", ROWS).await, "10001:50005002");
        let_go(&bed).await;
    }
}

async fn other_passwords_are_accepted_by_the_running_server(bed: Bed) {
    create(&bed, "database", database("db", json!({"parameters": {"log_statement": "all"}}))).await;
    let first = settled(&bed, "db").await["credentials"].clone();
    let rows = fill(&bed, "db").await;
    let secret = bed.api::<Secret>().get("db-credentials").await.unwrap().data.unwrap();
    let old = String::from_utf8(secret["password"].0.clone()).unwrap();
    let before = bed.api::<Pod>().get("db-0").await.unwrap();

    let odd = "it's \"new\", with `signs` $HOME \\ and a line's end\n";
    set(&bed, &[("password", odd), ("superuser-password", "another superuser")]).await;
    let second = accepted(&bed, &first).await;
    assert_eq!(sql(&bed, "db", ROWS).await, rows);
    let (phase, log) = client(&bed, "db", ROWS, Some(&old)).await;
    assert_eq!(phase, "Failed", "the old password is of no use: {log}");
    assert!(log.contains("password authentication failed"), "{log}");
    // A backup logs in as the superuser, whose password is another one too.
    backup(&bed, "db", "files", "Physical").await;

    bed.api::<Secret>().delete("db-credentials", &DeleteParams::default()).await.unwrap();
    accepted(&bed, &second).await;
    assert_eq!(sql(&bed, "db", ROWS).await, rows);

    let after = bed.api::<Pod>().get("db-0").await.unwrap();
    assert_eq!(after.uid(), before.uid(), "the server went on running");
    let statuses = after.status.unwrap().container_statuses.unwrap();
    assert!(statuses.iter().all(|status| status.restart_count == 0), "{statuses:?}");
    let server = LogParams { container: Some("postgresql".into()), ..LogParams::default() };
    let log = bed.api::<Pod>().logs("db-0", &server).await.unwrap();
    assert!(log.contains("generate_series"), "statements are logged: {log}");
    assert!(!log.contains("another superuser"), "passwords are not: {log}");
}

/// A Secret that is gone while there is no Database: the next one makes other passwords, for roles that have the old ones.
async fn a_lost_secret_locks_nobody_out_of_kept_data(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    let_go(&bed).await;
    bed.api::<Secret>().delete("db-credentials", &DeleteParams::default()).await.unwrap();
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    condition(&bed, "db", "CredentialsSynced", "True", "LoginSucceeded").await;
    assert_eq!(sql(&bed, "db", ROWS).await, rows);
}
