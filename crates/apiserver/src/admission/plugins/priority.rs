//! Priority: a class names a number, and every Pod has one.

use serde_json::{Value, json};

use super::{forbidden, is};
use crate::{
    admission::{Attributes, Operation},
    error::Result,
    registry::Registry,
};

const GROUP: &str = "scheduling.k8s.io";

/// Whether the request writes a class.
pub(super) fn concerns(request: &Attributes<'_>) -> bool {
    request.operation != Operation::Delete && is(request, GROUP, "priorityclasses")
}

/// Turns the class that a new Pod names, or the one for all that name none, into a number.
pub(super) fn resolve(registry: &Registry, request: &Attributes<'_>, pod: &mut Value) -> Result<()> {
    let named = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if named.is_empty() {
        default_class(registry)
    } else {
        let found = registry.look_up(GROUP, "priorityclasses", "", &named);
        let missing = || forbidden(request, pod, format!("no PriorityClass with name {named} was found"));
        Some(found.ok_or_else(missing)?)
    };
    let value = class.as_ref().and_then(|class| class["value"].as_i64()).unwrap_or(0);
    let policy =
        class.as_ref().map_or(Some("PreemptLowerPriority"), |class| class["preemptionPolicy"].as_str());
    let spec = &pod["spec"];
    if let Some(own) = spec["priority"].as_i64().filter(|own| *own != value) {
        let why = format!(
            "the integer value of priority ({own}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        return Err(forbidden(request, pod, why));
    }
    if let (Some(own), Some(policy)) = (spec["preemptionPolicy"].as_str(), policy)
        && own != policy
    {
        let why = format!(
            "the string value of PreemptionPolicy ({own}) must not be provided in pod spec; priority admission \
             controller computed {policy} from the given PriorityClass name"
        );
        return Err(forbidden(request, pod, why));
    }
    if let Some(class) = &class {
        pod["spec"]["priorityClassName"] = class["metadata"]["name"].clone();
    }
    pod["spec"]["priority"] = json!(value);
    if let Some(policy) = policy {
        pod["spec"]["preemptionPolicy"] = json!(policy);
    }
    Ok(())
}

/// The class of Pods that name none; of several the lowest.
fn default_class(registry: &Registry) -> Option<Value> {
    let classes = registry.look_through(GROUP, "priorityclasses", None).into_iter();
    classes.filter(|class| class["globalDefault"] == true).min_by_key(|class| class["value"].as_i64())
}

/// Only one class can be the default.
pub(super) fn check_class(registry: &Registry, request: &Attributes<'_>, class: &Value) -> Result<()> {
    if class["globalDefault"] != true {
        return Ok(());
    }
    let Some(other) = default_class(registry) else { return Ok(()) };
    let name = &other["metadata"]["name"];
    if request.operation == Operation::Update && *name == class["metadata"]["name"] {
        return Ok(());
    }
    let name = name.as_str().unwrap_or_default();
    let why = format!("PriorityClass {name} is already marked as default. Only one default can exist");
    Err(forbidden(request, class, why))
}
