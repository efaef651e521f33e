//! What a webhook is told about the request beside the object: who asks, for what, and whether it is a rehearsal.

use k8s_openapi::api::authentication::v1::UserInfo;
use kube::{
    Client,
    core::{
        DynamicObject,
        admission::{AdmissionRequest, Operation},
    },
};

use super::tools::Tools;
use crate::cache::Reader;

/// The request that is being judged.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is being done.
    pub operation: Operation,
    /// Who does it.
    pub user: UserInfo,
    /// Whether nothing will be stored. A webhook with side effects must not have them then.
    pub dry_run: bool,
    /// The name of the object; empty when the server is going to generate it.
    pub name: String,
    /// The namespace of the object; `None` for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// The subresource that is written, such as `status`.
    pub subresource: Option<String>,
    /// The version in which the user sent the object, if the API server translated it for this webhook.
    pub requested_version: Option<String>,
    /// Identifies this call in the API server's log and in this process'.
    pub uid: String,
    tools: Option<Tools>,
}

impl Request {
    fn new(operation: Operation) -> Self {
        Self {
            operation,
            user: UserInfo::default(),
            dry_run: false,
            name: String::new(),
            namespace: None,
            subresource: None,
            requested_version: None,
            uid: String::new(),
            tools: None,
        }
    }

    /// A creation, for tests.
    pub fn create() -> Self {
        Self::new(Operation::Create)
    }

    /// An update, for tests.
    pub fn update() -> Self {
        Self::new(Operation::Update)
    }

    /// A deletion, for tests.
    pub fn delete() -> Self {
        Self::new(Operation::Delete)
    }

    /// The same request made by this user.
    pub fn by(mut self, user: impl Into<String>) -> Self {
        self.user.username = Some(user.into());
        self
    }

    /// The same request as a dry run.
    pub fn dry_run(mut self) -> Self {
        self.dry_run = true;
        self
    }

    /// Whether the user belongs to a group.
    pub fn user_is_in(&self, group: &str) -> bool {
        self.user.groups.iter().flatten().any(|own| own == group)
    }

    /// The operator's client, for what the cache cannot say. Its requests have deadlines; the API server waits for
    /// the answer of this webhook meanwhile. `None` in a test without an operator.
    pub fn client(&self) -> Option<&Client> {
        self.tools.as_ref().map(|tools| &tools.client)
    }

    /// The cache, of the kinds that the webhook [reads](super::Webhook::reads). `None` in a test without an operator.
    ///
    /// It is a little behind the API server: two requests at the same time do not see each other.
    pub fn cache(&self) -> Option<&Reader> {
        self.tools.as_ref().map(|tools| &tools.cache)
    }

    pub(super) fn of(request: &AdmissionRequest<DynamicObject>, tools: Option<Tools>) -> Self {
        let requested = request.request_kind.as_ref().filter(|kind| **kind != request.kind);
        Self {
            operation: request.operation.clone(),
            user: request.user_info.clone(),
            dry_run: request.dry_run,
            name: request.name.clone(),
            namespace: request.namespace.clone().filter(|namespace| !namespace.is_empty()),
            subresource: request.sub_resource.clone().filter(|subresource| !subresource.is_empty()),
            requested_version: requested.map(|kind| kind.version.clone()),
            uid: request.uid.clone(),
            tools,
        }
    }
}
