//! Policies that change objects: a configuration to lay over them, or a JSON patch, both made by CEL.

use kube_cel::cel::Value as Cel;
use serde::Deserialize;
use serde_json::Value;

use super::{
    Binding, Condition, InForce, Policy,
    evaluate::{self, Input, conditions},
};
use crate::{
    admission::{
        Admitting, Attributes,
        patch::{self, Problem},
        reinvocation::Reinvocation,
    },
    error::{Cause, Error, Reason, Result},
    merge,
    registry::Resource,
    schema::cel::to_json,
};

/// One change that a policy makes.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Mutation {
    apply_configuration: Option<Condition>,
    json_patch: Option<Condition>,
}

impl Admitting<'_> {
    /// One round of the policies that are concerned.
    pub(in crate::admission) async fn mutate_by_policies(
        &self,
        request: &Attributes<'_>,
        known: &InForce,
        round: &mut Reinvocation,
        mut object: Value,
        old: Option<&Value>,
    ) -> Result<Value> {
        round.begin(Some(&object));
        for (index, (policy, binding)) in known.bound.iter().enumerate() {
            if round.skips(index) {
                continue;
            }
            let changed = self.mutate_by(request, policy, binding, &object, old).await?;
            let changed = changed.filter(|changed| *changed != object);
            round.asked(index, changed.is_some(), policy.spec.reinvocation_policy == "IfNeeded");
            object = changed.unwrap_or(object);
        }
        round.end(Some(&object));
        Ok(object)
    }

    /// What one policy makes of the object; nothing if it is not concerned.
    async fn mutate_by(
        &self,
        request: &Attributes<'_>,
        policy: &Policy,
        binding: &Binding,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<Option<Value>> {
        let resource = self.selected(request, &policy.spec.match_constraints, Some(object), old)?;
        let Some(resource) = resource else { return Ok(None) };
        if let Some(matches) = &binding.spec.match_resources
            && self.selected(request, &matches.or_everything(), Some(object), old)?.is_none()
        {
            return Ok(None);
        }
        let fails_open = policy.spec.failure_policy.as_deref() == Some("Ignore");
        let refuse = |reason: Reason, why: String| {
            let who = format!("policy '{}' with binding '{}' denied request", policy.name, binding.name);
            if fails_open { Ok(None) } else { Err(refused(request, reason, format!("{who}: {why}"))) }
        };
        let params = match self.params(request, policy, binding).await {
            Ok(params) => params,
            Err(why) => return refuse(Reason::Forbidden, format!("failed to configure binding: {why}")),
        };
        let (shown, old) = self.in_version(request, &resource, Some(object.clone()), old.cloned()).await?;
        let namespace = self.namespace_object(request);
        let access = self.access_of(request.user);
        let mut input = Input {
            request,
            resource: &resource,
            object: shown,
            old,
            namespace,
            params: Value::Null,
            access,
        };
        for params in params {
            input.params = params;
            if let Err(why) = run(policy, &resource, &mut input) {
                return refuse(Reason::Invalid, why);
            }
        }
        let Some(mut changed) = input.object else { return Ok(None) };
        if request.has_own_kind() {
            changed = self.convert(&resource, request.target.resource, changed).await?;
        }
        Ok(Some(changed))
    }
}

/// Makes the changes of a policy, each from what the one before it has left.
fn run(policy: &Policy, resource: &Resource, input: &mut Input<'_>) -> Result<(), String> {
    if !conditions(&policy.spec.match_conditions, &evaluate::variables(input))? {
        return Ok(());
    }
    for mutation in &policy.spec.mutations {
        let mut variables = evaluate::variables(input);
        variables.compose(&policy.spec);
        let Some(mut object) = input.object.clone() else { return Ok(()) };
        let made = |condition: &Condition| -> Result<Value, String> {
            let expression = condition.expression.trim();
            let value = variables.evaluate(condition.compiled());
            let value: Cel =
                value.map_err(|error| format!("expression '{expression}' resulted in error: {error}"))?;
            let unusable = || format!("expression '{expression}' resulted in a value that is no JSON");
            to_json(&value).ok_or_else(unusable)
        };
        if let Some(condition) = &mutation.apply_configuration {
            let mut intent = made(condition)?;
            for field in ["apiVersion", "kind"] {
                intent[field] = object[field].clone();
            }
            let merged = merge::combine(resource.schema(), &object, &intent);
            object = merged.map_err(|why| format!("error applying patch: failed to merge patch: {why}"))?;
        }
        if let Some(condition) = &mutation.json_patch {
            let operations = made(condition)?;
            let operations = operations.as_array().cloned().unwrap_or_default();
            match patch::apply(&mut object, &operations) {
                Ok(()) => {}
                Err(Problem::Unfit(why)) if why.ends_with("test failed") => continue,
                Err(Problem::Undecodable(why) | Problem::Unfit(why)) => {
                    return Err(format!("JSON Patch: {why}"));
                }
            }
        }
        resource.settle_patched(&mut object)?;
        input.object = Some(object);
    }
    Ok(())
}

/// Whatever the reason, the code is that of what is forbidden.
fn refused(request: &Attributes<'_>, reason: Reason, why: String) -> Error {
    let mut error = Error::forbidden(request.target.resource.named(), &request.name, &why);
    error.reason = Some(reason);
    if let Some(details) = &mut error.details {
        details.causes = vec![Cause { reason: String::new(), message: why.clone(), field: String::new() }];
    }
    error.message = why;
    error
}
