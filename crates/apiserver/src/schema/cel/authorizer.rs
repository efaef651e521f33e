//! `authorizer`: expressions of admission that ask what somebody may do.
//!
//! ```text
//! authorizer.group('apps').resource('deployments').namespace('default').check('create').allowed()
//! authorizer.serviceAccount('default', 'robot').path('/healthz').check('get').allowed()
//! ```
//!
//! Each call gives a value that knows a little more; `check` asks, and what it gives has the answer.

use std::{fmt, sync::Arc};

use kube_cel::cel::{
    Context, ExecutionError, ResolveResult, Value,
    common::ast::{Expr, SelectExpr},
    extractors::This,
    objects::Opaque,
};

use super::functions;

/// The variable behind `authorizer.requestResource`. No expression can write that name.
pub(crate) const REQUEST_RESOURCE: &str = "@authorizer.requestResource";

/// Somebody who may or may not do things.
pub(crate) trait Access: fmt::Debug + Send + Sync {
    /// Whether the one who sent the request may do it, or the service account of this namespace and name.
    fn allows(&self, account: Option<(&str, &str)>, access_check: &AccessCheck, verb: &str) -> bool;
}

/// What is asked about, apart from the verb.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AccessCheck {
    Path(String),
    Resource(Resource),
}

/// A resource, or some of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resource {
    pub(crate) group: String,
    pub(crate) plural: String,
    pub(crate) subresource: String,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

/// What `authorizer` and its methods give.
#[derive(Clone)]
pub(crate) struct Asking {
    access: Arc<dyn Access>,
    account: Option<(String, String)>,
    state: State,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Start,
    Group(String),
    AccessCheck(AccessCheck),
    Decided(bool),
}

impl Asking {
    /// What `authorizer` is.
    pub(crate) fn start(access: Arc<dyn Access>) -> Value {
        Self { access, account: None, state: State::Start }.into_value()
    }

    /// What `authorizer.requestResource` is.
    pub(crate) fn about(access: Arc<dyn Access>, access_check: AccessCheck) -> Value {
        Self { access, account: None, state: State::AccessCheck(access_check) }.into_value()
    }

    fn into_value(self) -> Value {
        Value::Opaque(Arc::new(self))
    }

    fn with(&self, state: State) -> Value {
        Self { state, ..self.clone() }.into_value()
    }
}

impl fmt::Debug for Asking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("account", &self.account)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl PartialEq for Asking {
    fn eq(&self, other: &Self) -> bool {
        self.account == other.account && self.state == other.state
    }
}

impl Eq for Asking {}

impl Opaque for Asking {
    fn runtime_type_name(&self) -> &str {
        match &self.state {
            State::Start => functions::AUTHORIZER,
            State::Group(_) => functions::GROUP,
            State::AccessCheck(AccessCheck::Path(_)) => functions::PATH,
            State::AccessCheck(AccessCheck::Resource(_)) => functions::RESOURCE,
            State::Decided(_) => functions::DECISION,
        }
    }
}

/// Lets `authorizer.requestResource` be the variable that it is.
pub(super) fn request_resource(select: &SelectExpr) -> Option<Expr> {
    let of_authorizer = matches!(&select.operand.expr, Expr::Ident(name) if name == "authorizer");
    (of_authorizer && select.field == "requestResource" && !select.test)
        .then(|| Expr::Ident(REQUEST_RESOURCE.to_owned()))
}

/// Adds the methods.
pub(super) fn register(context: &mut Context<'_>) {
    context.add_function("serviceAccount", service_account);
    context.add_function("path", |This(of): This<Value>, path: Arc<String>| match asking(&of)? {
        it @ Asking { state: State::Start, .. } => {
            Ok(it.with(State::AccessCheck(AccessCheck::Path(path.to_string()))))
        }
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("group", |This(of): This<Value>, group: Arc<String>| match asking(&of)? {
        it @ Asking { state: State::Start, .. } => Ok(it.with(State::Group(group.to_string()))),
        _ => Err(ExecutionError::NoSuchOverload),
    });
    context.add_function("resource", |This(of): This<Value>, resource: Arc<String>| {
        let it = asking(&of)?;
        let State::Group(group) = &it.state else { return Err(ExecutionError::NoSuchOverload) };
        let (group, plural) = (group.clone(), resource.to_string());
        Ok(it.with(State::AccessCheck(AccessCheck::Resource(Resource {
            group,
            plural,
            ..Resource::default()
        }))))
    });
    context.add_function("subresource", |This(of): This<Value>, given: Arc<String>| {
        narrowed(&of, |it| it.subresource = given.to_string())
    });
    context.add_function("namespace", |This(of): This<Value>, given: Arc<String>| {
        narrowed(&of, |it| it.namespace = given.to_string())
    });
    context.add_function("name", |This(of): This<Value>, given: Arc<String>| {
        narrowed(&of, |it| it.name = given.to_string())
    });
    // Roles know no selectors.
    context.add_function("fieldSelector", |This(of): This<Value>, _: Arc<String>| narrowed(&of, |_| {}));
    context.add_function("labelSelector", |This(of): This<Value>, _: Arc<String>| narrowed(&of, |_| {}));
    context.add_function("check", |This(of): This<Value>, verb: Arc<String>| {
        let it = asking(&of)?;
        let State::AccessCheck(access_check) = &it.state else { return Err(ExecutionError::NoSuchOverload) };
        let account = it.account.as_ref().map(|(namespace, name)| (namespace.as_str(), name.as_str()));
        Ok(it.with(State::Decided(it.access.allows(account, access_check, &verb))))
    });
    context.add_function("allowed", |This(of): This<Value>| decided(&of).map(Value::Bool));
    context.add_function("errored", |This(of): This<Value>| decided(&of).map(|_| Value::Bool(false)));
    context.add_function("error", |This(of): This<Value>| decided(&of).map(|_| Value::from("")));
    context.add_function("reason", |This(of): This<Value>| decided(&of).map(|_| Value::from("")));
}

fn service_account(This(of): This<Value>, namespace: Arc<String>, name: Arc<String>) -> ResolveResult {
    match asking(&of)? {
        it @ Asking { state: State::Start, .. } => {
            let account = Some((namespace.to_string(), name.to_string()));
            Ok(Asking { account, ..it.clone() }.into_value())
        }
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn asking(value: &Value) -> Result<&Asking, ExecutionError> {
    match value {
        Value::Opaque(opaque) => opaque.downcast_ref().ok_or(ExecutionError::NoSuchOverload),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

fn decided(value: &Value) -> Result<bool, ExecutionError> {
    match asking(value)?.state {
        State::Decided(allowed) => Ok(allowed),
        _ => Err(ExecutionError::NoSuchOverload),
    }
}

/// A question about a resource that is about less of it.
fn narrowed(value: &Value, change: impl FnOnce(&mut Resource)) -> ResolveResult {
    let it = asking(value)?;
    let State::AccessCheck(AccessCheck::Resource(resource)) = &it.state else {
        return Err(ExecutionError::NoSuchOverload);
    };
    let mut resource = resource.clone();
    change(&mut resource);
    Ok(it.with(State::AccessCheck(AccessCheck::Resource(resource))))
}
