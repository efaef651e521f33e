//! Asking webhooks: which of them, with what, and what their answers mean.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Admitting, Attributes,
    patch::{self, Problem},
    plan::{Hook, Plan},
    policy::evaluate::{self, Input},
    reinvocation::Reinvocation,
    review::{self, AdmissionResponse, Unusable},
    rules::{Match, Rule},
};
use crate::{
    error::{Error, Named, Result},
    registry::Resource,
    store::{Key, TableName},
    webhook::Call,
};

/// The longest answer that is read from an admission webhook.
const ANSWER_LIMIT: usize = 3 * 1024 * 1024;

const AGENT: &str = "kube-apiserver-admission";

/// Resources that admission is never asked about.
const EXEMPT: [&str; 6] = [
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "mutatingwebhookconfigurations",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];

/// The objects of a request in one version of their resource.
#[derive(Clone, Debug)]
struct Versioned {
    object: Option<Value>,
    old: Option<Value>,
}

/// Why a webhook's answer is no yes.
#[derive(Debug)]
enum WebhookError {
    /// It could not be asked; what follows is a matter of policy.
    Call(String),
    /// It was asked, and this is what the client gets.
    Refused(Error),
}

impl Admitting<'_> {
    /// Whether anybody has a say in the request.
    pub(super) fn is_needed(&self, request: &Attributes<'_>) -> bool {
        let resource = request.target.resource;
        let exempt =
            &*resource.group == "admissionregistration.k8s.io" && EXEMPT.contains(&&*resource.plural);
        let plan = self.chain.hooks.plan(self.store());
        // A binding asks for itself; the Pod that it changes is its own business.
        let bound = request.target.subresource == "binding" && request.operation == super::Operation::Update;
        let hooks = !(plan.mutating.is_empty() && plan.validating.is_empty());
        let policies = !self.chain.policies.in_force(self.store()).is_empty()
            || !self.chain.mutations.in_force(self.store()).is_empty();
        let nobody = !hooks && !policies && !self.plugins_concern(request);
        !(exempt || bound || nobody)
    }

    /// The object after everybody who may change it did. Nobody can change what is deleted: they are only told.
    ///
    /// What a policy or a webhook changed goes round once more: plug-ins have their say about it (a container that a
    /// webhook added gets its limits and its token too), then those who asked to be asked again.
    pub(super) async fn mutate(
        &self,
        request: &Attributes<'_>,
        object: Option<Value>,
        old: Option<&Value>,
    ) -> Result<Option<Value>> {
        let plan = self.chain.hooks.plan(self.store());
        let known = self.chain.mutations.in_force(self.store());
        let (mut policies, mut hooks) = (Reinvocation::default(), Reinvocation::default());
        let Some(mut object) = object else {
            return self.run_mutating(request, &plan, &mut hooks, None, old).await;
        };
        let old = old.map(|old| request.view(old)).transpose()?;
        for _ in 0..2 {
            self.mutate_by_plugins(request, &mut object)?;
            let shown = request.view(&object)?;
            let mut changed = shown.clone();
            if !known.is_empty() {
                let by_policies =
                    self.mutate_by_policies(request, &known, &mut policies, changed, old.as_ref());
                changed = Box::pin(by_policies).await?;
            }
            let by_hooks = self.run_mutating(request, &plan, &mut hooks, Some(changed), old.as_ref());
            let Some(changed) = by_hooks.await? else { break };
            if changed == shown {
                break;
            }
            object = request.unview(&object, changed)?;
        }
        Ok(Some(object))
    }

    /// One round of the webhooks that mutate.
    async fn run_mutating(
        &self,
        request: &Attributes<'_>,
        plan: &Plan,
        round: &mut Reinvocation,
        mut object: Option<Value>,
        old: Option<&Value>,
    ) -> Result<Option<Value>> {
        round.begin(object.as_ref());
        for (index, hook) in plan.mutating.iter().enumerate() {
            if round.skips(index) {
                continue;
            }
            let versioned = Versioned { object: object.clone(), old: old.cloned() };
            let Some((resource, versioned)) = self.invocation(request, hook, versioned).await? else {
                continue;
            };
            let changed = self.ask_mutating(request, hook, &resource, versioned).await?;
            let changed = changed.filter(|changed| Some(changed) != object.as_ref());
            round.asked(index, changed.is_some(), hook.is_reinvoked());
            object = changed.or(object);
        }
        round.end(object.as_ref());
        Ok(object)
    }

    /// Asks one mutating webhook; a changed object comes back in the version of the request.
    async fn ask_mutating(
        &self,
        request: &Attributes<'_>,
        hook: &Hook,
        resource: &Arc<Resource>,
        versioned: Versioned,
    ) -> Result<Option<Value>> {
        let outcome = match self.ask(request, hook, resource, &versioned, true).await {
            Ok(response) => patched(request, hook, resource, response, versioned.object),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(None) => Ok(None),
            Ok(Some(mut object)) => {
                if request.has_own_kind() {
                    resource.settle_patched(&mut object).map_err(|why| Error::internal(&why))?;
                    object = self.convert(resource, request.target.resource, object).await?;
                }
                Ok(Some(object))
            }
            Err(WebhookError::Call(why)) if hook.fails_open() => {
                tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing open");
                Ok(None)
            }
            Err(WebhookError::Call(why)) => Err(uncallable(hook, &why)),
            Err(WebhookError::Refused(error)) => Err(error),
        }
    }

    /// Asks every validating webhook that is concerned, all at the same time.
    pub(super) async fn validate(
        &self,
        request: &Attributes<'_>,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<()> {
        self.validate_by_plugins(request, object, old)?;
        let plan = self.chain.hooks.plan(self.store());
        let object = object.map(|object| request.view(object)).transpose()?;
        let old = old.map(|old| request.view(old)).transpose()?;
        self.validate_by_policies(request, object.as_ref(), old.as_ref()).await?;
        let mut concerned = Vec::new();
        for hook in &plan.validating {
            let versioned = Versioned { object: object.clone(), old: old.clone() };
            if let Some(found) = self.invocation(request, hook, versioned).await? {
                concerned.push((hook, found));
            }
        }
        let calls = concerned.iter().map(|(hook, (resource, versioned))| async move {
            match self.ask(request, hook, resource, versioned, false).await {
                Ok(_) => Ok(()),
                Err(WebhookError::Call(why)) if hook.fails_open() => {
                    tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing open");
                    Ok(())
                }
                Err(WebhookError::Call(why)) => Err(uncallable(hook, &why)),
                Err(WebhookError::Refused(error)) => Err(error),
            }
        });
        futures::future::join_all(calls).await.into_iter().collect()
    }

    /// In which version of the resource the webhook is asked, if it is.
    async fn invocation(
        &self,
        request: &Attributes<'_>,
        hook: &Hook,
        versioned: Versioned,
    ) -> Result<Option<(Arc<Resource>, Versioned)>> {
        let Versioned { object, old } = versioned;
        let selected = self.selected(request, &hook.matches, object.as_ref(), old.as_ref())?;
        let Some(resource) = selected else { return Ok(None) };
        let (object, old) = self.in_version(request, &resource, object, old).await?;
        let versioned = Versioned { object, old };
        let met = self.conditions_met(request, hook, &resource, &versioned)?;
        Ok(met.then_some((resource, versioned)))
    }

    /// The version of the resource in which the request is meant, if it is.
    pub(super) fn selected(
        &self,
        request: &Attributes<'_>,
        matches: &Match,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<Option<Arc<Resource>>> {
        let selects = |object: Option<&Value>| object.is_some_and(|one| matches.object_selector.matches(one));
        if !matches.object_selector.is_empty() && !selects(object) && !selects(old) {
            return Ok(None);
        }
        let in_namespace = self.namespace_matches(request, matches, object);
        if matches!(in_namespace, Ok(false)) {
            return Ok(None);
        }
        let resource = self.matching_version(request, matches);
        // A namespace that is missing is only worth an error where the request is meant at all.
        match resource {
            Some(resource) => in_namespace.map(|_| Some(resource)),
            None => Ok(None),
        }
    }

    /// The objects of a request in another version of their resource.
    pub(super) async fn in_version(
        &self,
        request: &Attributes<'_>,
        resource: &Resource,
        mut object: Option<Value>,
        mut old: Option<Value>,
    ) -> Result<(Option<Value>, Option<Value>)> {
        if request.has_own_kind() {
            for one in [&mut object, &mut old] {
                if let Some(own_version) = one.take() {
                    *one = Some(self.convert(request.target.resource, resource, own_version).await?);
                }
            }
        }
        Ok((object, old))
    }

    fn namespace_matches(
        &self,
        request: &Attributes<'_>,
        matches: &Match,
        object: Option<&Value>,
    ) -> Result<bool> {
        let selector = &matches.namespace_selector;
        if selector.is_empty() || (request.target.namespace.is_empty() && !request.is_namespace()) {
            return Ok(true);
        }
        if let (true, Some(object)) = (request.is_namespace(), object) {
            return Ok(selector.matches(object));
        }
        let table = TableName { group: "".into(), plural: "namespaces".into() };
        let namespace = self.store().get(&table, &Key::new("", request.namespace()));
        let namespace = namespace.and_then(|found| serde_json::from_slice::<Value>(&found.bytes).ok());
        let missing = || Error::not_found(Named { group: "", resource: "namespaces" }, request.namespace());
        Ok(selector.matches(&namespace.ok_or_else(missing)?))
    }

    /// The version of the resource that a rule names: the request's own, or one that means the same.
    fn matching_version(&self, request: &Attributes<'_>, matches: &Match) -> Option<Arc<Resource>> {
        let (own, part) = (request.target.resource, request.target.subresource);
        let catalog = self.catalog();
        let equivalents: Vec<&Arc<Resource>> = catalog
            .resources()
            .filter(|other| matches.equivalent() && other.table == own.table)
            .filter(|other| other.group != own.group || other.version != own.version)
            .filter(|other| part.is_empty() || other.subresources.iter().any(|known| known.name == part))
            .collect();
        // Earlier rules first, then the order of discovery.
        let named = |rules: &[Rule]| {
            if rules.iter().any(|rule| rule.matches(request, own)) {
                return catalog.find(&own.group, &own.version, &own.plural).cloned();
            }
            let found = |rule: &Rule| equivalents.iter().find(|other| rule.matches(request, other));
            rules.iter().find_map(found).map(|found| Arc::clone(found))
        };
        if named(&matches.exclude_resource_rules).is_some() {
            return None;
        }
        named(&matches.resource_rules)
    }

    /// Whether the webhook's own conditions hold. A condition that is false wins over one that fails.
    fn conditions_met(
        &self,
        request: &Attributes<'_>,
        hook: &Hook,
        resource: &Resource,
        versioned: &Versioned,
    ) -> Result<bool> {
        if hook.match_conditions.is_empty() {
            return Ok(true);
        }
        let Versioned { object, old } = versioned.clone();
        let (namespace, access) = (self.namespace_object(request), self.access_of(request.user));
        let input = Input { request, resource, object, old, namespace, params: Value::Null, access };
        match evaluate::conditions(&hook.match_conditions, &evaluate::variables(&input)) {
            Ok(met) => Ok(met),
            Err(_) if hook.fails_open() => Ok(false),
            Err(why) => Err(Error::forbidden(request.target.resource.named(), &request.name, why)),
        }
    }

    /// Asks one webhook. A response is a yes.
    async fn ask(
        &self,
        request: &Attributes<'_>,
        hook: &Hook,
        resource: &Resource,
        versioned: &Versioned,
        mutating: bool,
    ) -> Result<AdmissionResponse, WebhookError> {
        if request.dry_run && !matches!(hook.side_effects.as_deref(), Some("None" | "NoneOnDryRun")) {
            let why = format!("admission webhook \"{}\" does not support dry run", hook.name);
            return Err(WebhookError::Refused(Error::bad_request(why)));
        }
        let Some(version) = review::version(&hook.admission_review_versions) else {
            let why = "could not create admission objects: webhook does not accept known AdmissionReview \
                       versions (v1, v1beta1)";
            return Err(WebhookError::Call(why.into()));
        };
        let uid = self.environment().uid();
        let (object, old) = (versioned.object.as_ref(), versioned.old.as_ref());
        let body = review::question(version, &uid, request, resource, object, old);
        let call = Call {
            config: &hook.client_config,
            body: &body,
            timeout: hook.timeout(),
            limit: ANSWER_LIMIT,
            agent: AGENT,
        };
        let answer = self.call_webhook(&call).await;
        let answer =
            answer.map_err(|error| WebhookError::Call(format!("failed to call webhook: {error}")))?;
        let response =
            review::response(version, &uid, mutating, &answer).map_err(|unusable| match unusable {
                Unusable::Undecodable(why) => WebhookError::Call(format!("failed to call webhook: {why}")),
                Unusable::Invalid(why) => {
                    WebhookError::Call(format!("received invalid webhook response: {why}"))
                }
            })?;
        for warning in &response.warnings {
            request.warnings.add(warning);
        }
        for (key, value) in &response.annotations {
            request.warnings.audit().annotate(&format!("{}/{key}", hook.name), || value.clone());
        }
        if response.allowed {
            return Ok(response);
        }
        Err(WebhookError::Refused(denied(&hook.name, response.status)))
    }
}

/// The object with the patch of a response, if there is one.
fn patched(
    request: &Attributes<'_>,
    hook: &Hook,
    resource: &Resource,
    response: AdmissionResponse,
    object: Option<Value>,
) -> Result<Option<Value>, WebhookError> {
    let Some((bytes, kind)) = response.patch else { return Ok(None) };
    let operations = patch::decode(&bytes).map_err(|problem| match problem {
        Problem::Undecodable(why) | Problem::Unfit(why) => {
            WebhookError::Call(format!("received undecodable patch in webhook response: {why}"))
        }
    })?;
    if operations.is_empty() {
        return Ok(None);
    }
    let Some(mut object) = object else {
        let why = format!(
            "admission webhook \"{}\" attempted to modify the object, which is not supported for this operation",
            hook.name
        );
        return Err(WebhookError::Refused(Error::internal(why)));
    };
    if kind != "JSONPatch" {
        return Err(WebhookError::Call(format!("unsupported patch type \"{kind}\"")));
    }
    if request.has_own_kind() {
        object["kind"] = json!(resource.kind);
        object["apiVersion"] = json!(resource.api_version());
    }
    match patch::apply(&mut object, &operations) {
        Ok(()) => Ok(Some(object)),
        Err(Problem::Undecodable(why) | Problem::Unfit(why)) => {
            Err(WebhookError::Refused(Error::internal(why)))
        }
    }
}

/// The webhook could not be asked, and its policy is that then the request fails.
fn uncallable(hook: &Hook, why: &str) -> Error {
    tracing::warn!(webhook = hook.name, why, "failed calling webhook, failing closed");
    Error::internal(format!("failed calling webhook \"{}\": {why}", hook.name))
}

/// The webhook said no.
fn denied(hook: &str, status: Option<Value>) -> Error {
    let mut status = status.unwrap_or_else(|| json!({}));
    let text = |status: &Value, field: &str| status[field].as_str().unwrap_or_default().to_owned();
    let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let code = code.filter(|code| (400..=599).contains(code)).unwrap_or(400);
    let by = format!("admission webhook \"{hook}\" denied the request");
    let message = match (text(&status, "message"), text(&status, "reason")) {
        (message, _) if !message.is_empty() => format!("{by}: {message}"),
        (_, reason) if !reason.is_empty() => format!("{by}: {reason}"),
        _ => format!("{by} without explanation"),
    };
    status["message"] = json!(message);
    status["code"] = json!(code);
    status["status"] = json!("Failure");
    Error::of_status(status, code, message)
}
