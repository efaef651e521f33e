//! LimitRanges: what containers get by default, and what containers, Pods and claims may ask for.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{forbidden, is};
use crate::{
    admission::{Attributes, Operation},
    error::Result,
    quota::{Amount, Usage, amounts, pod_total},
    registry::Registry,
};

/// Where a Pod says what it was given.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";

fn ranges(registry: &Registry, request: &Attributes<'_>) -> Vec<Value> {
    registry.look_through("", "limitranges", Some(request.target.namespace))
}

fn limits(range: &Value) -> impl Iterator<Item = &Value> {
    range.pointer("/spec/limits").and_then(Value::as_array).into_iter().flatten()
}

/// Gives containers the requests and limits that they did not choose.
pub(super) fn set_defaults(registry: &Registry, request: &Attributes<'_>, pod: &mut Value) {
    for range in ranges(registry, request) {
        let of_containers = || limits(&range).filter(|limit| limit["type"] == "Container");
        let merged = |field: &str| -> serde_json::Map<String, Value> {
            let maps = of_containers().filter_map(|limit| limit[field].as_object());
            maps.flatten().map(|(name, amount)| (name.clone(), amount.clone())).collect()
        };
        let (requests, limits) = (merged("defaultRequest"), merged("default"));
        let mut given = Vec::new();
        for (list, word) in [("containers", "container"), ("initContainers", "init container")] {
            for container in pod["spec"][list].as_array_mut().into_iter().flatten() {
                for (kind, said, defaults) in
                    [("requests", "request", &requests), ("limits", "limit", &limits)]
                {
                    let set = fill(&mut container["resources"], kind, defaults);
                    if !set.is_empty() {
                        let name = container["name"].as_str().unwrap_or_default();
                        given.push(format!("{} {said} for {word} {name}", set.join(", ")));
                    }
                }
            }
        }
        if !given.is_empty() {
            let text = format!("LimitRanger plugin set: {}", given.join("; "));
            pod["metadata"]["annotations"][ANNOTATION] = json!(text);
        }
    }
}

/// The names of what was not there.
fn fill(resources: &mut Value, kind: &str, defaults: &serde_json::Map<String, Value>) -> Vec<String> {
    let mut set = Vec::new();
    for (name, amount) in defaults {
        if resources[kind].get(name).is_none() {
            resources[kind][name] = amount.clone();
            set.push(name.clone());
        }
    }
    set.sort();
    set
}

/// Refuses what a range does not allow.
pub(super) fn check(
    registry: &Registry,
    request: &Attributes<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<()> {
    let pods = (is(request, "", "pods") && request.operation == Operation::Create)
        || (super::is_any(request, "", "pods") && request.target.subresource == "resize");
    let claims = is(request, "", "persistentvolumeclaims");
    let leaving = old.is_some_and(|old| old["metadata"]["deletionTimestamp"].is_string());
    if leaving || !(pods || claims) {
        return Ok(());
    }
    for range in ranges(registry, request) {
        let mut problems = Vec::new();
        for limit in limits(&range) {
            match (limit["type"].as_str(), pods) {
                (Some("Container"), true) => of_containers(limit, object, &mut problems),
                (Some("Pod"), true) => {
                    let asked = Asked {
                        requests: pod_total(object, "requests", false),
                        limits: pod_total(object, "limits", false),
                    };
                    asked.check(limit, "Pod", &mut problems);
                }
                (Some("PersistentVolumeClaim"), false) => of_claim(limit, object, &mut problems),
                _ => {}
            }
        }
        let mut seen = BTreeSet::new();
        let told: Vec<String> = problems.into_iter().filter(|one| seen.insert(one.clone())).collect();
        match told.as_slice() {
            [] => {}
            [one] => return Err(forbidden(request, object, one)),
            several => return Err(forbidden(request, object, format!("[{}]", several.join(", ")))),
        }
    }
    Ok(())
}

fn of_containers(limit: &Value, pod: &Value, problems: &mut Vec<String>) {
    for list in ["containers", "initContainers"] {
        for container in pod["spec"][list].as_array().into_iter().flatten() {
            let resources = &container["resources"];
            let asked =
                Asked { requests: amounts(&resources["requests"]), limits: amounts(&resources["limits"]) };
            asked.check(limit, "Container", problems);
        }
    }
}

fn of_claim(limit: &Value, claim: &Value, problems: &mut Vec<String>) {
    let kind = "PersistentVolumeClaim";
    let asked = Asked { requests: amounts(&claim["spec"]["resources"]["requests"]), limits: Usage::new() };
    for (name, least) in amounts(&limit["min"]) {
        problems.extend(asked.below(kind, &name, least));
    }
    for (name, most) in amounts(&limit["max"]) {
        let what = format!("maximum {name} usage per {kind} is {most}");
        match asked.requests.get(&name) {
            None => problems.push(format!("{what}.  No request is specified")),
            Some(request) if *request > most => problems.push(format!("{what}, but request is {request}")),
            Some(_) => {}
        }
    }
}

/// What somebody asks for.
struct Asked {
    requests: Usage,
    limits: Usage,
}

impl Asked {
    fn check(&self, limit: &Value, kind: &str, problems: &mut Vec<String>) {
        for (name, least) in amounts(&limit["min"]) {
            problems.extend(self.below(kind, &name, least));
        }
        for (name, most) in amounts(&limit["max"]) {
            problems.extend(self.above(kind, &name, most));
        }
        for (name, ratio) in amounts(&limit["maxLimitRequestRatio"]) {
            problems.extend(self.stretched(kind, &name, ratio));
        }
    }

    fn below(&self, kind: &str, name: &str, least: Amount) -> Option<String> {
        let what = format!("minimum {name} usage per {kind} is {least}");
        match (self.requests.get(name), self.limits.get(name)) {
            (None, _) => Some(format!("{what}.  No request is specified")),
            (Some(request), _) if *request < least => Some(format!("{what}, but request is {request}")),
            (_, Some(limit)) if *limit < least => Some(format!("{what}, but limit is {limit}")),
            _ => None,
        }
    }

    fn above(&self, kind: &str, name: &str, most: Amount) -> Option<String> {
        let what = format!("maximum {name} usage per {kind} is {most}");
        match (self.limits.get(name), self.requests.get(name)) {
            (None, _) => Some(format!("{what}.  No limit is specified")),
            (Some(limit), _) if *limit > most => Some(format!("{what}, but limit is {limit}")),
            (_, Some(request)) if *request > most => Some(format!("{what}, but request is {request}")),
            _ => None,
        }
    }

    fn stretched(&self, kind: &str, name: &str, most: Amount) -> Option<String> {
        let what = format!("{name} max limit to request ratio per {kind} is {most}");
        let known = |usage: &Usage| usage.get(name).copied().filter(|amount| !amount.is_zero());
        let Some(request) = known(&self.requests) else {
            return Some(format!("{what}, but no request is specified or request is 0"));
        };
        let Some(limit) = known(&self.limits) else {
            return Some(format!("{what}, but no limit is specified or limit is 0"));
        };
        let ratio = limit.ratio(request);
        (ratio > most.ratio(Amount::ONE)).then(|| format!("{what}, but provided ratio is {ratio:.6}"))
    }
}
