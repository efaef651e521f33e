//! The types of `batch.tutorial.kubebuilder.io/v1`, kind `CronJob`.
//!
//! What the definition says and these types do not:
//!
//! - `status`: the derive lets it be null.

#![allow(
    clippy::doc_lazy_continuation,
    rustdoc::bare_urls,
    rustdoc::broken_intra_doc_links,
    reason = "the descriptions are the definition's"
)]

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use windlass::k8s_openapi::api::batch::v1::JobTemplateSpec;
use windlass::k8s_openapi::api::core::v1::ObjectReference;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use windlass::kube::CustomResource;

/// spec defines the desired state of CronJob
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(group = "batch.tutorial.kubebuilder.io", version = "v1", kind = "CronJob")]
#[kube(plural = "cronjobs", singular = "cronjob", namespaced)]
#[kube(status = "CronJobStatus")]
#[kube(derive = "PartialEq", derive = "Default")]
#[kube(doc = "CronJob is the Schema for the cronjobs API")]
#[kube(crates(
    kube_core = "windlass::kube::core",
    k8s_openapi = "windlass::k8s_openapi",
    serde_json = "windlass::serde_json"
))]
#[serde(rename_all = "camelCase")]
pub struct CronJobSpec {
    /// concurrencyPolicy specifies how to treat concurrent executions of a Job.
    /// Valid values are:
    /// - "Allow" (default): allows CronJobs to run concurrently;
    /// - "Forbid": forbids concurrent runs, skipping next run if previous run hasn't finished yet;
    /// - "Replace": cancels currently running job and replaces it with a new one
    #[serde(default)]
    pub concurrency_policy: ConcurrencyPolicy,

    /// failedJobsHistoryLimit defines the number of failed finished jobs to retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub failed_jobs_history_limit: Option<i32>,

    /// jobTemplate defines the job that will be created when executing a CronJob.
    #[schemars(schema_with = "job_template_schema")]
    pub job_template: JobTemplateSpec,

    /// schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
    #[schemars(length(min = 0))]
    pub schedule: String,

    /// startingDeadlineSeconds defines in seconds for starting the job if it misses scheduled
    /// time for any reason. Missed jobs executions will be counted as failed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i64", range(min = 0))]
    pub starting_deadline_seconds: Option<i64>,

    /// successfulJobsHistoryLimit defines the number of successful finished jobs to retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "i32", range(min = 0))]
    pub successful_jobs_history_limit: Option<i32>,

    /// suspend tells the controller to suspend subsequent executions, it does
    /// not apply to already started executions. Defaults to false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "bool")]
    pub suspend: Option<bool>,
}

/// concurrencyPolicy specifies how to treat concurrent executions of a Job.
/// Valid values are:
/// - "Allow" (default): allows CronJobs to run concurrently;
/// - "Forbid": forbids concurrent runs, skipping next run if previous run hasn't finished yet;
/// - "Replace": cancels currently running job and replaces it with a new one
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ConcurrencyPolicy {
    #[default]
    Allow,
    Forbid,
    Replace,
}

/// status defines the observed state of CronJob
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CronJobStatus {
    /// active defines a list of pointers to currently running jobs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "active_schema")]
    pub active: Vec<ObjectReference>,

    /// conditions represent the current state of the CronJob resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Vec<Condition>,

    /// lastScheduleTime defines when was the last time the job was successfully scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Time")]
    pub last_schedule_time: Option<Time>,
}

/// The schema of `status.active`, as the definition has it.
fn active_schema(_: &mut SchemaGenerator) -> Schema {
    windlass::serde_json::from_str(ACTIVE_SCHEMA).expect("the schema must be JSON")
}

/// The schema of `status.conditions`, as the definition has it.
fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    windlass::serde_json::from_str(CONDITIONS_SCHEMA).expect("the schema must be JSON")
}

/// The schema of `spec.jobTemplate`, as the definition has it.
fn job_template_schema(_: &mut SchemaGenerator) -> Schema {
    windlass::serde_json::from_str(JOB_TEMPLATE_SCHEMA).expect("the schema must be JSON")
}

const ACTIVE_SCHEMA: &str = r#"
{"items":{"properties":{"apiVersion":{"type":"string"},"fieldPath":{"type":"string"},"kind":{"type":"string"},
"name":{"type":"string"},"namespace":{"type":"string"},"resourceVersion":{"type":"string"},"uid":{
"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},"maxItems":10,"minItems":1,"type":"array",
"x-kubernetes-list-type":"atomic"}
"#;

const CONDITIONS_SCHEMA: &str = r#"
{"items":{
"description":"Condition contains details for one aspect of the current state of this API Resource.",
"properties":{"lastTransitionTime":{"format":"date-time","type":"string"},"message":{"maxLength":32768,
"type":"string"},"observedGeneration":{"format":"int64","minimum":0,"type":"integer"},"reason":{
"maxLength":1024,"minLength":1,"pattern":"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$","type":"string"},
"status":{"enum":["True","False","Unknown"],"type":"string"},"type":{"maxLength":316,
"pattern":"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
"type":"string"}},"required":["lastTransitionTime","message","reason","status","type"],"type":"object"},
"type":"array","x-kubernetes-list-map-keys":["type"],"x-kubernetes-list-type":"map"}
"#;

const JOB_TEMPLATE_SCHEMA: &str = r#"
{"properties":{"metadata":{"type":"object"},"spec":{"properties":{"activeDeadlineSeconds":{"format":"int64",
"type":"integer"},"backoffLimit":{"format":"int32","type":"integer"},"backoffLimitPerIndex":{"format":"int32",
"type":"integer"},"completionMode":{"enum":["Indexed","NonIndexed"],"type":"string"},"completions":{
"format":"int32","type":"integer"},"managedBy":{"type":"string"},"manualSelector":{"type":"boolean"},
"maxFailedIndexes":{"format":"int32","type":"integer"},"parallelism":{"format":"int32","type":"integer"},
"podFailurePolicy":{"properties":{"rules":{"items":{"properties":{"action":{
"enum":["Count","FailIndex","FailJob","Ignore"],"type":"string"},"onExitCodes":{"properties":{
"containerName":{"type":"string"},"operator":{"enum":["In","NotIn"],"type":"string"},"values":{"items":{
"format":"int32","type":"integer"},"type":"array","x-kubernetes-list-type":"set"}},
"required":["operator","values"],"type":"object"},"onPodConditions":{"items":{"properties":{"status":{
"type":"string"},"type":{"type":"string"}},"required":["type"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"required":["action"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"required":["rules"],"type":"object"},"podReplacementPolicy":{
"enum":["Failed","TerminatingOrFailed"],"type":"string"},"scheduling":{"properties":{"disruptionMode":{
"properties":{"all":{"type":"object"},"single":{"type":"object"}},"type":"object"},"resourceClaims":{"items":{
"properties":{"name":{"type":"string"},"resourceClaimName":{"type":"string"},"resourceClaimTemplateName":{
"type":"string"}},"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"schedulingConstraints":{"properties":{"topology":{"items":{"properties":{
"key":{"type":"string"}},"required":["key"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}
},"type":"object"},"schedulingPolicy":{"properties":{"basic":{"type":"object"},"gang":{"properties":{
"minCount":{"format":"int32","type":"integer"}},"type":"object"}},"type":"object"}},"type":"object"},
"selector":{"properties":{"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{
"type":"string"},"values":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},
"required":["key","operator"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"matchLabels":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object",
"x-kubernetes-map-type":"atomic"},"successPolicy":{"properties":{"rules":{"items":{"properties":{
"succeededCount":{"format":"int32","type":"integer"},"succeededIndexes":{"type":"string"}},"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"}},"required":["rules"],"type":"object"},"suspend":{
"type":"boolean"},"template":{"properties":{"metadata":{"type":"object"},"spec":{"properties":{
"activeDeadlineSeconds":{"format":"int64","type":"integer"},"affinity":{"properties":{"nodeAffinity":{
"properties":{"preferredDuringSchedulingIgnoredDuringExecution":{"items":{"properties":{"preference":{
"properties":{"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{
"enum":["DoesNotExist","Exists","Gt","In","Lt","NotIn"],"type":"string"},"values":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"},"matchFields":{"items":{"properties":{"key":{"type":"string"
},"operator":{"enum":["DoesNotExist","Exists","Gt","In","Lt","NotIn"],"type":"string"},"values":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object",
"x-kubernetes-map-type":"atomic"},"weight":{"format":"int32","type":"integer"}},
"required":["weight","preference"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"requiredDuringSchedulingIgnoredDuringExecution":{"properties":{"nodeSelectorTerms":{"items":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{
"enum":["DoesNotExist","Exists","Gt","In","Lt","NotIn"],"type":"string"},"values":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"},"matchFields":{"items":{"properties":{"key":{"type":"string"
},"operator":{"enum":["DoesNotExist","Exists","Gt","In","Lt","NotIn"],"type":"string"},"values":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object",
"x-kubernetes-map-type":"atomic"},"type":"array","x-kubernetes-list-type":"atomic"}},
"required":["nodeSelectorTerms"],"type":"object","x-kubernetes-map-type":"atomic"}},"type":"object"},
"podAffinity":{"properties":{"preferredDuringSchedulingIgnoredDuringExecution":{"items":{"properties":{
"podAffinityTerm":{"properties":{"labelSelector":{"properties":{"matchExpressions":{"items":{"properties":{
"key":{"type":"string"},"operator":{"type":"string"},"values":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},"type":"object"}},
"type":"object","x-kubernetes-map-type":"atomic"},"matchLabelKeys":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"mismatchLabelKeys":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"namespaceSelector":{"properties":{"matchExpressions":{"items":{
"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},
"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"namespaces":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"topologyKey":{"type":"string"}},"required":["topologyKey"],
"type":"object"},"weight":{"format":"int32","type":"integer"}},"required":["weight","podAffinityTerm"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"requiredDuringSchedulingIgnoredDuringExecution":{"items":{"properties":{"labelSelector":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{
"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"matchLabelKeys":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"mismatchLabelKeys":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"namespaceSelector":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{
"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"namespaces":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"topologyKey":{"type":"string"}},
"required":["topologyKey"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"
},"podAntiAffinity":{"properties":{"preferredDuringSchedulingIgnoredDuringExecution":{"items":{"properties":{
"podAffinityTerm":{"properties":{"labelSelector":{"properties":{"matchExpressions":{"items":{"properties":{
"key":{"type":"string"},"operator":{"type":"string"},"values":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},"type":"object"}},
"type":"object","x-kubernetes-map-type":"atomic"},"matchLabelKeys":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"mismatchLabelKeys":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"namespaceSelector":{"properties":{"matchExpressions":{"items":{
"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},
"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"namespaces":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"topologyKey":{"type":"string"}},"required":["topologyKey"],
"type":"object"},"weight":{"format":"int32","type":"integer"}},"required":["weight","podAffinityTerm"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"requiredDuringSchedulingIgnoredDuringExecution":{"items":{"properties":{"labelSelector":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{
"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"matchLabelKeys":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"mismatchLabelKeys":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"namespaceSelector":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{
"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"namespaces":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"topologyKey":{"type":"string"}},
"required":["topologyKey"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"
}},"type":"object"},"automountServiceAccountToken":{"type":"boolean"},"containers":{"items":{"properties":{
"args":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"command":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"env":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"},"valueFrom":{"properties":{"configMapKeyRef":{"properties":{"key":{
"type":"string"},"name":{"type":"string"},"optional":{"type":"boolean"}},"required":["key"],"type":"object",
"x-kubernetes-map-type":"atomic"},"fieldRef":{"properties":{"apiVersion":{"type":"string"},"fieldPath":{
"type":"string"}},"required":["fieldPath"],"type":"object","x-kubernetes-map-type":"atomic"},"fileKeyRef":{
"properties":{"key":{"type":"string"},"optional":{"type":"boolean"},"path":{"type":"string"},"volumeName":{
"type":"string"}},"required":["volumeName","path","key"],"type":"object","x-kubernetes-map-type":"atomic"},
"resourceFieldRef":{"properties":{"containerName":{"type":"string"},"divisor":{"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"resource":{"type":"string"}},"required":["resource"],"type":"object",
"x-kubernetes-map-type":"atomic"},"secretKeyRef":{"properties":{"key":{"type":"string"},"name":{
"type":"string"},"optional":{"type":"boolean"}},"required":["key"],"type":"object",
"x-kubernetes-map-type":"atomic"}},"type":"object"}},"required":["name"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},"envFrom":{"items":{"properties":{
"configMapRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},"type":"object"},
"prefix":{"type":"string"},"secretRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},
"type":"object"}},"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"image":{"type":"string"
},"imagePullPolicy":{"enum":["Always","IfNotPresent","Never"],"type":"string"},"lifecycle":{"properties":{
"postStart":{"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},"required":["seconds"],"type":"object"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"}},"type":"object"},"preStop":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},
"required":["seconds"],"type":"object"},"tcpSocket":{"properties":{"host":{"type":"string"},"port":{
"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"}},"type":"object"},"stopSignal":{
"enum":["SIGABRT","SIGALRM","SIGBUS","SIGCHLD","SIGCLD","SIGCONT","SIGFPE","SIGHUP","SIGILL","SIGINT","SIGIO","SIGIOT","SIGKILL","SIGPIPE","SIGPOLL","SIGPROF","SIGPWR","SIGQUIT","SIGRTMAX","SIGRTMAX-1","SIGRTMAX-10","SIGRTMAX-11","SIGRTMAX-12","SIGRTMAX-13","SIGRTMAX-14","SIGRTMAX-2","SIGRTMAX-3","SIGRTMAX-4","SIGRTMAX-5","SIGRTMAX-6","SIGRTMAX-7","SIGRTMAX-8","SIGRTMAX-9","SIGRTMIN","SIGRTMIN+1","SIGRTMIN+10","SIGRTMIN+11","SIGRTMIN+12","SIGRTMIN+13","SIGRTMIN+14","SIGRTMIN+15","SIGRTMIN+2","SIGRTMIN+3","SIGRTMIN+4","SIGRTMIN+5","SIGRTMIN+6","SIGRTMIN+7","SIGRTMIN+8","SIGRTMIN+9","SIGSEGV","SIGSTKFLT","SIGSTOP","SIGSYS","SIGTERM","SIGTRAP","SIGTSTP","SIGTTIN","SIGTTOU","SIGURG","SIGUSR1","SIGUSR2","SIGVTALRM","SIGWINCH","SIGXCPU","SIGXFSZ"],
"type":"string"}},"type":"object"},"livenessProbe":{"properties":{"exec":{"properties":{"command":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{
"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},
"port":{"format":"int32","type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"name":{"type":"string"},"ports":{
"items":{"properties":{"containerPort":{"format":"int32","type":"integer"},"hostIP":{"type":"string"},
"hostPort":{"format":"int32","type":"integer"},"name":{"type":"string"},"protocol":{"default":"TCP",
"enum":["SCTP","TCP","UDP"],"type":"string"}},"required":["containerPort"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["containerPort","protocol"],"x-kubernetes-list-type":"map"},"readinessProbe":{
"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{"format":"int32","type":"integer"},
"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32",
"type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{
"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{
"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"resizePolicy":{"items":{"properties":{
"resourceName":{"type":"string"},"restartPolicy":{"type":"string"}},
"required":["resourceName","restartPolicy"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"resources":{"properties":{"claims":{"items":{"properties":{"name":{"type":"string"},"request":{
"type":"string"}},"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"limits":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"},"restartPolicy":{"type":"string"},
"restartPolicyRules":{"items":{"properties":{"action":{"type":"string"},"exitCodes":{"properties":{
"operator":{"type":"string"},"values":{"items":{"format":"int32","type":"integer"},"type":"array",
"x-kubernetes-list-type":"set"}},"required":["operator"],"type":"object"}},"required":["action"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"securityContext":{"properties":{
"allowPrivilegeEscalation":{"type":"boolean"},"appArmorProfile":{"properties":{"localhostProfile":{
"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],"type":"string"}},
"required":["type"],"type":"object"},"capabilities":{"properties":{"add":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"drop":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"privileged":{"type":"boolean"},"procMount":{
"enum":["Default","Unmasked"],"type":"string"},"readOnlyRootFilesystem":{"type":"boolean"},"runAsGroup":{
"format":"int64","type":"integer"},"runAsNonRoot":{"type":"boolean"},"runAsUser":{"format":"int64",
"type":"integer"},"seLinuxOptions":{"properties":{"level":{"type":"string"},"role":{"type":"string"},"type":{
"type":"string"},"user":{"type":"string"}},"type":"object"},"seccompProfile":{"properties":{
"localhostProfile":{"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],
"type":"string"}},"required":["type"],"type":"object"},"windowsOptions":{"properties":{"gmsaCredentialSpec":{
"type":"string"},"gmsaCredentialSpecName":{"type":"string"},"hostProcess":{"type":"boolean"},"runAsUserName":{
"type":"string"}},"type":"object"}},"type":"object"},"startupProbe":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"failureThreshold":{"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{
"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32","type":"integer"},"service":{
"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"initialDelaySeconds":{"format":"int32","type":"integer"},"periodSeconds":{"format":"int32","type":"integer"},
"successThreshold":{"format":"int32","type":"integer"},"tcpSocket":{"properties":{"host":{"type":"string"},
"port":{"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"},
"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},"timeoutSeconds":{"format":"int32",
"type":"integer"}},"type":"object"},"stdin":{"type":"boolean"},"stdinOnce":{"type":"boolean"},
"terminationMessagePath":{"type":"string"},"terminationMessagePolicy":{
"enum":["FallbackToLogsOnError","File"],"type":"string"},"tty":{"type":"boolean"},"volumeDevices":{"items":{
"properties":{"devicePath":{"type":"string"},"name":{"type":"string"}},"required":["name","devicePath"],
"type":"object"},"type":"array","x-kubernetes-list-map-keys":["devicePath"],"x-kubernetes-list-type":"map"},
"volumeMounts":{"items":{"properties":{"bindMountOptions":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"set"},"mountPath":{"type":"string"},"mountPropagation":{
"enum":["Bidirectional","HostToContainer","None"],"type":"string"},"name":{"type":"string"},"readOnly":{
"type":"boolean"},"recursiveReadOnly":{"type":"string"},"subPath":{"type":"string"},"subPathExpr":{
"type":"string"}},"required":["name","mountPath"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["mountPath"],"x-kubernetes-list-type":"map"},"workingDir":{"type":"string"}},
"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"dnsConfig":{"properties":{"nameservers":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"options":{"items":{"properties":{"name":{"type":"string"},
"value":{"type":"string"}},"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"searches":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"dnsPolicy":{
"enum":["ClusterFirst","ClusterFirstWithHostNet","Default","None"],"type":"string"},"enableServiceLinks":{
"type":"boolean"},"ephemeralContainers":{"items":{"properties":{"args":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"env":{"items":{"properties":{"name":{"type":"string"},"value":{
"type":"string"},"valueFrom":{"properties":{"configMapKeyRef":{"properties":{"key":{"type":"string"},"name":{
"type":"string"},"optional":{"type":"boolean"}},"required":["key"],"type":"object",
"x-kubernetes-map-type":"atomic"},"fieldRef":{"properties":{"apiVersion":{"type":"string"},"fieldPath":{
"type":"string"}},"required":["fieldPath"],"type":"object","x-kubernetes-map-type":"atomic"},"fileKeyRef":{
"properties":{"key":{"type":"string"},"optional":{"type":"boolean"},"path":{"type":"string"},"volumeName":{
"type":"string"}},"required":["volumeName","path","key"],"type":"object","x-kubernetes-map-type":"atomic"},
"resourceFieldRef":{"properties":{"containerName":{"type":"string"},"divisor":{"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"resource":{"type":"string"}},"required":["resource"],"type":"object",
"x-kubernetes-map-type":"atomic"},"secretKeyRef":{"properties":{"key":{"type":"string"},"name":{
"type":"string"},"optional":{"type":"boolean"}},"required":["key"],"type":"object",
"x-kubernetes-map-type":"atomic"}},"type":"object"}},"required":["name"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},"envFrom":{"items":{"properties":{
"configMapRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},"type":"object"},
"prefix":{"type":"string"},"secretRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},
"type":"object"}},"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"image":{"type":"string"
},"imagePullPolicy":{"enum":["Always","IfNotPresent","Never"],"type":"string"},"lifecycle":{"properties":{
"postStart":{"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},"required":["seconds"],"type":"object"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"}},"type":"object"},"preStop":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},
"required":["seconds"],"type":"object"},"tcpSocket":{"properties":{"host":{"type":"string"},"port":{
"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"}},"type":"object"},"stopSignal":{
"enum":["SIGABRT","SIGALRM","SIGBUS","SIGCHLD","SIGCLD","SIGCONT","SIGFPE","SIGHUP","SIGILL","SIGINT","SIGIO","SIGIOT","SIGKILL","SIGPIPE","SIGPOLL","SIGPROF","SIGPWR","SIGQUIT","SIGRTMAX","SIGRTMAX-1","SIGRTMAX-10","SIGRTMAX-11","SIGRTMAX-12","SIGRTMAX-13","SIGRTMAX-14","SIGRTMAX-2","SIGRTMAX-3","SIGRTMAX-4","SIGRTMAX-5","SIGRTMAX-6","SIGRTMAX-7","SIGRTMAX-8","SIGRTMAX-9","SIGRTMIN","SIGRTMIN+1","SIGRTMIN+10","SIGRTMIN+11","SIGRTMIN+12","SIGRTMIN+13","SIGRTMIN+14","SIGRTMIN+15","SIGRTMIN+2","SIGRTMIN+3","SIGRTMIN+4","SIGRTMIN+5","SIGRTMIN+6","SIGRTMIN+7","SIGRTMIN+8","SIGRTMIN+9","SIGSEGV","SIGSTKFLT","SIGSTOP","SIGSYS","SIGTERM","SIGTRAP","SIGTSTP","SIGTTIN","SIGTTOU","SIGURG","SIGUSR1","SIGUSR2","SIGVTALRM","SIGWINCH","SIGXCPU","SIGXFSZ"],
"type":"string"}},"type":"object"},"livenessProbe":{"properties":{"exec":{"properties":{"command":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{
"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},
"port":{"format":"int32","type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"name":{"type":"string"},"ports":{
"items":{"properties":{"containerPort":{"format":"int32","type":"integer"},"hostIP":{"type":"string"},
"hostPort":{"format":"int32","type":"integer"},"name":{"type":"string"},"protocol":{"default":"TCP",
"enum":["SCTP","TCP","UDP"],"type":"string"}},"required":["containerPort"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["containerPort","protocol"],"x-kubernetes-list-type":"map"},"readinessProbe":{
"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{"format":"int32","type":"integer"},
"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32",
"type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{
"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{
"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"resizePolicy":{"items":{"properties":{
"resourceName":{"type":"string"},"restartPolicy":{"type":"string"}},
"required":["resourceName","restartPolicy"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"resources":{"properties":{"claims":{"items":{"properties":{"name":{"type":"string"},"request":{
"type":"string"}},"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"limits":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"},"restartPolicy":{"type":"string"},
"restartPolicyRules":{"items":{"properties":{"action":{"type":"string"},"exitCodes":{"properties":{
"operator":{"type":"string"},"values":{"items":{"format":"int32","type":"integer"},"type":"array",
"x-kubernetes-list-type":"set"}},"required":["operator"],"type":"object"}},"required":["action"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"securityContext":{"properties":{
"allowPrivilegeEscalation":{"type":"boolean"},"appArmorProfile":{"properties":{"localhostProfile":{
"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],"type":"string"}},
"required":["type"],"type":"object"},"capabilities":{"properties":{"add":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"drop":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"privileged":{"type":"boolean"},"procMount":{
"enum":["Default","Unmasked"],"type":"string"},"readOnlyRootFilesystem":{"type":"boolean"},"runAsGroup":{
"format":"int64","type":"integer"},"runAsNonRoot":{"type":"boolean"},"runAsUser":{"format":"int64",
"type":"integer"},"seLinuxOptions":{"properties":{"level":{"type":"string"},"role":{"type":"string"},"type":{
"type":"string"},"user":{"type":"string"}},"type":"object"},"seccompProfile":{"properties":{
"localhostProfile":{"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],
"type":"string"}},"required":["type"],"type":"object"},"windowsOptions":{"properties":{"gmsaCredentialSpec":{
"type":"string"},"gmsaCredentialSpecName":{"type":"string"},"hostProcess":{"type":"boolean"},"runAsUserName":{
"type":"string"}},"type":"object"}},"type":"object"},"startupProbe":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"failureThreshold":{"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{
"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32","type":"integer"},"service":{
"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"initialDelaySeconds":{"format":"int32","type":"integer"},"periodSeconds":{"format":"int32","type":"integer"},
"successThreshold":{"format":"int32","type":"integer"},"tcpSocket":{"properties":{"host":{"type":"string"},
"port":{"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"},
"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},"timeoutSeconds":{"format":"int32",
"type":"integer"}},"type":"object"},"stdin":{"type":"boolean"},"stdinOnce":{"type":"boolean"},
"targetContainerName":{"type":"string"},"terminationMessagePath":{"type":"string"},
"terminationMessagePolicy":{"enum":["FallbackToLogsOnError","File"],"type":"string"},"tty":{"type":"boolean"},
"volumeDevices":{"items":{"properties":{"devicePath":{"type":"string"},"name":{"type":"string"}},
"required":["name","devicePath"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["devicePath"],
"x-kubernetes-list-type":"map"},"volumeMounts":{"items":{"properties":{"bindMountOptions":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"set"},"mountPath":{"type":"string"},
"mountPropagation":{"enum":["Bidirectional","HostToContainer","None"],"type":"string"},"name":{"type":"string"
},"readOnly":{"type":"boolean"},"recursiveReadOnly":{"type":"string"},"subPath":{"type":"string"},
"subPathExpr":{"type":"string"}},"required":["name","mountPath"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["mountPath"],"x-kubernetes-list-type":"map"},"workingDir":{"type":"string"}},
"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"evictionResponders":{"items":{"properties":{"name":{"type":"string"},
"priority":{"format":"int32","type":"integer"}},"required":["name","priority"],"type":"object",
"x-kubernetes-map-type":"atomic"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"hostAliases":{"items":{"properties":{"hostnames":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"ip":{"type":"string"}},"required":["ip"],"type":"object"},
"type":"array","x-kubernetes-list-map-keys":["ip"],"x-kubernetes-list-type":"map"},"hostIPC":{"type":"boolean"
},"hostNetwork":{"type":"boolean"},"hostPID":{"type":"boolean"},"hostUsers":{"type":"boolean"},"hostname":{
"type":"string"},"hostnameOverride":{"type":"string"},"imagePullSecrets":{"items":{"properties":{"name":{
"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},"type":"array",
"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},"initContainers":{"items":{
"properties":{"args":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"command":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"env":{"items":{"properties":{
"name":{"type":"string"},"value":{"type":"string"},"valueFrom":{"properties":{"configMapKeyRef":{
"properties":{"key":{"type":"string"},"name":{"type":"string"},"optional":{"type":"boolean"}},
"required":["key"],"type":"object","x-kubernetes-map-type":"atomic"},"fieldRef":{"properties":{"apiVersion":{
"type":"string"},"fieldPath":{"type":"string"}},"required":["fieldPath"],"type":"object",
"x-kubernetes-map-type":"atomic"},"fileKeyRef":{"properties":{"key":{"type":"string"},"optional":{
"type":"boolean"},"path":{"type":"string"},"volumeName":{"type":"string"}},
"required":["volumeName","path","key"],"type":"object","x-kubernetes-map-type":"atomic"},"resourceFieldRef":{
"properties":{"containerName":{"type":"string"},"divisor":{"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"resource":{"type":"string"}},"required":["resource"],"type":"object",
"x-kubernetes-map-type":"atomic"},"secretKeyRef":{"properties":{"key":{"type":"string"},"name":{
"type":"string"},"optional":{"type":"boolean"}},"required":["key"],"type":"object",
"x-kubernetes-map-type":"atomic"}},"type":"object"}},"required":["name"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},"envFrom":{"items":{"properties":{
"configMapRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},"type":"object"},
"prefix":{"type":"string"},"secretRef":{"properties":{"name":{"type":"string"},"optional":{"type":"boolean"}},
"type":"object"}},"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"image":{"type":"string"
},"imagePullPolicy":{"enum":["Always","IfNotPresent","Never"],"type":"string"},"lifecycle":{"properties":{
"postStart":{"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},"required":["seconds"],"type":"object"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"}},"type":"object"},"preStop":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"sleep":{"properties":{"seconds":{"format":"int64","type":"integer"}},
"required":["seconds"],"type":"object"},"tcpSocket":{"properties":{"host":{"type":"string"},"port":{
"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"}},"type":"object"},"stopSignal":{
"enum":["SIGABRT","SIGALRM","SIGBUS","SIGCHLD","SIGCLD","SIGCONT","SIGFPE","SIGHUP","SIGILL","SIGINT","SIGIO","SIGIOT","SIGKILL","SIGPIPE","SIGPOLL","SIGPROF","SIGPWR","SIGQUIT","SIGRTMAX","SIGRTMAX-1","SIGRTMAX-10","SIGRTMAX-11","SIGRTMAX-12","SIGRTMAX-13","SIGRTMAX-14","SIGRTMAX-2","SIGRTMAX-3","SIGRTMAX-4","SIGRTMAX-5","SIGRTMAX-6","SIGRTMAX-7","SIGRTMAX-8","SIGRTMAX-9","SIGRTMIN","SIGRTMIN+1","SIGRTMIN+10","SIGRTMIN+11","SIGRTMIN+12","SIGRTMIN+13","SIGRTMIN+14","SIGRTMIN+15","SIGRTMIN+2","SIGRTMIN+3","SIGRTMIN+4","SIGRTMIN+5","SIGRTMIN+6","SIGRTMIN+7","SIGRTMIN+8","SIGRTMIN+9","SIGSEGV","SIGSTKFLT","SIGSTOP","SIGSYS","SIGTERM","SIGTRAP","SIGTSTP","SIGTTIN","SIGTTOU","SIGURG","SIGUSR1","SIGUSR2","SIGVTALRM","SIGWINCH","SIGXCPU","SIGXFSZ"],
"type":"string"}},"type":"object"},"livenessProbe":{"properties":{"exec":{"properties":{"command":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{
"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},
"port":{"format":"int32","type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},
"httpGet":{"properties":{"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{
"type":"string"},"value":{"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"name":{"type":"string"},"ports":{
"items":{"properties":{"containerPort":{"format":"int32","type":"integer"},"hostIP":{"type":"string"},
"hostPort":{"format":"int32","type":"integer"},"name":{"type":"string"},"protocol":{"default":"TCP",
"enum":["SCTP","TCP","UDP"],"type":"string"}},"required":["containerPort"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["containerPort","protocol"],"x-kubernetes-list-type":"map"},"readinessProbe":{
"properties":{"exec":{"properties":{"command":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"failureThreshold":{"format":"int32","type":"integer"},
"grpc":{"properties":{"mode":{"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32",
"type":"integer"},"service":{"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{
"host":{"type":"string"},"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{
"type":"string"}},"required":["name","value"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"port":{"x-kubernetes-int-or-string":true},
"protocol":{"enum":["HTTP1","HTTP2"],"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},
"required":["port"],"type":"object"},"initialDelaySeconds":{"format":"int32","type":"integer"},
"periodSeconds":{"format":"int32","type":"integer"},"successThreshold":{"format":"int32","type":"integer"},
"tcpSocket":{"properties":{"host":{"type":"string"},"port":{"x-kubernetes-int-or-string":true}},
"required":["port"],"type":"object"},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},
"timeoutSeconds":{"format":"int32","type":"integer"}},"type":"object"},"resizePolicy":{"items":{"properties":{
"resourceName":{"type":"string"},"restartPolicy":{"type":"string"}},
"required":["resourceName","restartPolicy"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"resources":{"properties":{"claims":{"items":{"properties":{"name":{"type":"string"},"request":{
"type":"string"}},"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"limits":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"},"restartPolicy":{"type":"string"},
"restartPolicyRules":{"items":{"properties":{"action":{"type":"string"},"exitCodes":{"properties":{
"operator":{"type":"string"},"values":{"items":{"format":"int32","type":"integer"},"type":"array",
"x-kubernetes-list-type":"set"}},"required":["operator"],"type":"object"}},"required":["action"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"securityContext":{"properties":{
"allowPrivilegeEscalation":{"type":"boolean"},"appArmorProfile":{"properties":{"localhostProfile":{
"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],"type":"string"}},
"required":["type"],"type":"object"},"capabilities":{"properties":{"add":{"items":{"type":"string"},
"type":"array","x-kubernetes-list-type":"atomic"},"drop":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"privileged":{"type":"boolean"},"procMount":{
"enum":["Default","Unmasked"],"type":"string"},"readOnlyRootFilesystem":{"type":"boolean"},"runAsGroup":{
"format":"int64","type":"integer"},"runAsNonRoot":{"type":"boolean"},"runAsUser":{"format":"int64",
"type":"integer"},"seLinuxOptions":{"properties":{"level":{"type":"string"},"role":{"type":"string"},"type":{
"type":"string"},"user":{"type":"string"}},"type":"object"},"seccompProfile":{"properties":{
"localhostProfile":{"type":"string"},"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],
"type":"string"}},"required":["type"],"type":"object"},"windowsOptions":{"properties":{"gmsaCredentialSpec":{
"type":"string"},"gmsaCredentialSpecName":{"type":"string"},"hostProcess":{"type":"boolean"},"runAsUserName":{
"type":"string"}},"type":"object"}},"type":"object"},"startupProbe":{"properties":{"exec":{"properties":{
"command":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},
"failureThreshold":{"format":"int32","type":"integer"},"grpc":{"properties":{"mode":{
"enum":["Plaintext","TLS"],"type":"string"},"port":{"format":"int32","type":"integer"},"service":{
"type":"string"}},"required":["port"],"type":"object"},"httpGet":{"properties":{"host":{"type":"string"},
"httpHeaders":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"path":{
"type":"string"},"port":{"x-kubernetes-int-or-string":true},"protocol":{"enum":["HTTP1","HTTP2"],
"type":"string"},"scheme":{"enum":["HTTP","HTTPS"],"type":"string"}},"required":["port"],"type":"object"},
"initialDelaySeconds":{"format":"int32","type":"integer"},"periodSeconds":{"format":"int32","type":"integer"},
"successThreshold":{"format":"int32","type":"integer"},"tcpSocket":{"properties":{"host":{"type":"string"},
"port":{"x-kubernetes-int-or-string":true}},"required":["port"],"type":"object"},
"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},"timeoutSeconds":{"format":"int32",
"type":"integer"}},"type":"object"},"stdin":{"type":"boolean"},"stdinOnce":{"type":"boolean"},
"terminationMessagePath":{"type":"string"},"terminationMessagePolicy":{
"enum":["FallbackToLogsOnError","File"],"type":"string"},"tty":{"type":"boolean"},"volumeDevices":{"items":{
"properties":{"devicePath":{"type":"string"},"name":{"type":"string"}},"required":["name","devicePath"],
"type":"object"},"type":"array","x-kubernetes-list-map-keys":["devicePath"],"x-kubernetes-list-type":"map"},
"volumeMounts":{"items":{"properties":{"bindMountOptions":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"set"},"mountPath":{"type":"string"},"mountPropagation":{
"enum":["Bidirectional","HostToContainer","None"],"type":"string"},"name":{"type":"string"},"readOnly":{
"type":"boolean"},"recursiveReadOnly":{"type":"string"},"subPath":{"type":"string"},"subPathExpr":{
"type":"string"}},"required":["name","mountPath"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["mountPath"],"x-kubernetes-list-type":"map"},"workingDir":{"type":"string"}},
"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"nodeName":{"type":"string"},"nodeSelector":{"additionalProperties":{
"type":"string"},"type":"object","x-kubernetes-map-type":"atomic"},"os":{"properties":{"name":{"type":"string"
}},"required":["name"],"type":"object"},"overhead":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"preemptionPolicy":{
"enum":["Never","PreemptLowerPriority"],"type":"string"},"priority":{"format":"int32","type":"integer"},
"priorityClassName":{"type":"string"},"readinessGates":{"items":{"properties":{"conditionType":{
"type":"string"}},"required":["conditionType"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"resourceClaims":{"items":{"properties":{"name":{"type":"string"},
"resourceClaimName":{"type":"string"},"resourceClaimTemplateName":{"type":"string"}},"required":["name"],
"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},
"resources":{"properties":{"claims":{"items":{"properties":{"name":{"type":"string"},"request":{
"type":"string"}},"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"},"limits":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"},"restartPolicy":{
"enum":["Always","Never","OnFailure"],"type":"string"},"runtimeClassName":{"type":"string"},"schedulerName":{
"type":"string"},"schedulingGates":{"items":{"properties":{"name":{"type":"string"}},"required":["name"],
"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],"x-kubernetes-list-type":"map"},
"schedulingGroup":{"properties":{"podGroupName":{"type":"string"}},"type":"object"},"securityContext":{
"properties":{"appArmorProfile":{"properties":{"localhostProfile":{"type":"string"},"type":{
"enum":["Localhost","RuntimeDefault","Unconfined"],"type":"string"}},"required":["type"],"type":"object"},
"fsGroup":{"format":"int64","type":"integer"},"fsGroupChangePolicy":{"enum":["Always","OnRootMismatch"],
"type":"string"},"runAsGroup":{"format":"int64","type":"integer"},"runAsNonRoot":{"type":"boolean"},
"runAsUser":{"format":"int64","type":"integer"},"seLinuxChangePolicy":{"type":"string"},"seLinuxOptions":{
"properties":{"level":{"type":"string"},"role":{"type":"string"},"type":{"type":"string"},"user":{
"type":"string"}},"type":"object"},"seccompProfile":{"properties":{"localhostProfile":{"type":"string"},
"type":{"enum":["Localhost","RuntimeDefault","Unconfined"],"type":"string"}},"required":["type"],
"type":"object"},"supplementalGroups":{"items":{"format":"int64","type":"integer"},"type":"array",
"x-kubernetes-list-type":"atomic"},"supplementalGroupsPolicy":{"enum":["Merge","Strict"],"type":"string"},
"sysctls":{"items":{"properties":{"name":{"type":"string"},"value":{"type":"string"}},
"required":["name","value"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"windowsOptions":{"properties":{"gmsaCredentialSpec":{"type":"string"},"gmsaCredentialSpecName":{
"type":"string"},"hostProcess":{"type":"boolean"},"runAsUserName":{"type":"string"}},"type":"object"}},
"type":"object"},"serviceAccount":{"type":"string"},"serviceAccountName":{"type":"string"},
"setHostnameAsFQDN":{"type":"boolean"},"shareProcessNamespace":{"type":"boolean"},"subdomain":{"type":"string"
},"terminationGracePeriodSeconds":{"format":"int64","type":"integer"},"tolerations":{"items":{"properties":{
"effect":{"enum":["NoExecute","NoSchedule","PreferNoSchedule"],"type":"string"},"key":{"type":"string"},
"operator":{"enum":["Equal","Exists","Gt","Lt"],"type":"string"},"tolerationSeconds":{"format":"int64",
"type":"integer"},"value":{"type":"string"}},"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"topologySpreadConstraints":{"items":{"properties":{"labelSelector":{"properties":{"matchExpressions":{
"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{"items":{"type":"string"
},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{"type":"string"},
"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"matchLabelKeys":{"items":{"type":"string"
},"type":"array","x-kubernetes-list-type":"atomic"},"maxSkew":{"format":"int32","type":"integer"},
"minDomains":{"format":"int32","type":"integer"},"nodeAffinityPolicy":{"enum":["Honor","Ignore"],
"type":"string"},"nodeTaintsPolicy":{"enum":["Honor","Ignore"],"type":"string"},"topologyKey":{"type":"string"
},"whenUnsatisfiable":{"enum":["DoNotSchedule","ScheduleAnyway"],"type":"string"}},
"required":["maxSkew","topologyKey","whenUnsatisfiable"],"type":"object"},"type":"array",
"x-kubernetes-list-map-keys":["topologyKey","whenUnsatisfiable"],"x-kubernetes-list-type":"map"},"volumes":{
"items":{"properties":{"awsElasticBlockStore":{"properties":{"fsType":{"type":"string"},"partition":{
"format":"int32","type":"integer"},"readOnly":{"type":"boolean"},"volumeID":{"type":"string"}},
"required":["volumeID"],"type":"object"},"azureDisk":{"properties":{"cachingMode":{"default":"ReadWrite",
"enum":["None","ReadOnly","ReadWrite"],"type":"string"},"diskName":{"type":"string"},"diskURI":{
"type":"string"},"fsType":{"default":"ext4","type":"string"},"kind":{"default":"Shared",
"enum":["Dedicated","Managed","Shared"],"type":"string"},"readOnly":{"type":"boolean"}},
"required":["diskName","diskURI"],"type":"object"},"azureFile":{"properties":{"readOnly":{"type":"boolean"},
"secretName":{"type":"string"},"shareName":{"type":"string"}},"required":["secretName","shareName"],
"type":"object"},"cephfs":{"properties":{"monitors":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"path":{"type":"string"},"readOnly":{"type":"boolean"},"secretFile":{
"type":"string"},"secretRef":{"properties":{"name":{"type":"string"}},"type":"object",
"x-kubernetes-map-type":"atomic"},"user":{"type":"string"}},"required":["monitors"],"type":"object"},
"cinder":{"properties":{"fsType":{"type":"string"},"readOnly":{"type":"boolean"},"secretRef":{"properties":{
"name":{"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},"volumeID":{"type":"string"}},
"required":["volumeID"],"type":"object"},"configMap":{"properties":{"defaultMode":{"format":"int32",
"type":"integer"},"defaultUser":{"format":"int64","type":"integer"},"items":{"items":{"properties":{"key":{
"type":"string"},"mode":{"format":"int32","type":"integer"},"path":{"type":"string"},"user":{"format":"int64",
"type":"integer"}},"required":["key","path"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"name":{"type":"string"},"optional":{"type":"boolean"}},"type":"object"},"csi":{"properties":{"driver":{
"type":"string"},"fsType":{"type":"string"},"nodePublishSecretRef":{"properties":{"name":{"type":"string"}},
"type":"object","x-kubernetes-map-type":"atomic"},"readOnly":{"type":"boolean"},"volumeAttributes":{
"additionalProperties":{"type":"string"},"type":"object"}},"required":["driver"],"type":"object"},
"downwardAPI":{"properties":{"defaultMode":{"format":"int32","type":"integer"},"defaultUser":{
"format":"int64","type":"integer"},"items":{"items":{"properties":{"fieldRef":{"properties":{"apiVersion":{
"type":"string"},"fieldPath":{"type":"string"}},"required":["fieldPath"],"type":"object",
"x-kubernetes-map-type":"atomic"},"mode":{"format":"int32","type":"integer"},"path":{"type":"string"},
"resourceFieldRef":{"properties":{"containerName":{"type":"string"},"divisor":{"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"resource":{"type":"string"}},"required":["resource"],"type":"object",
"x-kubernetes-map-type":"atomic"},"user":{"format":"int64","type":"integer"}},"required":["path"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"emptyDir":{
"properties":{"medium":{"type":"string"},"mode":{"format":"int32","type":"integer"},"sizeLimit":{
"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true}},"type":"object"},"ephemeral":{"properties":{"volumeClaimTemplate":{
"properties":{"metadata":{"type":"object"},"spec":{"properties":{"accessModes":{"items":{
"enum":["ReadOnlyMany","ReadWriteMany","ReadWriteOnce","ReadWriteOncePod"],"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"dataSource":{"properties":{"apiGroup":{"type":"string"},"kind":{
"type":"string"},"name":{"type":"string"}},"required":["kind","name"],"type":"object",
"x-kubernetes-map-type":"atomic"},"dataSourceRef":{"properties":{"apiGroup":{"type":"string"},"kind":{
"type":"string"},"name":{"type":"string"},"namespace":{"type":"string"}},"required":["kind","name"],
"type":"object"},"resources":{"properties":{"limits":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"},"requests":{"additionalProperties":{
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"type":"object"}},"type":"object"},"selector":{"properties":{
"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},"values":{
"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},"required":["key","operator"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"matchLabels":{"additionalProperties":{
"type":"string"},"type":"object"}},"type":"object","x-kubernetes-map-type":"atomic"},"storageClassName":{
"type":"string"},"volumeAttributesClassName":{"type":"string"},"volumeMode":{"enum":["Block","Filesystem"],
"type":"string"},"volumeName":{"type":"string"}},"type":"object"}},"required":["spec"],"type":"object"}},
"type":"object"},"fc":{"properties":{"fsType":{"type":"string"},"lun":{"format":"int32","type":"integer"},
"readOnly":{"type":"boolean"},"targetWWNs":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"},"wwids":{"items":{"type":"string"},"type":"array",
"x-kubernetes-list-type":"atomic"}},"type":"object"},"flexVolume":{"properties":{"driver":{"type":"string"},
"fsType":{"type":"string"},"options":{"additionalProperties":{"type":"string"},"type":"object"},"readOnly":{
"type":"boolean"},"secretRef":{"properties":{"name":{"type":"string"}},"type":"object",
"x-kubernetes-map-type":"atomic"}},"required":["driver"],"type":"object"},"flocker":{"properties":{
"datasetName":{"type":"string"},"datasetUUID":{"type":"string"}},"type":"object"},"gcePersistentDisk":{
"properties":{"fsType":{"type":"string"},"partition":{"format":"int32","type":"integer"},"pdName":{
"type":"string"},"readOnly":{"type":"boolean"}},"required":["pdName"],"type":"object"},"gitRepo":{
"properties":{"directory":{"type":"string"},"repository":{"type":"string"},"revision":{"type":"string"}},
"required":["repository"],"type":"object"},"glusterfs":{"properties":{"endpoints":{"type":"string"},"path":{
"type":"string"},"readOnly":{"type":"boolean"}},"required":["endpoints","path"],"type":"object"},"hostPath":{
"properties":{"path":{"type":"string"},"type":{
"enum":["","BlockDevice","CharDevice","Directory","DirectoryOrCreate","File","FileOrCreate","Socket"],
"type":"string"}},"required":["path"],"type":"object"},"image":{"properties":{"pullPolicy":{
"enum":["Always","IfNotPresent","Never"],"type":"string"},"reference":{"type":"string"}},"type":"object"},
"iscsi":{"properties":{"chapAuthDiscovery":{"type":"boolean"},"chapAuthSession":{"type":"boolean"},"fsType":{
"type":"string"},"initiatorName":{"type":"string"},"iqn":{"type":"string"},"iscsiInterface":{
"default":"default","type":"string"},"lun":{"format":"int32","type":"integer"},"portals":{"items":{
"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},"readOnly":{"type":"boolean"},"secretRef":{
"properties":{"name":{"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},"targetPortal":{
"type":"string"}},"required":["targetPortal","iqn","lun"],"type":"object"},"name":{"type":"string"},"nfs":{
"properties":{"path":{"type":"string"},"readOnly":{"type":"boolean"},"server":{"type":"string"}},
"required":["server","path"],"type":"object"},"persistentVolumeClaim":{"properties":{"claimName":{
"type":"string"},"readOnly":{"type":"boolean"}},"required":["claimName"],"type":"object"},
"photonPersistentDisk":{"properties":{"fsType":{"type":"string"},"pdID":{"type":"string"}},
"required":["pdID"],"type":"object"},"portworxVolume":{"properties":{"fsType":{"type":"string"},"readOnly":{
"type":"boolean"},"volumeID":{"type":"string"}},"required":["volumeID"],"type":"object"},"projected":{
"properties":{"defaultMode":{"format":"int32","type":"integer"},"defaultUser":{"format":"int64",
"type":"integer"},"sources":{"items":{"properties":{"clusterTrustBundle":{"properties":{"labelSelector":{
"properties":{"matchExpressions":{"items":{"properties":{"key":{"type":"string"},"operator":{"type":"string"},
"values":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"}},
"required":["key","operator"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},
"matchLabels":{"additionalProperties":{"type":"string"},"type":"object"}},"type":"object",
"x-kubernetes-map-type":"atomic"},"name":{"type":"string"},"optional":{"type":"boolean"},"path":{
"type":"string"},"signerName":{"type":"string"},"user":{"format":"int64","type":"integer"}},
"required":["path"],"type":"object"},"configMap":{"properties":{"items":{"items":{"properties":{"key":{
"type":"string"},"mode":{"format":"int32","type":"integer"},"path":{"type":"string"},"user":{"format":"int64",
"type":"integer"}},"required":["key","path"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"
},"name":{"type":"string"},"optional":{"type":"boolean"}},"type":"object"},"downwardAPI":{"properties":{
"items":{"items":{"properties":{"fieldRef":{"properties":{"apiVersion":{"type":"string"},"fieldPath":{
"type":"string"}},"required":["fieldPath"],"type":"object","x-kubernetes-map-type":"atomic"},"mode":{
"format":"int32","type":"integer"},"path":{"type":"string"},"resourceFieldRef":{"properties":{
"containerName":{"type":"string"},"divisor":{"nullable":false,
"pattern":"^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?$",
"x-kubernetes-int-or-string":true},"resource":{"type":"string"}},"required":["resource"],"type":"object",
"x-kubernetes-map-type":"atomic"},"user":{"format":"int64","type":"integer"}},"required":["path"],
"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"podCertificate":{
"properties":{"certificateChainPath":{"type":"string"},"credentialBundlePath":{"type":"string"},"keyPath":{
"type":"string"},"keyType":{"type":"string"},"maxExpirationSeconds":{"format":"int32","type":"integer"},
"signerName":{"type":"string"},"user":{"format":"int64","type":"integer"},"userAnnotations":{
"additionalProperties":{"type":"string"},"type":"object"}},"required":["signerName","keyType"],"type":"object"
},"secret":{"properties":{"items":{"items":{"properties":{"key":{"type":"string"},"mode":{"format":"int32",
"type":"integer"},"path":{"type":"string"},"user":{"format":"int64","type":"integer"}},
"required":["key","path"],"type":"object"},"type":"array","x-kubernetes-list-type":"atomic"},"name":{
"type":"string"},"optional":{"type":"boolean"}},"type":"object"},"serviceAccountToken":{"properties":{
"audience":{"type":"string"},"expirationSeconds":{"format":"int64","type":"integer"},"path":{"type":"string"},
"user":{"format":"int64","type":"integer"}},"required":["path"],"type":"object"}},"type":"object"},
"type":"array","x-kubernetes-list-type":"atomic"}},"type":"object"},"quobyte":{"properties":{"group":{
"type":"string"},"readOnly":{"type":"boolean"},"registry":{"type":"string"},"tenant":{"type":"string"},
"user":{"type":"string"},"volume":{"type":"string"}},"required":["registry","volume"],"type":"object"},"rbd":{
"properties":{"fsType":{"type":"string"},"image":{"type":"string"},"keyring":{"default":"/etc/ceph/keyring",
"type":"string"},"monitors":{"items":{"type":"string"},"type":"array","x-kubernetes-list-type":"atomic"},
"pool":{"default":"rbd","type":"string"},"readOnly":{"type":"boolean"},"secretRef":{"properties":{"name":{
"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},"user":{"default":"admin","type":"string"}
},"required":["monitors","image"],"type":"object"},"scaleIO":{"properties":{"fsType":{"default":"xfs",
"type":"string"},"gateway":{"type":"string"},"protectionDomain":{"type":"string"},"readOnly":{"type":"boolean"
},"secretRef":{"properties":{"name":{"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},
"sslEnabled":{"type":"boolean"},"storageMode":{"default":"ThinProvisioned","type":"string"},"storagePool":{
"type":"string"},"system":{"type":"string"},"volumeName":{"type":"string"}},
"required":["gateway","system","secretRef"],"type":"object"},"secret":{"properties":{"defaultMode":{
"format":"int32","type":"integer"},"defaultUser":{"format":"int64","type":"integer"},"items":{"items":{
"properties":{"key":{"type":"string"},"mode":{"format":"int32","type":"integer"},"path":{"type":"string"},
"user":{"format":"int64","type":"integer"}},"required":["key","path"],"type":"object"},"type":"array",
"x-kubernetes-list-type":"atomic"},"optional":{"type":"boolean"},"secretName":{"type":"string"}},
"type":"object"},"storageos":{"properties":{"fsType":{"type":"string"},"readOnly":{"type":"boolean"},
"secretRef":{"properties":{"name":{"type":"string"}},"type":"object","x-kubernetes-map-type":"atomic"},
"volumeName":{"type":"string"},"volumeNamespace":{"type":"string"}},"type":"object"},"vsphereVolume":{
"properties":{"fsType":{"type":"string"},"storagePolicyID":{"type":"string"},"storagePolicyName":{
"type":"string"},"volumePath":{"type":"string"}},"required":["volumePath"],"type":"object"}},
"required":["name"],"type":"object"},"type":"array","x-kubernetes-list-map-keys":["name"],
"x-kubernetes-list-type":"map"}},"required":["containers"],"type":"object"}},"type":"object"},
"ttlSecondsAfterFinished":{"format":"int32","type":"integer"}},"required":["template"],"type":"object"}},
"type":"object"}
"#;
