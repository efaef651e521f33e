//! Pod failure policies and success policies: what a Pod's failure or a Job's successes mean. Pure.

use windlass::k8s_openapi::api::{
    batch::v1::{JobSpec, PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule},
    core::v1::{ContainerStatus, Pod},
};

use super::indexes::Indexes;

/// What a Pod's failure means for its Job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It counts towards the back-off limit.
    Counts,
    /// It counts for nothing.
    Ignored,
    /// The Pod's index has failed.
    FailsIndex,
    /// The whole Job has failed.
    FailsJob(String),
}

/// What the first rule that matches says about a failed Pod.
pub(super) fn of_failure(spec: &JobSpec, pod: &Pod) -> Failure {
    let rules = spec.pod_failure_policy.iter().flat_map(|policy| &policy.rules);
    for (position, rule) in rules.enumerate() {
        if let Some(found) = matching(rule, pod) {
            return match rule.action.as_str() {
                "Ignore" => Failure::Ignored,
                "FailIndex" => Failure::FailsIndex,
                "FailJob" => Failure::FailsJob(format!("{found} matching FailJob rule at index {position}")),
                _ => Failure::Counts,
            };
        }
    }
    Failure::Counts
}

fn matching(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let status = pod.status.as_ref()?;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let name = format!("{}/{}", text(&pod.metadata.namespace), text(&pod.metadata.name));
    if let Some(wanted) = &rule.on_exit_codes {
        let containers = status.container_statuses.iter().flatten();
        let mut all = containers.chain(status.init_container_statuses.iter().flatten());
        return all.find_map(|container| {
            let code = exit_code(container, wanted)?;
            Some(format!("Container {} for pod {name} failed with exit code {code}", container.name))
        });
    }
    let patterns = rule.on_pod_conditions.as_ref()?;
    let fits = |condition: &&windlass::k8s_openapi::api::core::v1::PodCondition| {
        patterns.iter().any(|pattern| {
            pattern.type_ == condition.type_
                && pattern.status.as_deref().unwrap_or("True") == condition.status
        })
    };
    let condition = status.conditions.iter().flatten().find(fits)?;
    Some(format!("Pod {name} has condition {}", condition.type_))
}

fn exit_code(container: &ContainerStatus, wanted: &PodFailurePolicyOnExitCodesRequirement) -> Option<i32> {
    let code = container.state.as_ref()?.terminated.as_ref()?.exit_code;
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == container.name);
    let listed = wanted.values.contains(&code);
    let fits = match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (named && code != 0 && fits).then_some(code)
}

/// The message with which the succeeded indexes satisfy the success policy, if they do.
pub(super) fn satisfied(spec: &JobSpec, succeeded: &Indexes) -> Option<String> {
    let rules = &spec.success_policy.as_ref()?.rules;
    let completions = spec.completions.unwrap_or(0);
    let met = rules.iter().position(|rule| match &rule.succeeded_indexes {
        Some(indexes) => {
            let wanted = Indexes::parse(indexes, completions);
            let reached = wanted.in_common(succeeded);
            wanted.len() > 0
                && (reached == wanted.len() || rule.succeeded_count.is_some_and(|count| reached >= count))
        }
        None => rule.succeeded_count.is_some_and(|count| succeeded.len() > 0 && succeeded.len() >= count),
    })?;
    Some(format!("Matched rules at index {met}"))
}

#[cfg(test)]
mod tests {
    use windlass::serde_json::{Value, from_value, json};

    use super::*;

    fn spec(fields: Value) -> JobSpec {
        let mut spec = json!({"template": {"spec": {"containers": []}}, "completions": 5});
        spec.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        from_value(spec).unwrap()
    }

    fn failed(code: i32) -> Pod {
        from_value(json!({
            "metadata": {"namespace": "shop", "name": "p"},
            "status": {
                "phase": "Failed",
                "conditions": [{"type": "DisruptionTarget", "status": "True"}],
                "containerStatuses": [{
                    "name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0,
                    "state": {"terminated": {"exitCode": code}}}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn the_first_rule_that_matches_decides() {
        let spec = spec(json!({"podFailurePolicy": {"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
            {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        ]}}));
        let why = "Container c for pod shop/p failed with exit code 42 matching FailJob rule at index 0";
        assert_eq!(of_failure(&spec, &failed(42)), Failure::FailsJob(why.into()));
        assert_eq!(of_failure(&spec, &failed(1)), Failure::Ignored);
        assert_eq!(of_failure(&self::spec(json!({})), &failed(1)), Failure::Counts);
    }

    #[test]
    fn a_success_policy_asks_for_indexes_or_a_number_of_them() {
        let reached = |rule: Value, indexes: &str| {
            let spec = spec(json!({"successPolicy": {"rules": [rule]}}));
            satisfied(&spec, &Indexes::parse(indexes, 5))
        };
        let met = Some("Matched rules at index 0".to_owned());
        assert_eq!(reached(json!({"succeededIndexes": "0,2"}), "0-2"), met);
        assert_eq!(reached(json!({"succeededIndexes": "0,2"}), "0"), None);
        assert_eq!(reached(json!({"succeededIndexes": "0-3", "succeededCount": 1}), "3"), met);
        assert_eq!(reached(json!({"succeededCount": 2}), "4"), None);
        assert_eq!(reached(json!({"succeededCount": 2}), "1,4"), met);
    }
}
