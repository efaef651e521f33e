//! Credentials that change under a running server: what the operator makes of it. With real servers, and real logins, it
//! is in [`super::postgres`].

use k8s_openapi::{
    ByteString,
    api::{
        batch::v1::Job,
        core::v1::{Pod, ResourceQuota, Secret},
    },
};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams},
};
use serde_json::{Value, json};

use super::{condition, create, database, operator, settled};
use crate::bed::{Bed, Ground, eventually, run};

macro_rules! cases {
    ($($case:ident)+) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::run(super::Ground::Embedded, super::operator, super::$case).await;
            })+
        }
    };
}

cases! {
    an_edited_secret_is_followed_without_a_restart
    a_secret_that_was_deleted_or_made_by_hand_is_followed
    credentials_that_are_not_accepted_are_told
}

/// A quota under which the server runs and no Job can.
async fn no_more_pods(bed: &Bed) {
    let quota = json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "one"}, "spec": {"hard": {"pods": "1"}},
    });
    // The Pod of an earlier Job may still count.
    eventually("only the server is left", || async { (bed.count::<Pod>().await == 1).then_some(()) }).await;
    bed.create::<ResourceQuota>(quota).await;
    eventually("the quota is kept", || async {
        bed.api::<ResourceQuota>().get("one").await.unwrap().status?.hard.map(|_| ())
    })
    .await;
}

pub(super) async fn set(bed: &Bed, entries: &[(&str, &str)]) {
    let data: Value = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(ByteString(value.as_bytes().to_vec()))))
        .collect();
    let patch = Patch::Merge(json!({"data": data}));
    bed.api::<Secret>().patch("db-credentials", &PatchParams::default(), &patch).await.unwrap();
}

async fn entry(bed: &Bed, key: &str) -> String {
    let secret = bed.api::<Secret>().get("db-credentials").await.unwrap();
    String::from_utf8(secret.data.unwrap()[key].0.clone()).unwrap()
}

/// Waits until other credentials than these have been seen to work, and tells which.
pub(super) async fn accepted(bed: &Bed, before: &Value) -> Value {
    eventually("the server accepts other credentials", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data.get("status")?.clone();
        let synced = super::condition_of(&status, "CredentialsSynced")?["status"] == "True";
        let now = status["credentials"].clone();
        (synced && now.is_string() && now != *before).then_some(now)
    })
    .await
}

async fn an_edited_secret_is_followed_without_a_restart(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    let first = settled(&bed, "db").await["credentials"].clone();
    condition(&bed, "db", "CredentialsSynced", "True", "LoginSucceeded").await;
    let before = bed.api::<Pod>().get("db-0").await.unwrap();
    no_more_pods(&bed).await;
    set(&bed, &[("password", "s3cret/with:signs")]).await;

    let message = condition(&bed, "db", "CredentialsSynced", "False", "SyncingCredentials").await;
    assert!(message.contains("db-credentials"), "{message}");
    condition(&bed, "db", "Progressing", "True", "SyncingCredentials").await;
    condition(&bed, "db", "Ready", "True", "Available").await;
    eventually("the Pod is told", || async {
        let pod = bed.api::<Pod>().get("db-0").await.unwrap();
        pod.annotations().get("database.example.com/credentials").map(|_| ())
    })
    .await;
    eventually("the address has the password too", || async {
        entry(&bed, "uri").await.starts_with("postgresql://app:s3cret%2Fwith%3Asigns@db-rw.").then_some(())
    })
    .await;
    bed.api::<ResourceQuota>().delete("one", &DeleteParams::default()).await.unwrap();
    accepted(&bed, &first).await;
    bed.recorded("Database", "CredentialsSynced").await;
    settled(&bed, "db").await;
    assert_eq!(bed.count::<Job>().await, 0, "the Job is tidied up");
    let after = bed.api::<Pod>().get("db-0").await.unwrap();
    assert_eq!(after.uid(), before.uid(), "the server went on running");
}

async fn a_secret_that_was_deleted_or_made_by_hand_is_followed(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    let first = settled(&bed, "db").await["credentials"].clone();
    let password = entry(&bed, "password").await;
    let secrets = bed.api::<Secret>();
    secrets.delete("db-credentials", &DeleteParams::default()).await.unwrap();
    let second = accepted(&bed, &first).await;
    assert_ne!(entry(&bed, "password").await, password);

    // One that somebody else has put in its place, without a label of ours.
    let mut own = secrets.get("db-credentials").await.unwrap().data.unwrap();
    own.insert("password".into(), ByteString(b"by hand".to_vec()));
    own.remove("uri");
    let own =
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db-credentials"}, "data": own});
    eventually("the Secret was replaced before another one was made", || async {
        let _ = secrets.delete("db-credentials", &DeleteParams::default()).await;
        let own: Secret = serde_json::from_value(own.clone()).unwrap();
        secrets.create(&kube::api::PostParams::default(), &own).await.ok()
    })
    .await;
    accepted(&bed, &second).await;
    assert_eq!(entry(&bed, "password").await, "by hand");
    let left = secrets.get("db-credentials").await.unwrap();
    assert!(!left.data.unwrap().contains_key("uri"), "a Secret of somebody else is not written to");
}

async fn credentials_that_are_not_accepted_are_told(bed: Bed) {
    create(&bed, "database", database("db", json!({}))).await;
    let first = settled(&bed, "db").await["credentials"].clone();
    let password = entry(&bed, "password").await;
    set(&bed, &[("password", "")]).await;
    let message = condition(&bed, "db", "Degraded", "True", "CredentialsIncomplete").await;
    assert!(message.contains("has no password"), "{message}");
    condition(&bed, "db", "CredentialsSynced", "False", "CredentialsIncomplete").await;
    condition(&bed, "db", "Ready", "True", "Available").await;
    set(&bed, &[("password", &password)]).await;
    settled(&bed, "db").await;
    condition(&bed, "db", "Degraded", "False", "AsExpected").await;

    no_more_pods(&bed).await;
    set(&bed, &[("username", "nobody")]).await;
    let jobs = bed.api::<Job>();
    // The Job's controller has the first word; after it there is nothing more to say without a Pod.
    let name = eventually("a login is tried", || async {
        let all = jobs.list(&ListParams::default()).await.unwrap().items;
        let begun = |job: &&Job| job.status.as_ref().is_some_and(|status| status.start_time.is_some());
        all.iter().filter(begun).map(ResourceExt::name_any).find(|name| name.starts_with("db-login-"))
    })
    .await;
    let failed = |type_: &str| {
        json!({
            "type": type_, "status": "True", "reason": "BackoffLimitExceeded",
            "message": "Job has reached the specified backoff limit", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let said = json!({"status": {"failed": 4, "conditions": [failed("FailureTarget"), failed("Failed")]}});
    jobs.patch_status(&name, &PatchParams::default(), &Patch::Merge(&said)).await.unwrap();
    let message = condition(&bed, "db", "Degraded", "True", "LoginFailed").await;
    assert!(message.contains("db-credentials") && message.contains(&name), "{message}");
    condition(&bed, "db", "CredentialsSynced", "False", "LoginFailed").await;
    bed.recorded("Database", "LoginFailed").await;
    let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
    assert_eq!(
        super::condition_of(&status, "BackupHealthy").unwrap()["reason"],
        "NoBackup",
        "a login is no backup"
    );
    assert_eq!(status["credentials"], first, "what is not accepted is not recorded");

    // To take it back is enough.
    set(&bed, &[("username", "app")]).await;
    settled(&bed, "db").await;
    condition(&bed, "db", "CredentialsSynced", "True", "LoginSucceeded").await;
}
