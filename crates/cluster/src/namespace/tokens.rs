//! Secrets with the token of a ServiceAccount: they go with their account.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, ObjectKey, Reader, Reconciler,
    k8s_openapi::api::core::v1::{Secret, ServiceAccount},
    rbac,
};

use crate::pods;

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";

/// Secrets by their account: `namespace/name`.
const BY_ACCOUNT: &str = "token-account";

/// The controller, ready for an operator.
pub(crate) fn controller() -> Controller<Tokens> {
    Controller::new(Tokens)
        .name("serviceaccount-token-controller")
        .index::<Secret>(BY_ACCOUNT, |secret| place(secret).into_iter().collect())
        .watches::<ServiceAccount, _>(secrets)
        .permits([rbac::rule("", ["serviceaccounts"], ["get"]), rbac::rule("", ["secrets"], ["delete"])])
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The account of a Secret with a token.
fn account(secret: &Secret) -> Option<&str> {
    annotation(secret, NAME).filter(|_| secret.type_.as_deref() == Some(TYPE))
}

fn place(secret: &Secret) -> Option<String> {
    Some(format!("{}/{}", secret.metadata.namespace.as_deref().unwrap_or_default(), account(secret)?))
}

/// The Secrets with tokens of an account.
fn secrets(account: &ServiceAccount, cache: &Reader) -> Vec<ObjectKey> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let place = format!("{}/{}", text(&account.metadata.namespace), text(&account.metadata.name));
    let found = cache.indexed::<Secret>(BY_ACCOUNT, &place).unwrap_or_default();
    found.iter().map(|secret| ObjectKey::of(&**secret)).collect()
}

/// Deletes tokens whose account is gone.
pub(crate) struct Tokens;

impl Reconciler for Tokens {
    type Resource = Secret;
    type Error = windlass::Error;

    async fn reconcile(&self, secret: Arc<Secret>, ctx: &Context<Secret>) -> windlass::Result<Action> {
        let Some(name) = account(&secret).filter(|_| !pods::is_terminating(&secret.metadata)) else {
            return Ok(Action::await_change());
        };
        let uid = annotation(&secret, UID);
        let is_own =
            |account: &ServiceAccount| uid.is_none_or(|uid| account.metadata.uid.as_deref() == Some(uid));
        let namespace = ctx.key().namespace();
        if ctx.get::<ServiceAccount>(namespace, name)?.is_some_and(|account| is_own(&account)) {
            return Ok(Action::await_change());
        }
        // The cache may not know it yet.
        if ctx.fetch::<ServiceAccount>(namespace, name).await?.is_none_or(|account| !is_own(&account)) {
            ctx.delete(&*secret).await?;
        }
        Ok(Action::await_change())
    }
}
