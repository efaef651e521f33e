//! One object of each kind that a controller works on, with a number in every field that it looks at.

use serde_json::{Value, json};

/// An object that is accepted as it is, and where it goes.
pub(super) struct Specimen {
    /// The group and version in the path.
    pub(super) group: &'static str,
    pub(super) plural: &'static str,
    /// What its variants are named after; no two are alike.
    pub(super) name: &'static str,
    pub(super) object: Value,
}

fn specimen(
    name: &'static str,
    group: &'static str,
    plural: &'static str,
    kind: &str,
    spec: Value,
) -> Specimen {
    let object =
        json!({"apiVersion": group, "kind": kind, "metadata": {"labels": {"app": "x"}}, "spec": spec});
    Specimen { group, plural, name, object }
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "x"}, "annotations": {"windlass.dev/ready-after-seconds": "0"}},
        "spec": {
            "terminationGracePeriodSeconds": 7,
            "containers": [{"name": "c", "image": "nginx", "resources": {"requests": {"cpu": "1m", "memory": "7"}}}],
        },
    })
}

fn probe() -> Value {
    json!({
        "httpGet": {"path": "/", "port": 80},
        "initialDelaySeconds": 1, "periodSeconds": 2, "timeoutSeconds": 1, "successThreshold": 1,
        "failureThreshold": 3,
    })
}

fn pod() -> Specimen {
    let mut pod = specimen(
        "pod",
        "v1",
        "pods",
        "Pod",
        json!({
            "nodeName": super::TAINTED, "activeDeadlineSeconds": 60, "terminationGracePeriodSeconds": 7,
            "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
            "securityContext": {"runAsUser": 7, "runAsGroup": 7, "fsGroup": 7, "supplementalGroups": [7]},
            "topologySpreadConstraints": [{
                "maxSkew": 1, "minDomains": 1, "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {"matchLabels": {"app": "x"}}}],
            "initContainers": [{"name": "i", "image": "b", "command": ["sleep", "7"]}],
            "containers": [
                {"name": "web", "image": "nginx", "ports": [{"containerPort": 80}],
                    "resources": {"requests": {"memory": "7"}, "limits": {"memory": "7"}},
                    "readinessProbe": probe(), "livenessProbe": probe(), "startupProbe": probe(),
                    "lifecycle": {"preStop": {"sleep": {"seconds": 3}}}},
                {"name": "work", "image": "busybox", "command": ["sleep", "7"]},
            ],
            "volumes": [{"name": "v", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "t", "expirationSeconds": 3600}}]}}],
        }),
    );
    pod.object["metadata"]["annotations"] = json!({
        "windlass.dev/start-after-seconds": "0", "windlass.dev/ready-after-seconds": "7",
        "windlass.dev/usage.cpu": "7", "controller.kubernetes.io/pod-deletion-cost": "7",
    });
    pod
}

/// A Pod whose annotations say when it starts and ends.
fn timed_pod() -> Specimen {
    let mut pod = specimen(
        "timed-pod",
        "v1",
        "pods",
        "Pod",
        json!({"containers": [{"name": "web", "image": "nginx"}]}),
    );
    pod.object["metadata"]["annotations"] = json!({
        "windlass.dev/simulate": "evict", "windlass.dev/start-after-seconds": "7",
        "windlass.dev/exit-after-seconds": "7", "windlass.dev/exit-code": "7",
    });
    pod
}

fn workloads() -> Vec<Specimen> {
    let selector = json!({"matchLabels": {"app": "x"}});
    vec![
        specimen(
            "deployment",
            "apps/v1",
            "deployments",
            "Deployment",
            json!({
                "replicas": 2, "minReadySeconds": 0, "progressDeadlineSeconds": 600, "revisionHistoryLimit": 3,
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}},
                "selector": selector, "template": template(),
            }),
        ),
        specimen(
            "replicaset",
            "apps/v1",
            "replicasets",
            "ReplicaSet",
            json!({
                "replicas": 2, "minReadySeconds": 0, "selector": selector, "template": template(),
            }),
        ),
        specimen(
            "statefulset",
            "apps/v1",
            "statefulsets",
            "StatefulSet",
            json!({
                "replicas": 2, "minReadySeconds": 0, "revisionHistoryLimit": 3, "ordinals": {"start": 1},
                "podManagementPolicy": "Parallel", "serviceName": "x",
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
                "selector": selector, "template": template(),
            }),
        ),
        specimen(
            "daemonset",
            "apps/v1",
            "daemonsets",
            "DaemonSet",
            json!({
                "minReadySeconds": 0, "revisionHistoryLimit": 3,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
                "selector": selector, "template": template(),
            }),
        ),
        specimen(
            "rc",
            "v1",
            "replicationcontrollers",
            "ReplicationController",
            json!({
                "replicas": 2, "minReadySeconds": 0, "selector": {"app": "x"}, "template": template(),
            }),
        ),
    ]
}

fn job_spec() -> Value {
    let mut template = template();
    template["spec"]["restartPolicy"] = json!("Never");
    template["spec"]["activeDeadlineSeconds"] = json!(600);
    json!({
        "parallelism": 2, "completions": 2, "completionMode": "Indexed", "activeDeadlineSeconds": 600,
        "backoffLimit": 3, "backoffLimitPerIndex": 2, "maxFailedIndexes": 2, "ttlSecondsAfterFinished": 600,
        "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 2}]},
        "podFailurePolicy": {"rules": [{"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [42]}}]},
        "template": template,
    })
}

fn jobs() -> Vec<Specimen> {
    let mut simple = job_spec();
    for field in ["backoffLimitPerIndex", "maxFailedIndexes", "podFailurePolicy"] {
        simple.as_object_mut().unwrap().remove(field);
    }
    simple["successPolicy"] = json!({"rules": [{"succeededIndexes": "0", "succeededCount": 1}]});
    vec![
        specimen("job", "batch/v1", "jobs", "Job", job_spec()),
        specimen("simple-job", "batch/v1", "jobs", "Job", simple),
        specimen(
            "cronjob",
            "batch/v1",
            "cronjobs",
            "CronJob",
            json!({
                "schedule": "* * * * *", "startingDeadlineSeconds": 60, "successfulJobsHistoryLimit": 3,
                "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": job_spec()},
            }),
        ),
    ]
}

fn others() -> Vec<Specimen> {
    let reference = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let rules = json!({
        "stabilizationWindowSeconds": 60, "policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}],
    });
    vec![
        specimen(
            "hpa",
            "autoscaling/v2",
            "horizontalpodautoscalers",
            "HorizontalPodAutoscaler",
            json!({
                "minReplicas": 1, "maxReplicas": 3, "scaleTargetRef": reference,
                "behavior": {"scaleUp": rules, "scaleDown": rules},
                "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {
                    "type": "Utilization", "averageUtilization": 50}}}],
            }),
        ),
        specimen(
            "budget",
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            json!({
                "minAvailable": 1, "selector": {"matchLabels": {"app": "web"}},
            }),
        ),
        specimen(
            "other-budget",
            "policy/v1",
            "poddisruptionbudgets",
            "PodDisruptionBudget",
            json!({
                "maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}},
            }),
        ),
        specimen(
            "claim",
            "v1",
            "persistentvolumeclaims",
            "PersistentVolumeClaim",
            json!({
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "7"}},
            }),
        ),
        specimen(
            "service",
            "v1",
            "services",
            "Service",
            json!({
                "selector": {"app": "web"}, "sessionAffinity": "ClientIP",
                "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 60}},
                "ports": [{"port": 80, "targetPort": 8080}],
            }),
        ),
        specimen(
            "quota",
            "v1",
            "resourcequotas",
            "ResourceQuota",
            json!({
                "hard": {"requests.ephemeral-storage": "7", "count/widgets.example.com": "7"},
            }),
        ),
        specimen(
            "lease",
            "coordination.k8s.io/v1",
            "leases",
            "Lease",
            json!({
                "holderIdentity": "x", "leaseDurationSeconds": 15, "leaseTransitions": 1,
            }),
        ),
    ]
}

/// One of each.
pub(super) fn specimens() -> Vec<Specimen> {
    let mut all = vec![pod(), timed_pod()];
    all.extend(workloads());
    all.extend(jobs());
    all.extend(others());
    all
}
