//! A webhook: a handler, and when the API server is to ask it.

use std::{fmt, future::Future, pin::Pin, sync::Arc, time::Duration};

use k8s_openapi::{
    api::admissionregistration::v1::{MatchCondition, RuleWithOperations},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use kube::core::{
    DynamicObject,
    admission::{AdmissionRequest, AdmissionResponse, AdmissionReview, Operation},
};

use super::{
    Defaulter, Request, Validator,
    admission::{self, refused},
    tools::{Read, Tools},
    verdict::failure,
};
use crate::{
    object::{AnyObject, Kind, Object},
    rbac::{Access, Call, Declared},
};

/// What a webhook does with objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    /// Judges.
    Validating,
    /// Fills in.
    Defaulting,
}

impl Mode {
    /// The verb in paths and names.
    pub(crate) fn verb(self) -> &'static str {
        match self {
            Self::Validating => "validate",
            Self::Defaulting => "mutate",
        }
    }
}

/// What the API server does with a request when the webhook does not answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailurePolicy {
    /// It refuses the request.
    #[default]
    Fail,
    /// It goes on as if there were no webhook.
    Ignore,
}

type Answer = Pin<Box<dyn Future<Output = AdmissionResponse> + Send>>;
type Handler = Arc<dyn Fn(AdmissionRequest<DynamicObject>, Request) -> Answer + Send + Sync>;

/// What a webhook is asked about.
#[derive(Clone)]
enum Target {
    Kind(Kind),
    Rules { name: String, rules: Vec<RuleWithOperations> },
}

/// A validator, a defaulter or a handler of your own, and when the API server is to ask it.
#[derive(Clone)]
pub struct Webhook {
    pub(crate) mode: Mode,
    target: Target,
    operations: Vec<Operation>,
    pub(crate) failure_policy: FailurePolicy,
    pub(crate) timeout: Duration,
    subresources: Vec<String>,
    pub(crate) namespaces: Option<LabelSelector>,
    pub(crate) objects: Option<LabelSelector>,
    pub(crate) conditions: Vec<MatchCondition>,
    pub(super) reads: Vec<Read>,
    declared: Vec<Declared>,
    handler: Handler,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("path", &self.path()).finish_non_exhaustive()
    }
}

impl Webhook {
    /// Whether it is about the kind of this CRD and no other.
    pub(crate) fn is_about(&self, crd: &str) -> bool {
        matches!(&self.target, Target::Kind(kind) if format!("{}.{}", kind.plural, kind.group) == crd)
    }

    /// Asks `validator` about creations and updates.
    pub fn validating<V: Validator>(validator: V) -> Self
    where
        V::Resource: Object,
    {
        Self::validating_dynamic(validator, Kind::of::<V::Resource>())
    }

    /// As [`validating`](Self::validating), for a kind that is known only when the program runs. The validator's
    /// resource is [`DynamicObject`], as a rule.
    pub fn validating_dynamic<V: Validator>(validator: V, kind: Kind) -> Self {
        let (validator, of) = (Arc::new(validator), Arc::new(kind.clone()));
        let handler = move |request: AdmissionRequest<DynamicObject>, info: Request| -> Answer {
            let (validator, kind) = (validator.clone(), of.clone());
            Box::pin(async move { admission::validate(&*validator, &kind, &request, &info).await })
        };
        Self::new(Mode::Validating, Target::Kind(kind), Arc::new(handler))
    }

    /// Lets `defaulter` fill in creations and updates.
    pub fn defaulting<D: Defaulter>(defaulter: D) -> Self
    where
        D::Resource: Object,
    {
        Self::defaulting_dynamic(defaulter, Kind::of::<D::Resource>())
    }

    /// As [`defaulting`](Self::defaulting), for a kind that is known only when the program runs.
    pub fn defaulting_dynamic<D: Defaulter>(defaulter: D, kind: Kind) -> Self {
        let (defaulter, of) = (Arc::new(defaulter), Arc::new(kind.clone()));
        let handler = move |request: AdmissionRequest<DynamicObject>, info: Request| -> Answer {
            let (defaulter, kind) = (defaulter.clone(), of.clone());
            Box::pin(async move { admission::default(&*defaulter, &kind, &request, &info).await })
        };
        Self::new(Mode::Defaulting, Target::Kind(kind), Arc::new(handler))
    }

    /// Answers reviews with a handler of your own, for whatever the rules say: several kinds, all of them (`*`), or
    /// `CONNECT`. The name, of lower-case letters, digits and dashes, is part of the path.
    ///
    /// ```
    /// use windlass::{
    ///     k8s_openapi::api::admissionregistration::v1::RuleWithOperations,
    ///     kube::core::admission::AdmissionResponse,
    ///     webhook::{Mode, Webhook},
    /// };
    ///
    /// let all = |text: &str| Some(vec![text.to_owned()]);
    /// let rule = RuleWithOperations {
    ///     api_groups: all("apps"),
    ///     api_versions: all("*"),
    ///     operations: all("CREATE"),
    ///     resources: all("*"),
    ///     scope: None,
    /// };
    /// let webhook = Webhook::raw(Mode::Validating, "freeze", [rule], |request, info| async move {
    ///     let response = AdmissionResponse::from(&request);
    ///     if info.user_is_in("admins") { response } else { response.deny("nothing new before Monday") }
    /// });
    /// assert_eq!(webhook.path(), "/validate-freeze");
    /// ```
    pub fn raw<F>(
        mode: Mode,
        name: impl Into<String>,
        rules: impl IntoIterator<Item = RuleWithOperations>,
        handler: impl Fn(AdmissionRequest<DynamicObject>, Request) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = AdmissionResponse> + Send + 'static,
    {
        let target = Target::Rules { name: name.into(), rules: rules.into_iter().collect() };
        let handler = move |request, info| Box::pin(handler(request, info)) as Answer;
        Self::new(mode, target, Arc::new(handler))
    }

    fn new(mode: Mode, target: Target, handler: Handler) -> Self {
        Self {
            mode,
            target,
            operations: vec![Operation::Create, Operation::Update],
            failure_policy: FailurePolicy::default(),
            timeout: Duration::from_secs(10),
            subresources: Vec::new(),
            namespaces: None,
            objects: None,
            conditions: Vec::new(),
            reads: Vec::new(),
            declared: Vec::new(),
            handler,
        }
    }

    /// Caches objects of kind `K`, so that the handler can look at them through [`Request::cache`]. No request is
    /// answered before they are there.
    #[track_caller]
    pub fn reads<K: Object>(self) -> Self {
        self.reads_of::<K>(Kind::of::<K>())
    }

    /// As [`reads`](Self::reads), for a kind that is known only when the program runs, and for metadata alone.
    #[track_caller]
    pub fn reads_of<K: AnyObject>(mut self, kind: Kind) -> Self {
        let call = Call::here("Webhook::reads");
        self.declared.push(Declared { access: Access::Reads(kind.clone()), call });
        self.reads.push(Read::of::<K>(kind));
        self
    }

    /// Asks only about requests for which a CEL expression is true, such as
    /// `request.userInfo.username != "system:admin"`. All conditions must be. The name is a qualified name that is
    /// unique in this webhook.
    pub fn match_condition(mut self, name: impl Into<String>, expression: impl Into<String>) -> Self {
        self.conditions.push(MatchCondition { name: name.into(), expression: expression.into() });
        self
    }

    /// Asks about deletions as well. A webhook that is down then keeps objects from being deleted.
    pub fn on_delete(mut self) -> Self {
        if !self.operations.contains(&Operation::Delete) {
            self.operations.push(Operation::Delete);
        }
        self
    }

    /// What happens when the webhook does not answer: the request fails unless set.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.failure_policy = policy;
        self
    }

    /// How long the API server waits for an answer, 1 to 30 seconds: 10 s unless set.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = limit.clamp(Duration::from_secs(1), Duration::from_secs(30));
        self
    }

    /// Asks about writes to a subresource as well, such as `status`.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.subresources.push(name.into());
        self
    }

    /// Asks only about objects in namespaces with these labels.
    pub fn in_namespaces(mut self, selector: LabelSelector) -> Self {
        self.namespaces = Some(selector);
        self
    }

    /// Asks only about objects with these labels.
    pub fn with_labels(mut self, selector: LabelSelector) -> Self {
        self.objects = Some(selector);
        self
    }

    /// Where the webhook is served, by controller-runtime's scheme: `/validate-apps-v1-deployment`.
    pub fn path(&self) -> String {
        match &self.target {
            Target::Kind(Kind { group, version, kind, .. }) => {
                format!("/{}-{}-{version}-{}", self.mode.verb(), group.replace('.', "-"), kind.to_lowercase())
            }
            Target::Rules { name, .. } => format!("/{}-{name}", self.mode.verb()),
        }
    }

    /// The name of the webhook in its configuration, which needs three parts.
    pub(crate) fn name(&self) -> String {
        let verb = self.mode.verb();
        match &self.target {
            Target::Kind(Kind { group, version, plural, .. }) => {
                let group = if group.is_empty() { "core" } else { group };
                format!("{verb}.{version}.{plural}.{group}")
            }
            Target::Rules { name, .. } => format!("{verb}.{name}.windlass.dev"),
        }
    }

    /// What the API server is to ask about.
    pub(crate) fn rules(&self) -> Vec<RuleWithOperations> {
        let kind = match &self.target {
            Target::Kind(kind) => kind,
            Target::Rules { rules, .. } => return rules.clone(),
        };
        let plural = &kind.plural;
        let subresources = self.subresources.iter().map(|name| format!("{plural}/{name}"));
        vec![RuleWithOperations {
            api_groups: Some(vec![kind.group.clone()]),
            api_versions: Some(vec![kind.version.clone()]),
            operations: Some(self.operations.iter().map(operation).collect()),
            resources: Some(std::iter::once(plural.clone()).chain(subresources).collect()),
            scope: None,
        }]
    }

    /// The kinds that are cached for it.
    pub(crate) fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// Answers a review, as the server does: for tests without one. The handler has neither a client nor a cache.
    pub async fn review(&self, review: AdmissionReview<DynamicObject>) -> AdmissionReview<DynamicObject> {
        let response = match TryInto::<AdmissionRequest<DynamicObject>>::try_into(review) {
            Ok(request) => self.respond(request, None).await,
            Err(error) => AdmissionResponse::invalid(error),
        };
        response.into_review()
    }

    pub(super) async fn respond(
        &self,
        request: AdmissionRequest<DynamicObject>,
        tools: Option<&Tools>,
    ) -> AdmissionResponse {
        // The API server does not wait longer, and what it does then is for the failure policy to say.
        if let Some(tools) = tools
            && tokio::time::timeout(self.timeout, tools.filled()).await.is_err()
        {
            let text = "the webhook's cache is not filled yet".to_owned();
            return refused(&request, failure(503, "ServiceUnavailable", text));
        }
        let info = Request::of(&request, tools.cloned());
        (self.handler)(request, info).await
    }
}

fn operation(operation: &Operation) -> String {
    let name = match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
        Operation::Connect => "CONNECT",
    };
    name.to_owned()
}
