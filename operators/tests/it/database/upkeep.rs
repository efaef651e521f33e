//! Database with real PostgreSQL servers, day by day: schedules, parameters, dumps with roles, memory, failures.
//!
//! These need the node, the storage and the images of the testbed: `cargo xtask kubernetes load-software`.

use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt;
use serde_json::json;

use super::{
    backups::due,
    condition, create, database, merge, operator,
    postgres::{ROWS, as_user, backup, fill, restored_from, sql, succeeded},
    settled,
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
    rows_come_back_from_a_scheduled_backup
    a_misspelt_parameter_leaves_the_server_running
    a_dump_brings_roles_grants_and_extensions
    the_memory_limit_sets_the_servers_memory
    a_failed_backup_says_what_the_server_said
}

async fn rows_come_back_from_a_scheduled_backup(bed: Bed) {
    let one = json!({"backup": {"schedule": "@yearly", "retention": {"count": 1}}});
    create(&bed, "database", database("db", one)).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    due(&bed, "db-backup-1").await;
    succeeded(&bed, "db-backup-1").await;
    sql(&bed, "db", "INSERT INTO t VALUES (1)").await;
    create(&bed, "database", database("copy", restored_from("db-backup-1"))).await;
    settled(&bed, "copy").await;
    assert_eq!(sql(&bed, "copy", ROWS).await, rows);
    due(&bed, "db-backup-2").await;
    let files = succeeded(&bed, "db-backup-2").await;
    assert!(files["sizeKiB"].as_i64().unwrap() > 1000, "{files}");
    eventually("the first one is no longer kept", || async {
        bed.dynamic("databasebackup").get_opt("db-backup-1").await.unwrap().is_none().then_some(())
    })
    .await;
}

async fn a_misspelt_parameter_leaves_the_server_running(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    for (wrong, why) in [
        (json!({"work_memo": "8MB"}), "unrecognized configuration parameter"),
        (json!({"work_memo": null, "work_mem": "lots"}), "invalid value for parameter"),
        (json!({"work_mem": null, "shared_preload_libraries": "nosuch"}), "could not access file"),
    ] {
        merge(&bed, "db", json!({"spec": {"parameters": wrong}})).await;
        let message = eventually(&format!("it is told: {why}"), || async {
            let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
            let found = super::condition_of(&status, "Degraded")?;
            let message = found["message"].as_str()?.to_owned();
            (found["reason"] == "ParametersRefused" && message.contains(why)).then_some(message)
        })
        .await;
        assert!(message.contains("goes on with those that it has"), "{message}");
        assert_eq!(sql(&bed, "db", ROWS).await, rows);
    }
    assert_eq!(bed.api::<Pod>().get("db-0").await.unwrap().uid(), before.uid(), "the server went on running");
    merge(&bed, "db", json!({"spec": {"parameters": {"shared_preload_libraries": null, "work_mem": "8MB"}}}))
        .await;
    settled(&bed, "db").await;
    assert_eq!(sql(&bed, "db", "SHOW work_mem").await, "8MB");
}

async fn a_dump_brings_roles_grants_and_extensions(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    let rows = fill(&bed, "db").await;
    let exec = "CREATE ROLE reader; CREATE EXTENSION pg_stat_statements; CREATE EXTENSION hstore";
    superuser(&bed, "db", exec).await;
    sql(&bed, "db", "GRANT SELECT ON t TO reader").await;
    backup(&bed, "db", "dump", "Logical").await;
    create(&bed, "database", database("copy", restored_from("dump"))).await;
    settled(&bed, "copy").await;
    assert_eq!(sql(&bed, "copy", ROWS).await, rows);
    let granted = "SELECT has_table_privilege('reader', 't', 'SELECT')";
    assert_eq!(sql(&bed, "copy", granted).await, "t");
    let extensions = "SELECT string_agg(extname, ' ' ORDER BY extname) FROM pg_extension";
    assert_eq!(sql(&bed, "copy", extensions).await, "hstore pg_stat_statements plpgsql");
    let owner = "SELECT tableowner FROM pg_tables WHERE tablename = 't'";
    assert_eq!(sql(&bed, "copy", owner).await, "app");
}

async fn the_memory_limit_sets_the_servers_memory(bed: Bed) {
    let pod = json!({"imagePullPolicy": "IfNotPresent", "resources": {"limits": {"memory": "512Mi"}}});
    create(&bed, "database", database("db", json!({"pod": pod}))).await;
    settled(&bed, "db").await;
    assert_eq!(sql(&bed, "db", "SHOW shared_buffers").await, "128MB");
    assert_eq!(sql(&bed, "db", "SHOW effective_cache_size").await, "384MB");
    assert_eq!(sql(&bed, "db", "SHOW dynamic_shared_memory_type").await, "posix", "as initdb found");
    backup(&bed, "db", "files", "Physical").await;
}

async fn a_failed_backup_says_what_the_server_said(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    settled(&bed, "db").await;
    superuser(&bed, "db", "ALTER DATABASE app RENAME TO other").await;
    let dump = json!({
        "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
        "metadata": {"name": "dump"}, "spec": {"databaseRef": {"name": "db"}, "method": "Logical"},
    });
    create(&bed, "databasebackup", dump).await;
    let mut error = String::new();
    // Kubernetes tries four times, and waits longer each time.
    for _ in 0..3 {
        let end = tokio::time::timeout(std::time::Duration::from_secs(80), async {
            loop {
                let object = bed.dynamic("databasebackup").get("dump").await.unwrap();
                if let Some(said) = object.data.get("status").and_then(|status| status["error"].as_str()) {
                    return said.to_owned();
                }
                tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            }
        });
        if let Ok(said) = end.await {
            error = said;
            break;
        }
    }
    assert!(error.contains("database \"app\" does not exist"), "{error}");
    let told = condition(&bed, "db", "BackupHealthy", "False", "BackupFailed").await;
    assert_eq!(told, error);
}

/// Runs SQL as the superuser.
async fn superuser(bed: &Bed, db: &str, statement: &str) {
    let secret = bed.api::<Secret>().get(&format!("{db}-credentials")).await.unwrap().data.unwrap();
    let password = String::from_utf8(secret["superuser-password"].0.clone()).unwrap();
    let (phase, log) = as_user(bed, db, statement, Some(&password), Some("postgres")).await;
    assert_eq!(phase, "Succeeded", "{statement}: {log}");
}
