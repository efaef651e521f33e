//! Admission policies: rules about objects, written in CEL and kept in the API itself. Validating ones say no,
//! mutating ones change.

pub(super) mod evaluate;
mod mutate;

use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use self::evaluate::{Input, Outcome};
use super::{
    Admitting, Attributes, LabelSelector,
    plan::{Condition, GROUP},
    rules::Match,
};
use crate::{
    error::{Error, Reason, Result},
    registry::group_version,
    store::{Key, Object, Store, TableName},
};

/// Where the audit log has the validations that failed, for bindings with the action `Audit`.
const FAILURES: &str = "validation.policy.admission.k8s.io/validation_failure";

/// The policies of one kind that are in force, read from the store and kept until they change.
#[derive(Debug)]
pub(crate) struct Policies {
    tables: [TableName; 2],
    kept: Mutex<Option<Arc<InForce>>>,
}

/// The policies at one moment.
#[derive(Debug)]
pub(crate) struct InForce {
    revisions: [u64; 2],
    /// Each policy with each of its bindings.
    bound: Vec<(Arc<Policy>, Binding)>,
}

#[derive(Debug)]
struct Policy {
    name: String,
    spec: PolicySpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PolicySpec {
    match_constraints: Match,
    match_conditions: Vec<Condition>,
    validations: Vec<Validation>,
    variables: Vec<Variable>,
    audit_annotations: Vec<AuditAnnotation>,
    failure_policy: Option<String>,
    param_kind: Option<ParamKind>,
    mutations: Vec<mutate::Mutation>,
    reinvocation_policy: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ParamKind {
    api_version: String,
    kind: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Validation {
    #[serde(flatten)]
    check: Condition,
    #[serde(default)]
    message: String,
    #[serde(default)]
    message_expression: String,
    #[serde(default)]
    reason: Option<String>,
}

/// What a policy says for the audit log.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AuditAnnotation {
    key: String,
    value_expression: String,
}

#[derive(Debug, Deserialize)]
struct Variable {
    name: String,
    #[serde(flatten)]
    value: Condition,
}

#[derive(Debug)]
struct Binding {
    name: String,
    spec: BindingSpec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BindingSpec {
    policy_name: String,
    param_ref: Option<ParamRef>,
    match_resources: Option<Match>,
    validation_actions: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ParamRef {
    name: String,
    namespace: String,
    selector: Option<LabelSelector>,
    parameter_not_found_action: Option<String>,
}

/// One reason to refuse a request.
#[derive(Debug)]
struct Denial {
    message: String,
    reason: Option<String>,
}

impl Policies {
    /// Those that validate.
    pub(crate) fn validating() -> Self {
        Self::of(["validatingadmissionpolicies", "validatingadmissionpolicybindings"])
    }

    /// Those that mutate.
    pub(crate) fn mutating() -> Self {
        Self::of(["mutatingadmissionpolicies", "mutatingadmissionpolicybindings"])
    }

    fn of(plurals: [&str; 2]) -> Self {
        let tables = plurals.map(|plural| TableName { group: GROUP.into(), plural: plural.into() });
        Self { tables, kept: Mutex::default() }
    }

    /// What is in force now.
    pub(crate) fn in_force(&self, store: &Store) -> Arc<InForce> {
        let tables = &self.tables;
        let revisions = [store.table_revision(&tables[0]), store.table_revision(&tables[1])];
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some(known) if known.revisions == revisions => Arc::clone(known),
            _ => {
                let policies: Vec<Arc<Policy>> = read(store, &tables[0])
                    .into_iter()
                    .map(|(name, spec)| Arc::new(Policy { name, spec }))
                    .collect();
                let bindings = read::<BindingSpec>(store, &tables[1]).into_iter();
                let bound = bindings.filter_map(|(name, spec)| {
                    let policy = policies.iter().find(|policy| policy.name == spec.policy_name)?;
                    Some((Arc::clone(policy), Binding { name, spec }))
                });
                let known = Arc::new(InForce { revisions, bound: bound.collect() });
                *kept = Some(Arc::clone(&known));
                known
            }
        }
    }
}

impl InForce {
    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.bound.is_empty()
    }
}

fn read<T: DeserializeOwned>(store: &Store, table: &TableName) -> Vec<(String, T)> {
    let objects = store.snapshot(table, None).objects;
    let decoded = objects.iter().filter_map(|object| {
        let value: Value = serde_json::from_slice(&object.bytes).ok()?;
        let spec = serde_json::from_value(value["spec"].clone());
        // Validation lets no such object in.
        let spec =
            spec.inspect_err(|error| tracing::warn!(%error, "failed to read an admission policy")).ok()?;
        Some((object.key.name.to_string(), spec))
    });
    decoded.collect()
}

impl Admitting<'_> {
    /// Asks every policy that is concerned.
    pub(super) async fn validate_by_policies(
        &self,
        request: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        let known = self.chain.policies.in_force(self.store());
        let mut denials = Vec::new();
        let mut failures = Vec::new();
        for (policy, binding) in &known.bound {
            for outcome in self.ask_policy(request, policy, binding, object, old).await? {
                let who =
                    format!("ValidatingAdmissionPolicy '{}' with binding '{}'", policy.name, binding.name);
                let acts = |action: &str| binding.spec.validation_actions.iter().any(|one| one == action);
                if acts("Warn") {
                    request.warnings.add(&format!("Validation failed for {who}: {}", outcome.message));
                }
                if acts("Audit") {
                    failures.push(json!({"message": outcome.message, "policy": policy.name,
                        "binding": binding.name, "validationActions": binding.spec.validation_actions}));
                }
                if acts("Deny") {
                    let message = format!("{who} denied request: {}", outcome.message);
                    denials.push(Denial { message, reason: outcome.reason });
                }
            }
        }
        if !failures.is_empty() {
            request.warnings.audit().annotate(FAILURES, || json!(failures).to_string());
        }
        refuse(request, &denials)
    }

    async fn ask_policy(
        &self,
        request: &Attributes<'_>,
        policy: &Policy,
        binding: &Binding,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Vec<Outcome>> {
        let resource = self.selected(request, &policy.spec.match_constraints, object, old)?;
        let Some(resource) = resource else { return Ok(Vec::new()) };
        if let Some(matches) = &binding.spec.match_resources
            && self.selected(request, &matches.or_everything(), object, old)?.is_none()
        {
            return Ok(Vec::new());
        }
        let (object, old) = (object.cloned(), old.cloned());
        let (object, old) = self.in_version(request, &resource, object, old).await?;
        let params = match self.params(request, policy, binding).await {
            Ok(params) => params,
            Err(why) => {
                let failed = policy.spec.failure_policy.as_deref() != Some("Ignore");
                let message = format!("failed to configure binding: {why}");
                return Ok(failed.then_some(Outcome { message, reason: None }).into_iter().collect());
            }
        };
        let namespace = self.namespace_object(request);
        let access = self.access_of(request.user);
        let mut input =
            Input { request, resource: &resource, object, old, namespace, params: Value::Null, access };
        let mut outcomes = Vec::new();
        for params in params {
            input.params = params;
            let (failed, annotations) = evaluate::evaluate(&policy.spec, &input);
            outcomes.extend(failed);
            for (key, value) in annotations {
                request.warnings.audit().annotate(&format!("{}/{key}", policy.name), || value);
            }
        }
        Ok(outcomes)
    }

    pub(super) fn namespace_object(&self, request: &Attributes<'_>) -> Value {
        let table = TableName { group: "".into(), plural: "namespaces".into() };
        let found = self.store().get(&table, &Key::new("", request.namespace()));
        let found = found.filter(|_| !request.is_namespace());
        found.and_then(|found| serde_json::from_slice(&found.bytes).ok()).unwrap_or_default()
    }

    /// The parameters that a binding names; one null where the policy takes none.
    async fn params(
        &self,
        request: &Attributes<'_>,
        policy: &Policy,
        binding: &Binding,
    ) -> std::result::Result<Vec<Value>, String> {
        let (Some(kind), Some(reference)) = (&policy.spec.param_kind, &binding.spec.param_ref) else {
            return Ok(vec![Value::Null]);
        };
        let catalog = self.catalog();
        let resource = catalog
            .resources()
            .find(|one| one.kind == kind.kind && group_version(&one.group, &one.version) == kind.api_version)
            .ok_or_else(|| {
                format!(
                    "failed to find resource referenced by paramKind: '{}, Kind={}'",
                    kind.api_version, kind.kind
                )
            })?;
        let namespace = match (resource.namespaced, reference.namespace.as_str()) {
            (false, _) => "",
            (true, "") => request.target.namespace,
            (true, own) => own,
        };
        let snapshot = self.store().snapshot(&resource.table, resource.namespaced.then_some(namespace));
        let mut found = Vec::new();
        let named = |object: &&Arc<Object>| reference.name.is_empty() || *object.key.name == *reference.name;
        for object in snapshot.objects.iter().filter(named) {
            // In the version that the policy names, whichever it is stored in.
            let shown = self.present(resource, object).await.map_err(|error| error.message)?.into_value();
            if reference.selector.as_ref().is_none_or(|selector| selector.matches(&shown)) {
                found.push(shown);
            }
        }
        if found.is_empty() && reference.parameter_not_found_action.as_deref() != Some("Allow") {
            return Err("no params found for policy binding with `Deny` parameterNotFoundAction".into());
        }
        Ok(found)
    }
}

/// The answer to a request that policies deny: the first of them gives the message and the reason, and is the only one
/// that is told of.
fn refuse(request: &Attributes<'_>, denials: &[Denial]) -> Result<()> {
    let Some(first) = denials.first() else { return Ok(()) };
    let mut error = Error::forbidden(request.target.resource.named(), &request.name, &first.message);
    let reason = match first.reason.as_deref() {
        Some("Forbidden") => Reason::Forbidden,
        Some("Unauthorized") => Reason::Unauthorized,
        Some("RequestEntityTooLarge") => Reason::RequestEntityTooLarge,
        _ => Reason::Invalid,
    };
    error.reason = Some(reason);
    error.code = reason.code();
    if let Some(details) = &mut error.details {
        let message = first.message.clone();
        details.causes = vec![crate::error::Cause { reason: String::new(), message, field: String::new() }];
    }
    Err(error)
}
