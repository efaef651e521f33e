//! The restricted level: what good practice allows.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    Bound, PodView, Violation,
    baseline::{added, bad_profiles, unmasked},
    containers, plural, quoted, setters,
};

/// Volumes that hold what the cluster gives and nothing of a node or of a server outside.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// Other volumes, as far as they are known by name.
const OTHER_VOLUMES: [&str; 21] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "gitRepo",
    "nfs",
    "iscsi",
    "glusterfs",
    "rbd",
    "flexVolume",
    "cinder",
    "cephfs",
    "flocker",
    "fc",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "storageos",
];

type Check = fn(&PodView<'_>, Bound) -> Option<Violation>;

/// What this level forbids besides the baseline, in the order in which it is told.
pub(super) fn violations(bound: Bound, pod: &Value) -> Vec<Violation> {
    let seen = PodView { pod };
    // What Windows does not have cannot be demanded of its containers.
    let unix = !(bound.since(25) && seen.is_windows());
    let users = !(bound.since(35) && seen.has_own_users());
    let checks: [(Check, bool); 7] = [
        (escalation, bound.since(8) && unix),
        (capabilities, bound.since(22) && unix),
        (|seen, _| unmasked(seen), bound.since(35)),
        (volumes, true),
        (non_root, users),
        (root, bound.since(23) && users),
        (seccomp, bound.since(19) && unix),
    ];
    checks.iter().filter(|(_, applies)| *applies).filter_map(|(check, _)| check(&seen, bound)).collect()
}

fn escalation(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let names = seen.named(|container| container["securityContext"]["allowPrivilegeEscalation"] != false);
    let detail = format!("{} must set securityContext.allowPrivilegeEscalation=false", containers(&names));
    (!names.is_empty()).then(|| Violation::new("allowPrivilegeEscalation != false", detail))
}

fn capabilities(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let keeping = seen.named(|container| {
        let list = container.pointer("/securityContext/capabilities/drop").and_then(Value::as_array);
        !list.is_some_and(|list| list.iter().any(|one| one == "ALL"))
    });
    let (adding, values) = added(seen, &["NET_BIND_SERVICE"]);
    let mut details = Vec::new();
    if !keeping.is_empty() {
        let who = containers(&keeping);
        details.push(format!("{who} must set securityContext.capabilities.drop=[\"ALL\"]"));
    }
    if !adding.is_empty() {
        let (who, what) = (containers(&adding), quoted(values));
        details.push(format!("{who} must not include {what} in securityContext.capabilities.add"));
    }
    (!details.is_empty()).then(|| Violation::new("unrestricted capabilities", details.join("; ")))
}

fn volumes(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let all = seen.spec()["volumes"].as_array().into_iter().flatten();
    let bad: Vec<&Value> =
        all.filter(|volume| !VOLUMES.iter().any(|kind| volume.get(*kind).is_some())).collect();
    if bad.is_empty() {
        return None;
    }
    let kind = |volume: &Value| OTHER_VOLUMES.into_iter().find(|kind| volume.get(*kind).is_some());
    let kinds: BTreeSet<&str> = bad.iter().map(|volume| kind(volume).unwrap_or("unknown")).collect();
    let names: Vec<&str> = bad.iter().filter_map(|volume| volume["name"].as_str()).collect();
    let detail = format!(
        "{} {} {} {} {}",
        plural("volume", "volumes", names.len()),
        quoted(names.iter().copied()),
        plural("uses", "use", names.len()),
        plural("restricted volume type", "restricted volume types", kinds.len()),
        quoted(kinds)
    );
    Some(Violation::new("restricted volume types", detail))
}

fn non_root(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let says = |holder: &Value| holder["securityContext"]["runAsNonRoot"].as_bool();
    let of_pod = says(seen.spec());
    let reason = "runAsNonRoot != true";
    let denying = seen.named(|container| says(container) == Some(false));
    if let Some(who) = setters(of_pod == Some(false), &denying) {
        return Some(Violation::new(
            reason,
            format!("{who} must not set securityContext.runAsNonRoot=false"),
        ));
    }
    let silent = seen.named(|container| says(container).is_none() && of_pod != Some(true));
    let detail = format!("pod or {} must set securityContext.runAsNonRoot=true", containers(&silent));
    (!silent.is_empty()).then(|| Violation::new(reason, detail))
}

fn root(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let is_root = |holder: &Value| holder["securityContext"]["runAsUser"].as_i64() == Some(0);
    let who = setters(is_root(seen.spec()), &seen.named(is_root))?;
    Some(Violation::new("runAsUser=0", format!("{who} must not set runAsUser=0")))
}

fn seccomp(seen: &PodView<'_>, _: Bound) -> Option<Violation> {
    let (bad_pod, names, values) = bad_profiles(seen, "seccompProfile", &["RuntimeDefault", "Localhost"]);
    let reason = "seccompProfile";
    if let Some(who) = setters(bad_pod, &names) {
        let values = quoted(values);
        let detail = format!("{who} must not set securityContext.seccompProfile.type to {values}");
        return Some(Violation::new(reason, detail));
    }
    let has = |holder: &Value| holder["securityContext"]["seccompProfile"].is_object();
    let of_pod = has(seen.spec());
    let silent = seen.named(|container| !of_pod && !has(container));
    let detail = format!(
        "pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\"",
        containers(&silent)
    );
    (!silent.is_empty()).then(|| Violation::new(reason, detail))
}
