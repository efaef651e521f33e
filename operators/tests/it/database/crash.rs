//! The Database operator is killed at every write in turn: while a Database is made, grown and changed, while a backup
//! is taken and removed, while all of it is deleted. The end is always the same.

use k8s_openapi::api::{
    apps::v1::StatefulSet,
    batch::v1::{CronJob, Job},
    core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service},
};
use kube::{
    ResourceExt,
    api::{DeleteParams, DynamicObject, ListParams},
};
use serde_json::{Value, json};

use super::{create, database, merge, operator, settled};
use crate::{
    bed::{Bed, eventually, until_empty},
    crash::{Story, gone, objects, survives_a_crash_at_every_write},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_survives_a_crash_at_every_write() {
    survives_a_crash_at_every_write(Life, operator).await;
}

#[derive(Clone, Copy)]
struct Life;

impl Story for Life {
    fn stages(&self) -> usize {
        5
    }

    async fn act(&self, bed: &Bed, stage: usize) {
        let delete = |kind: &'static str, name: &'static str| async move {
            bed.dynamic(kind).delete(name, &DeleteParams::default()).await.unwrap();
        };
        match stage {
            0 => drop(create(bed, "database", database("db", json!({"deletionPolicy": "Delete"}))).await),
            1 => {
                let change = json!({"storage": {"size": "2Gi"}, "parameters": {"work_mem": "8MB"}});
                merge(bed, "db", json!({"spec": change})).await;
            }
            2 => {
                let backup = json!({
                    "apiVersion": "database.example.com/v1", "kind": "DatabaseBackup",
                    "metadata": {"name": "now"}, "spec": {"databaseRef": {"name": "db"}},
                });
                create(bed, "databasebackup", backup).await;
            }
            3 => delete("databasebackup", "now").await,
            _ => {
                // A life that was cut short comes here with its backup.
                if bed.dynamic("databasebackup").get_opt("now").await.unwrap().is_some() {
                    delete("databasebackup", "now").await;
                }
                delete("database", "db").await;
            }
        }
    }

    async fn done(&self, bed: &Bed, stage: usize) {
        match stage {
            0 => drop(settled(bed, "db").await),
            1 => grown(bed).await,
            2 => backed_up(bed).await,
            3 => {
                eventually("the backup and its Jobs are gone", || async {
                    let left = bed.dynamic("databasebackup").get_opt("now").await.unwrap();
                    (left.is_none() && bed.count::<Job>().await == 0 && bed.count::<Pod>().await == 1)
                        .then_some(())
                })
                .await;
            }
            _ => {
                gone(bed, "database", "db").await;
                until_empty("nothing is left", || self.standing(bed)).await;
            }
        }
    }

    async fn standing(&self, bed: &Bed) -> Vec<String> {
        let mut found = objects::<StatefulSet>(bed).await;
        found.extend(objects::<Service>(bed).await);
        found.extend(objects::<ConfigMap>(bed).await);
        found.extend(objects::<CronJob>(bed).await);
        let names = ListParams::default();
        for claim in bed.api::<PersistentVolumeClaim>().list(&names).await.unwrap().items {
            let size = claim.spec.as_ref().and_then(|spec| spec.resources.as_ref()?.requests.clone());
            found.push(format!("PersistentVolumeClaim {} {size:?}", claim.name_any()));
        }
        for secret in bed.api::<Secret>().list(&names).await.unwrap().items {
            found.push(format!("Secret {}", secret.name_any()));
        }
        for job in bed.api::<Job>().list(&names).await.unwrap().items {
            found.push(format!("Job {}", job.name_any()));
        }
        let mut pods: Vec<String> = bed.pod_names().await;
        pods.retain(|name| name == "db-0");
        found.extend(pods);
        for kind in ["database", "databasebackup"] {
            let all = bed.dynamic(kind).list(&names).await.unwrap().items;
            found.extend(all.iter().map(told));
        }
        found
    }
}

/// What an object tells of itself, without times.
fn told(object: &DynamicObject) -> String {
    let status = &object.data["status"];
    let reasons = status["conditions"].as_array().map(|all| {
        all.iter().map(|it| format!("{}={}/{}", it["type"], it["status"], it["reason"])).collect::<Vec<_>>()
    });
    let facts: Vec<&Value> =
        ["phase", "location", "version", "storageSize", "resizingTo", "initialized", "services"]
            .map(|field| &status[field])
            .into();
    format!("{} {:?} {facts:?} {reasons:?}", object.name_any(), object.finalizers())
}

/// The volume has grown, the StatefulSet knows, and the server runs with the other setting.
async fn grown(bed: &Bed) {
    eventually("the volume has grown and the server was restarted", || async {
        let status = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        let set = bed.api::<StatefulSet>().get_opt("db").await.unwrap()?;
        let template = set.spec.volume_claim_templates.as_ref()?.first()?.spec.clone()?;
        let size = template.resources?.requests?.get("storage")?.0.clone();
        let pod = bed.api::<Pod>().get_opt("db-0").await.unwrap()?;
        let revision = set.status.as_ref()?.update_revision.clone()?;
        let current = pod.labels().get("controller-revision-hash") == Some(&revision);
        let claim = bed.api::<PersistentVolumeClaim>().get("data-db-0").await.unwrap();
        let capacity = claim.status?.capacity?.get("storage")?.0.clone();
        let done = [size.as_str(), &capacity, status["storageSize"].as_str()?] == ["2Gi"; 3];
        (done && current && status["resizingTo"].is_null()).then_some(())
    })
    .await;
    settled(bed, "db").await;
}

async fn backed_up(bed: &Bed) {
    eventually("the backup is there and the Database knows", || async {
        let status = bed.dynamic("databasebackup").get("now").await.unwrap().data.get("status")?.clone();
        let db = bed.dynamic("database").get("db").await.unwrap().data["status"].clone();
        let known = super::condition_of(&db, "BackupHealthy")?["status"] == "True";
        (status["phase"] == "Succeeded" && known).then_some(())
    })
    .await;
    settled(bed, "db").await;
}
