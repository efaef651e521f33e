//! Whose an object is: the release's, or somebody else's who must be asked first.

use serde_json::Value;
use windlass::kube::{self, api::DynamicObject, core::Status};

/// Field managers of ours that are no operator's: `windlass dev` and `windlass run`, and the seven operators.
const OURS: [&str; 4] = ["windlass", "windlass-dev", "windlass-operators", "windlass-deploy"];
/// People with kubectl, whose changes to an object with our labels are changes to what we made.
const PEOPLE: [&str; 5] =
    ["kubectl", "kubectl-client-side-apply", "kubectl-edit", "kubectl-patch", "kubectl-scale"];
const NAME: &str = "app.kubernetes.io/name";
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Whether somebody else has put a label on the object that says so. An object that this operator has applied before is
/// this operator's, whatever it bears.
pub(crate) fn stranger(found: &DynamicObject, operator: &str) -> Option<String> {
    if applied(found, operator) {
        return None;
    }
    let labels = found.metadata.labels.clone().unwrap_or_default();
    let annotations = found.metadata.annotations.clone().unwrap_or_default();
    if let Some(release) = annotations.get("meta.helm.sh/release-name") {
        return Some(format!("it is of the Helm release {release}"));
    }
    if let Some(owner) = labels.get("olm.owner") {
        return Some(format!("the Operator Lifecycle Manager has it for {owner}"));
    }
    match (labels.get(NAME), labels.get(MANAGED_BY)) {
        (Some(name), _) if name != operator => Some(format!("its label {NAME} is {name}")),
        (_, Some(manager)) if manager != "windlass" => Some(format!("its label {MANAGED_BY} is {manager}")),
        _ => None,
    }
}

fn applied(found: &DynamicObject, operator: &str) -> bool {
    found.metadata.managed_fields.iter().flatten().any(|entry| {
        entry.manager.as_deref() == Some(operator) && entry.operation.as_deref() == Some("Apply")
    })
}

/// Whether the object came with this operator, and may go with it.
pub(crate) fn is_own(found: &DynamicObject, operator: &str) -> bool {
    applied(found, operator) || labelled(found, operator)
}

/// Whether nobody but this operator and the cluster itself has a hand in the object: then it was made for the operator.
pub(crate) fn is_only_own(found: &DynamicObject, operator: &str) -> bool {
    const CLUSTER: [&str; 3] = ["kube-controller-manager", "kube-apiserver", "windlass-cluster"];
    let entries = found.metadata.managed_fields.iter().flatten();
    let managers = entries.filter_map(|entry| entry.manager.as_deref());
    labelled(found, operator)
        && managers.into_iter().all(|manager| {
            manager == operator
                || OURS.contains(&manager)
                || PEOPLE.contains(&manager)
                || CLUSTER.contains(&manager)
        })
}

/// Whether the object bears the labels that this operator's manifests have.
pub(crate) fn labelled(found: &DynamicObject, operator: &str) -> bool {
    let labels = found.metadata.labels.as_ref();
    let is =
        |key: &str, value: &str| labels.is_some_and(|labels| labels.get(key).is_some_and(|it| it == value));
    is(NAME, operator) && is(MANAGED_BY, "windlass")
}

/// Of the field managers that a conflict names, those that are neither ours nor people who changed what is ours.
pub(crate) fn rivals(error: &kube::Error, operator: &str, labelled: bool) -> Option<Vec<String>> {
    let kube::Error::Api(status) = error else { return None };
    if status.code != 409 {
        return None;
    }
    let mut rivals: Vec<String> = managers(status)
        .into_iter()
        .filter(|(manager, _)| {
            let friend = manager == operator
                || OURS.contains(&manager.as_str())
                || (labelled && PEOPLE.contains(&manager.as_str()));
            !friend
        })
        .map(|(manager, field)| format!("the field manager {manager:?} has {field}"))
        .collect();
    rivals.sort();
    rivals.dedup();
    Some(rivals)
}

/// Who has which field, as the API server tells it.
fn managers(status: &Status) -> Vec<(String, String)> {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    let manager = |text: &str| text.split('"').nth(1).map(ToOwned::to_owned);
    causes.filter_map(|cause| Some((manager(&cause.message)?, cause.field.clone()))).collect()
}

/// An address that an operator outside the cluster has left in a definition, beside which a Service is refused.
pub(crate) fn left_url(found: &DynamicObject, wanted: &Value) -> bool {
    let url = found.data.pointer("/spec/conversion/webhook/clientConfig/url").is_some();
    url && wanted.pointer("/spec/conversion/webhook/clientConfig/service").is_some()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(metadata: Value) -> DynamicObject {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata});
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_label_of_somebody_else_is_heard_unless_this_operator_has_applied_the_object() {
        let helm = json!({"name": "a", "annotations": {"meta.helm.sh/release-name": "shop"}});
        assert_eq!(stranger(&found(helm), "op").unwrap(), "it is of the Helm release shop");
        let other = json!({"name": "a", "labels": {NAME: "other"}});
        assert_eq!(
            stranger(&found(other.clone()), "op").unwrap(),
            "its label app.kubernetes.io/name is other"
        );
        let mut applied = other;
        applied["managedFields"] = json!([{"manager": "op", "operation": "Apply"}]);
        assert_eq!(stranger(&found(applied), "op"), None);
        assert_eq!(stranger(&found(json!({"name": "a"})), "op"), None);
        let own = json!({"name": "a", "labels": {NAME: "op", MANAGED_BY: "windlass"}});
        assert_eq!(stranger(&found(own.clone()), "op"), None);
        assert!(labelled(&found(own), "op"));
    }

    #[test]
    fn a_conflict_names_those_who_are_neither_ours_nor_people() {
        let status: Status = serde_json::from_value(json!({
            "status": "Failure", "code": 409, "reason": "Conflict", "message": "Apply failed with 3 conflicts",
            "details": {"causes": [
                {"reason": "FieldManagerConflict", "message": "conflict with \"helm\" using v1", "field": ".data"},
                {"reason": "FieldManagerConflict", "message": "conflict with \"windlass-dev\"", "field": ".spec"},
                {"reason": "FieldManagerConflict", "message": "conflict with \"kubectl\"", "field": ".spec"},
            ]},
        }))
        .unwrap();
        let error = kube::Error::Api(Box::new(status));
        let helm = "the field manager \"helm\" has .data".to_owned();
        assert_eq!(rivals(&error, "op", true), Some(vec![helm.clone()]));
        assert_eq!(rivals(&error, "op", false).unwrap().len(), 2);
    }
}
