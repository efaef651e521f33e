//! The fullest intents: as many fields as possible that are atomic, keyed, defaulted, or written in other words.

use serde_json::{Value, json};

use super::{Base, base};

fn container(name: &str) -> Value {
    json!({
        "name": name, "image": "nginx:1.29", "args": ["-a", "-b"], "command": ["run"],
        "ports": [{"containerPort": 80, "name": "http"}, {"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53}],
        "env": [
            {"name": "HOST", "value": "db"}, {"name": "URL", "value": "http://$(HOST)"},
            {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k", "optional": false}}},
        ],
        "resources": {"limits": {"cpu": "1000m", "memory": "512Mi"}, "requests": {"cpu": "1"}},
        "securityContext": {"runAsNonRoot": true, "capabilities": {"drop": ["ALL"], "add": ["CHOWN"]}},
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, {"name": "conf", "mountPath": "/etc/c", "readOnly": true}],
    })
}

fn pod(restart: Option<&str>) -> Value {
    let mut spec = json!({
        "containers": [container("web"), container("side")],
        "initContainers": [{"name": "first", "image": "busybox:1"}, {"name": "second", "image": "busybox:1"}],
        "nodeSelector": {"disk": "ssd", "zone": "a"},
        "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0}],
        "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "conf", "configMap": {"name": "c", "optional": true}}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}]}}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "x", "tier": "web"}}}],
        "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "securityContext": {}, "hostNetwork": false, "terminationGracePeriodSeconds": 30,
    });
    if let Some(policy) = restart {
        spec["restartPolicy"] = policy.into();
        for container in spec["containers"].as_array_mut().into_iter().flatten() {
            container.as_object_mut().expect("a container must be an object").remove("readinessProbe");
        }
    }
    json!({"metadata": {"labels": {"app": "x"}, "annotations": {}}, "spec": spec})
}

fn metadata() -> Value {
    json!({"labels": {"app": "x", "tier": ""}, "annotations": {"limits": "1.10", "note": "a"}})
}

/// One of each kind.
pub fn bases() -> Vec<Base> {
    let selector = json!({"matchLabels": {"app": "x"}});
    let mut bases = vec![
        base(
            "apps",
            "v1",
            "Deployment",
            json!({"metadata": metadata(), "spec": {
            "replicas": 2, "paused": false, "selector": selector, "template": pod(None),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}}}),
        ),
        base(
            "",
            "v1",
            "Service",
            json!({"metadata": metadata(), "spec": {
            "selector": {"app": "x", "color": "blue"}, "externalIPs": ["203.0.113.1", "203.0.113.2"],
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}, {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53}]}}),
        ),
        base(
            "",
            "v1",
            "ConfigMap",
            json!({"metadata": metadata(), "data": {
            "limits": "1.10", "storage": "1", "capacity": "512Mi", "empty": ""}}),
        ),
        base(
            "networking.k8s.io",
            "v1",
            "NetworkPolicy",
            json!({"metadata": metadata(), "spec": {
            "podSelector": {"matchLabels": {"app": "x", "tier": "web"}}, "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b", "c": "d"}}}],
                "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}], "egress": [{}]}}),
        ),
        base(
            "networking.k8s.io",
            "v1",
            "Ingress",
            json!({"metadata": metadata(), "spec": {
            "rules": [{"host": "a.example.com", "http": {"paths": [
                {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}},
                {"path": "/b", "pathType": "Exact", "backend": {"service": {"name": "t", "port": {"name": "http"}}}}]}}],
            "tls": [{"hosts": ["a.example.com", "b.example.com"], "secretName": "t"}]}}),
        ),
        base(
            "rbac.authorization.k8s.io",
            "v1",
            "Role",
            json!({"metadata": metadata(), "rules": [
            {"apiGroups": [""], "resources": ["pods", "services"], "verbs": ["get", "list"], "resourceNames": ["a", "b"]},
            {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}]}),
        ),
        base("it.windlass.dev", "v1", "Shape", json!({"metadata": metadata(), "spec": shape()})),
    ];
    bases.push(base(
        "batch",
        "v1",
        "CronJob",
        json!({"metadata": metadata(), "spec": {
        "schedule": "*/5 * * * *", "suspend": true, "concurrencyPolicy": "Forbid",
        "jobTemplate": {"metadata": {}, "spec": {"backoffLimit": 0, "template": pod(Some("Never"))}}}}),
    ));
    bases
}

fn shape() -> Value {
    json!({
        "atomicList": [{"name": "a", "size": 1, "on": false, "tags": ["x"]}, {"name": "b", "mode": "plain"}],
        "keyedList": [{"name": "a", "size": 0}, {"name": "a", "mode": "fancy"}, {"name": "b", "tags": ["x", "y"]}],
        "set": ["one", "two", "three"], "plainList": [3, 1, 2],
        "atomicMap": {"a": "1", "b": "2"},
        "granularMap": {"one": {"a": "x"}, "two": {"a": "y", "b": 0}, "three": {}},
        "atomicStruct": {"y": "z"},
        "free": {"deep": {"list": [{"a": 1}, {"b": 2}], "off": false}, "limits": {"cpu": "1000m"}},
        "either": "25%", "limits": {"cpu": "1.10", "memory": "512Mi"},
    })
}
