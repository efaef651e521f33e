//! Eviction: a deletion that asks the disruption budgets first.

use serde_json::{Value, json};

use super::{
    Attributes, Operation, Registry, Resource, decode,
    delete::{DeleteOptions, check_preconditions},
    kinds::check::selects,
    metadata::is_deleting,
    resource::text,
    subresource::set_condition,
    write::{Attempt, Target, Unwritten, Write, WriteOptions},
};
use crate::error::{Cause, Details, Error, Named, Reason, Result};

/// The budgets' own retry hint, in seconds.
const PROCESSING: u32 = 10;

/// How many evictions a budget may have that its controller has not seen yet.
const DISRUPTED: usize = 2000;

/// How often a Pod that changed meanwhile is looked at again.
const ATTEMPTS: usize = 16;

/// Under which name the server changes a budget.
const MANAGER: &str = "kube-apiserver";

impl Registry {
    /// Evicts a Pod, if admission and every budget that covers it allow. Admission is asked about the eviction; what
    /// follows from it, the mark on the Pod and its deletion, is the server's own doing.
    pub async fn evict(&self, target: Target<'_>, eviction: Value, options: &WriteOptions) -> Result<()> {
        let request = Attributes::of_write(Operation::Create, target, target.name, options);
        let eviction = self.enter_act(&request, eviction).await?;
        if text(&eviction, "/metadata/name") != target.name {
            return Err(Error::bad_request("name in URL does not match name in Eviction object"));
        }
        let delete = delete_options(&eviction)?;
        self.validate_by_admission(&request, Some(&eviction), None).await?;
        let dry_run = options.dry_run || !delete.dry_run.is_empty();
        let options = WriteOptions { dry_run, ..options.clone() };
        for _ in 0..ATTEMPTS {
            match self.evict_once(target, &delete, &options).await {
                Err(Unwritten::Moved(_)) => {}
                outcome => return Ok(outcome?),
            }
        }
        Err(Error::stale(target.resource.named(), target.name))
    }

    /// Judges the Pod as it is and ends that one: what was judged by a state that may have changed meanwhile (a Pod that
    /// was not ready) is judged again.
    async fn evict_once(
        &self,
        target: Target<'_>,
        delete: &DeleteOptions,
        options: &WriteOptions,
    ) -> Attempt<()> {
        let pod = self.get_value(target.resource, target.namespace, target.name).await?;
        let mut delete = delete.clone();
        let judged = if counts(&pod) {
            self.ask_budgets(target, &pod, options).await?
        } else if text(&pod, "/status/phase") == "Pending" && !is_deleting(&pod) {
            Judged::Unready
        } else {
            Judged::Free
        };
        let revision = delete.preconditions.resource_version.clone();
        if judged == Judged::Unready && revision.is_none() {
            delete.preconditions.resource_version = Some(text(&pod, "/metadata/resourceVersion").to_owned());
        }
        if delete.preconditions.uid.is_none() {
            delete.preconditions.uid = Some(text(&pod, "/metadata/uid").to_owned());
        }
        let ended = self.end_evicted(target, &delete, options).await;
        let moved = || {
            let there = self.get(target.resource, target.namespace, target.name);
            let seen = text(&pod, "/metadata/resourceVersion");
            there.is_ok_and(|there| there.revision.to_string() != seen)
        };
        match ended {
            Err(error) if judged == Judged::Unready && revision.is_none() && moved() => {
                Err(Unwritten::Moved(error))
            }
            ended => Ok(ended?),
        }
    }

    /// Marks the Pod and deletes it.
    async fn end_evicted(
        &self,
        target: Target<'_>,
        delete: &DeleteOptions,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut delete = delete.clone();
        if !options.dry_run {
            let now = self.environment().now_text();
            let preconditions = &delete.preconditions;
            let change = |old: &Value| {
                check_preconditions(target.resource, target.name, old, preconditions)?;
                let mut new = old.clone();
                let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                    "message": "Eviction API: evicting"});
                set_condition(&mut new, condition, &now);
                Ok(new)
            };
            let status = Target { subresource: "status", ..target };
            let marked = self.change(&Write::of_server(status, options), &change).await?.into_value();
            if let Some(revision) = &mut delete.preconditions.resource_version {
                // It was this write that moved it.
                text(&marked, "/metadata/resourceVersion").clone_into(revision);
            }
        }
        let pod = Target { subresource: "", ..target };
        self.delete_unasked(pod, &delete, options).await
    }

    /// Takes one disruption from the budget that covers the Pod.
    async fn ask_budgets(&self, target: Target<'_>, pod: &Value, options: &WriteOptions) -> Result<Judged> {
        let budgets = self.resource("policy", "v1", "poddisruptionbudgets")?;
        let covering: Vec<Value> = self
            .store()
            .snapshot(&budgets.table, Some(target.namespace))
            .objects
            .iter()
            .map(|object| decode::stored(object))
            .filter(|budget| selects(&budget["spec"]["selector"], &pod["metadata"]["labels"]))
            .collect();
        match covering.as_slice() {
            [] => Ok(Judged::Free),
            [budget] => self.take_disruption(&budgets, target, budget, pod, options).await,
            _ => Err(Error::bare(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )),
        }
    }

    async fn take_disruption(
        &self,
        budgets: &Resource,
        target: Target<'_>,
        budget: &Value,
        pod: &Value,
        options: &WriteOptions,
    ) -> Result<Judged> {
        if is_covered_unready(budget, pod) {
            return Ok(Judged::Unready);
        }
        check_allowed(budget)?;
        if options.dry_run {
            return Ok(Judged::Free);
        }
        let name = text(budget, "/metadata/name").to_owned();
        let now = self.environment().now_text();
        let pod_name = text(pod, "/metadata/name").to_owned();
        // Judged again on the budget that is changed: of two evictions at once, only one may take the last disruption.
        let change = |old: &Value| {
            check_allowed(old)?;
            let mut new = old.clone();
            let allowed = old.pointer("/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0) - 1;
            new["status"]["disruptionsAllowed"] = json!(allowed);
            new["status"]["disruptedPods"][&pod_name] = json!(now);
            if allowed == 0 {
                exhausted(&mut new, &now);
            }
            Ok(new)
        };
        let budget =
            Target { resource: budgets, namespace: target.namespace, name: &name, subresource: "status" };
        // The server does this itself, whoever asked for the eviction.
        let own = WriteOptions { manager: MANAGER.into(), ..WriteOptions::default() };
        self.change(&Write::new(budget, &own), &change).await?;
        Ok(Judged::Free)
    }
}

/// How an eviction may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// Whatever becomes of the Pod.
    Free,
    /// As long as the Pod is the one that was looked at: it was not ready, and nobody misses it.
    Unready,
}

fn delete_options(eviction: &Value) -> Result<DeleteOptions> {
    match eviction.get("deleteOptions").filter(|given| !given.is_null()) {
        Some(given) => serde_json::from_value(given.clone())
            .map_err(|error| Error::bad_request(format!("failed to read the delete options: {error}"))),
        None => Ok(DeleteOptions::default()),
    }
}

/// Whether the Pod is one that the budget does not count and can do without.
fn is_covered_unready(budget: &Value, pod: &Value) -> bool {
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    let ready = pod.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|all| {
        all.iter().any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
    });
    let healthy = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    !ready && (text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" || healthy)
}

/// Refuses if the budget has no disruption left, or does not know.
fn check_allowed(budget: &Value) -> Result<()> {
    let name = text(budget, "/metadata/name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(too_many(why, PROCESSING));
    }
    let allowed = number("disruptionsAllowed");
    if allowed < 0 {
        return Err(not_now(
            name,
            "pdb disruptions allowed is negative",
            "pdb disruptions allowed is negative",
        ));
    }
    if budget["status"]["disruptedPods"].as_object().is_some_and(|pods| pods.len() > DISRUPTED) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(not_now(name, why, "too many pending evictions not confirmed by PDB controller"));
    }
    if allowed > 0 {
        return Ok(());
    }
    let conditions = budget["status"]["conditions"].as_array().into_iter().flatten();
    let stopped = conditions.into_iter().find(|one| {
        text(one, "/type") == "DisruptionAllowed"
            && text(one, "/status") == "False"
            && !text(one, "/message").is_empty()
    });
    let (needed, there) = (number("desiredHealthy"), number("currentHealthy"));
    let start = format!("The disruption budget {name} does not allow evicting pods currently");
    let why = match stopped.map(|one| (text(one, "/reason"), text(one, "/message"))) {
        Some(("SyncFailed", message)) => format!("{start} because it failed sync: {message}"),
        _ if there <= needed => {
            format!("The disruption budget {name} needs {needed} healthy pods and has {there} currently")
        }
        Some((reason, message)) => format!("{start} ({reason}): {message}"),
        None => start,
    };
    Err(too_many(why, 0))
}

/// Says of a budget that it has nothing left.
fn exhausted(budget: &mut Value, now: &str) {
    let condition = json!({"type": "DisruptionAllowed", "status": "False", "reason": "InsufficientPods", "message": "",
        "lastTransitionTime": now, "observedGeneration": budget["status"]["observedGeneration"]});
    let conditions = &mut budget["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(list) => match list.iter_mut().find(|one| text(one, "/type") == "DisruptionAllowed") {
            Some(there) if text(there, "/status") == "False" => {}
            Some(there) => *there = condition,
            None => list.push(condition),
        },
        None => *conditions = json!([condition]),
    }
}

fn not_now(name: &str, why: &str, cause: &str) -> Error {
    let what = Named { group: "policy", resource: "poddisruptionbudget" };
    let mut error = Error::forbidden(what, name, why);
    let message = format!("The disruption budget {name} does not allow evicting pods currently: {cause}");
    if let Some(details) = &mut error.details {
        details.causes = vec![Cause { reason: "DisruptionBudget".into(), message, field: String::new() }];
    }
    error
}

/// Whether budgets have a say: what has ended, never started or is going already disturbs nobody.
fn counts(pod: &Value) -> bool {
    !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
        && text(pod, "/metadata/deletionTimestamp").is_empty()
}

fn too_many(why: String, retry_after_seconds: u32) -> Error {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = Error::new(Reason::TooManyRequests, message);
    let cause = Cause { reason: "DisruptionBudget".into(), message: why, field: String::new() };
    error.details =
        Some(Box::new(Details { causes: vec![cause], retry_after_seconds, ..Details::default() }));
    error
}
