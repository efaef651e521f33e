//! With which rights a Pod and its containers run.

use serde_json::{Value, json};

use crate::{
    error::Cause,
    registry::{
        kinds::check::{self, Causes, at, list},
        resource::text,
    },
};

/// The largest number of a user or a group.
const LARGEST: i64 = i32::MAX as i64;

fn id(causes: &mut Causes, object: &Value, path: &str, field: &str) {
    if let Some(id) = object.get(field).and_then(Value::as_i64).filter(|id| !(0..=LARGEST).contains(id)) {
        let why = "must be between 0 and 2147483647, inclusive";
        causes.push(Cause::invalid(at(path, field), &json!(id), why));
    }
}

/// Checks the security context of a container.
pub(super) fn container(causes: &mut Causes, context: &Value, path: &str, host_users: bool) {
    for field in ["runAsUser", "runAsGroup"] {
        id(causes, context, path, field);
    }
    check::one_of(causes, context, path, "procMount", &["Default", "Unmasked"]);
    if host_users && text(context, "/procMount") == "Unmasked" {
        let why = "`hostUsers` must be false to use `Unmasked`";
        causes.push(Cause::invalid(at(path, "procMount"), &json!("Unmasked"), why));
    }
    seccomp(causes, context, path);
    if context["allowPrivilegeEscalation"] == false {
        if context["privileged"] == true {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            causes.push(Cause::invalid(path, context, why));
        }
        for _ in list(&context["capabilities"], "add").iter().filter(|one| *one == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            causes.push(Cause::invalid(path, context, why));
        }
    }
    app_armor(causes, context, path);
}

/// Checks the security context of a Pod.
pub(super) fn pod(causes: &mut Causes, spec: &Value, path: &str) {
    let Some(context) = spec.get("securityContext") else { return };
    let path = at(path, "securityContext");
    for (index, group) in list(context, "supplementalGroups").iter().enumerate() {
        if let Some(group) = group.as_i64().filter(|group| !(0..=LARGEST).contains(group)) {
            let why = "must be between 0 and 2147483647, inclusive";
            causes.push(Cause::invalid(format!("{path}.supplementalGroups[{index}]"), &json!(group), why));
        }
    }
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        id(causes, context, &path, field);
    }
    check::one_of(causes, context, &path, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    check::one_of(causes, context, &path, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    check::one_of(causes, context, &path, "seLinuxChangePolicy", &["MountOption", "Recursive"]);
    seccomp(causes, context, &path);
    app_armor(causes, context, &path);
}

/// A path that stays below where it starts.
pub(super) fn descending(causes: &mut Causes, path: &str, field: &str) {
    if path.starts_with('/') {
        causes.push(Cause::invalid(field, &json!(path), "must be a relative path"));
    }
    if path.split('/').any(|part| part == "..") {
        causes.push(Cause::invalid(field, &json!(path), "must not contain '..'"));
    }
}

const PROFILES: [&str; 3] = ["Localhost", "RuntimeDefault", "Unconfined"];

/// The system calls that are allowed.
fn seccomp(causes: &mut Causes, context: &Value, path: &str) {
    let Some(profile) = context.get("seccompProfile") else { return };
    let path = at(path, "seccompProfile");
    let kind = text(profile, "/type");
    if kind.is_empty() {
        causes.push(Cause::required(at(&path, "type"), "type is required when seccompProfile is set"));
    } else {
        check::one_of(causes, profile, &path, "type", &PROFILES);
    }
    let field = at(&path, "localhostProfile");
    match (kind, profile.get("localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None) => {
            causes.push(Cause::required(field, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(file)) => descending(causes, file, &field),
        (_, Some(_)) => {
            let why = "can only be set when seccomp type is Localhost";
            causes.push(Cause::invalid(field, profile, why));
        }
        _ => {}
    }
}

/// What AppArmor allows.
fn app_armor(causes: &mut Causes, context: &Value, path: &str) {
    let Some(profile) = context.get("appArmorProfile") else { return };
    let path = at(path, "appArmorProfile");
    let field = at(&path, "localhostProfile");
    match (text(profile, "/type"), profile.get("localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None | Some("")) => {
            causes.push(Cause::required(field, "must be set when AppArmor type is Localhost"));
        }
        ("Localhost", Some(name)) if name.trim() != name => {
            causes.push(Cause::invalid(field, &json!(name), "must not be padded with whitespace"));
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            let why = "can only be set when AppArmor type is Localhost";
            causes.push(Cause::invalid(field, &json!(name), why));
        }
        ("", _) => {
            causes.push(Cause::required(at(&path, "type"), "type is required when appArmorProfile is set"));
        }
        _ => check::one_of(causes, profile, &path, "type", &PROFILES),
    }
}
