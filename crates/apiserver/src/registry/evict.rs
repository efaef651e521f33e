//! Eviction: a deletion that asks the disruption budgets first.

use serde_json::{Value, json};

use super::{
    Registry, Resource, decode,
    delete::{DeleteOptions, Preconditions},
    kinds::check::selects,
    resource::text,
    write::{Target, Write, WriteOptions},
};
use crate::error::{Cause, Details, Error, Reason, Result};

/// The budgets' own retry hint, in seconds.
const PROCESSING: u32 = 10;

impl Registry {
    /// Evicts a Pod, if every budget that covers it allows.
    pub async fn evict(&self, target: Target<'_>, eviction: &Value, options: &WriteOptions) -> Result<()> {
        let pod = self.get_value(target.resource, target.namespace, target.name).await?;
        let dry_run = options.dry_run
            || eviction
                .pointer("/deleteOptions/dryRun")
                .and_then(Value::as_array)
                .is_some_and(|all| !all.is_empty());
        let options = WriteOptions { dry_run, ..options.clone() };
        if counts(&pod) {
            self.ask_budgets(target, &pod, &options).await?;
        }
        let mut delete: DeleteOptions = match eviction.get("deleteOptions") {
            Some(given) => serde_json::from_value(given.clone())
                .map_err(|error| Error::bad_request(format!("failed to read the delete options: {error}")))?,
            None => DeleteOptions::default(),
        };
        if delete.preconditions.uid.is_none() {
            delete.preconditions = Preconditions {
                uid: Some(text(&pod, "/metadata/uid").to_owned()),
                ..Preconditions::default()
            };
        }
        if counts(&pod) && !dry_run {
            self.mark_disrupted(target, &options).await?;
        }
        let target = Target { subresource: "", ..target };
        self.delete(target, &delete, &options).await.map(|_| ())
    }

    /// Takes one disruption from each budget that covers the Pod.
    async fn ask_budgets(&self, target: Target<'_>, pod: &Value, options: &WriteOptions) -> Result<()> {
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
            [] => Ok(()),
            [budget] => self.take_disruption(&budgets, target, budget, pod, options).await,
            _ => Err(Error::internal(
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
    ) -> Result<()> {
        if !takes_one(budget, pod)? || options.dry_run {
            return Ok(());
        }
        let name = text(budget, "/metadata/name").to_owned();
        let now = self.environment().now_text();
        let pod_name = text(pod, "/metadata/name").to_owned();
        // Judged again on the budget that is changed: of two evictions at once, only one may take the last disruption.
        let change = |old: &Value| {
            let mut new = old.clone();
            if takes_one(old, pod)? {
                let allowed = old.pointer("/status/disruptionsAllowed").and_then(Value::as_i64).unwrap_or(0);
                new["status"]["disruptionsAllowed"] = json!(allowed - 1);
                new["status"]["disruptedPods"][&pod_name] = json!(now);
            }
            Ok(new)
        };
        let budget =
            Target { resource: budgets, namespace: target.namespace, name: &name, subresource: "status" };
        self.change(&Write::new(budget, options), &change).await?;
        Ok(())
    }

    /// Tells whoever looks at the Pod why it goes.
    async fn mark_disrupted(&self, target: Target<'_>, options: &WriteOptions) -> Result<()> {
        let now = self.environment().now_text();
        let change = |old: &Value| {
            let mut new = old.clone();
            let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastTransitionTime": now, "lastProbeTime": null});
            match new["status"]["conditions"].as_array_mut() {
                Some(list) => {
                    list.retain(|one| text(one, "/type") != "DisruptionTarget");
                    list.push(condition);
                }
                None => new["status"]["conditions"] = json!([condition]),
            }
            Ok(new)
        };
        let target = Target { subresource: "status", ..target };
        self.change(&Write::new(target, options), &change).await?;
        Ok(())
    }
}

/// Whether the eviction takes a disruption from the budget, or none is needed; refused if there is none left.
fn takes_one(budget: &Value, pod: &Value) -> Result<bool> {
    let name = text(budget, "/metadata/name");
    let number = |field: &str| budget["status"][field].as_i64().unwrap_or(0);
    if number("observedGeneration") < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(why, PROCESSING));
    }
    let ready = pod.pointer("/status/conditions").and_then(Value::as_array).is_some_and(|all| {
        all.iter().any(|one| text(one, "/type") == "Ready" && text(one, "/status") == "True")
    });
    let healthy = number("currentHealthy") >= number("desiredHealthy") && number("desiredHealthy") > 0;
    if !ready && (text(budget, "/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow" || healthy) {
        return Ok(false);
    }
    if number("disruptionsAllowed") <= 0 {
        let (needed, there) = (number("desiredHealthy"), number("currentHealthy"));
        let why =
            format!("The disruption budget {name} needs {needed} healthy pods and has {there} currently");
        return Err(refused(why, 0));
    }
    Ok(true)
}

/// Whether budgets have a say: what has ended, never started or is going already disturbs nobody.
fn counts(pod: &Value) -> bool {
    !matches!(text(pod, "/status/phase"), "Succeeded" | "Failed" | "Pending")
        && text(pod, "/metadata/deletionTimestamp").is_empty()
}

fn refused(why: String, retry_after_seconds: u32) -> Error {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut error = Error::new(Reason::TooManyRequests, message);
    let cause = Cause { reason: "DisruptionBudget".into(), message: why, field: String::new() };
    error.details =
        Some(Box::new(Details { causes: vec![cause], retry_after_seconds, ..Details::default() }));
    error
}
