//! The types of `batch.tutorial.kubebuilder.io/v1`, from which the CRD is generated: `make manifests` writes it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use windlass::{
    k8s_openapi::{
        api::{batch::v1::JobTemplateSpec, core::v1::ObjectReference},
        apimachinery::pkg::apis::meta::v1::{Condition, Time},
    },
    kube::CustomResource,
};

/// What a CronJob should be.
#[derive(CustomResource, Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "batch.tutorial.kubebuilder.io",
    version = "v1",
    kind = "CronJob",
    plural = "cronjobs",
    namespaced,
    doc = "CronJob starts a Job whenever its schedule says so.",
    derive = "PartialEq",
    status = "CronJobStatus",
    printcolumn(name = "Schedule", type_ = "string", json_path = ".spec.schedule"),
    printcolumn(name = "Suspend", type_ = "boolean", json_path = ".spec.suspend"),
    printcolumn(name = "Last Schedule", type_ = "date", json_path = ".status.lastScheduleTime"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[kube(crates(
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// When Jobs start: minute, hour, day of the month, month, day of the week.
    #[schemars(length(min = 1))]
    pub schedule: String,

    /// By how many seconds a Job may start late. A run that is later is missed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,

    /// What happens when a run is due while the last one still runs.
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// Starts no more Jobs. Those that run go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,

    /// The Job of each run.
    pub job_template: JobTemplateSpec,

    /// How many Jobs that succeeded are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,

    /// How many Jobs that failed are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,
}

/// What happens when a run is due while the last one still runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ConcurrencyPolicy {
    /// Both run.
    #[default]
    Allow,
    /// The new one is left out.
    Forbid,
    /// The old one is deleted.
    Replace,
}

/// What was last seen of a CronJob.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// The generation of the spec that this status describes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,

    /// The Jobs that run.
    #[serde(default)]
    pub active: Vec<ObjectReference>,

    /// When a Job was last due and started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_schedule_time: Option<Time>,

    /// Ready: the schedule can be followed.
    #[serde(default)]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
}
