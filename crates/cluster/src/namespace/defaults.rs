//! What every namespace has from the start: the `default` ServiceAccount and the cluster's CA certificate.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, Object, ObjectKey, Reconciler,
    k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace, ServiceAccount},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
    rbac,
};

use crate::pods;

const ACCOUNT: &str = "default";
const ROOT_CA: &str = "kube-root-ca.crt";
const CA_KEY: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the \
     internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes \
     clusters.",
);

/// The controller that gives every namespace its ServiceAccount.
pub(crate) fn accounts() -> Controller<Accounts> {
    Controller::new(Accounts)
        .name("serviceaccount-controller")
        .watches::<ServiceAccount, _>(|account, _| namespace_of(account, ACCOUNT))
        .permits([rbac::rule("", ["serviceaccounts"], ["create"])])
}

/// The controller that publishes the cluster's CA certificate, given as PEM, in every namespace.
pub(crate) fn certificates(authority: String) -> Controller<Certificates> {
    Controller::new(Certificates { authority })
        .name("root-ca-certificate-publisher")
        .watches::<ConfigMap, _>(|map, _| namespace_of(map, ROOT_CA))
        .permits([rbac::rule("", ["configmaps"], ["create", "patch"])])
}

fn namespace_of<K: Object>(object: &K, name: &str) -> Vec<ObjectKey> {
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().filter(|_| meta.name.as_deref() == Some(name));
    namespace.map(ObjectKey::cluster).into_iter().collect()
}

fn meta(namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.into()), namespace: Some(namespace.into()), ..ObjectMeta::default() }
}

/// Creates an object unless somebody else was faster, or the namespace went in between.
async fn create<K: Object>(ctx: &Context<Namespace>, object: K) -> windlass::Result<()> {
    match ctx.create(object).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_already_exists() || error.is_not_found() => Ok(()),
        Err(error) if error.status().is_some_and(|status| status.code == 403) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Gives every namespace its ServiceAccount.
pub(crate) struct Accounts;

impl Reconciler for Accounts {
    type Resource = Namespace;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        namespace: Arc<Namespace>,
        ctx: &Context<Namespace>,
    ) -> windlass::Result<Action> {
        let name = ctx.key().name();
        if !pods::is_terminating(&namespace.metadata)
            && ctx.get::<ServiceAccount>(Some(name), ACCOUNT)?.is_none()
        {
            create(ctx, ServiceAccount { metadata: meta(name, ACCOUNT), ..ServiceAccount::default() })
                .await?;
        }
        Ok(Action::await_change())
    }
}

/// Publishes the CA certificate.
pub(crate) struct Certificates {
    authority: String,
}

impl Reconciler for Certificates {
    type Resource = Namespace;
    type Error = windlass::Error;

    async fn reconcile(
        &self,
        namespace: Arc<Namespace>,
        ctx: &Context<Namespace>,
    ) -> windlass::Result<Action> {
        let name = ctx.key().name();
        if pods::is_terminating(&namespace.metadata) {
            return Ok(Action::await_change());
        }
        let fill = |map: &mut ConfigMap| {
            map.data = Some([(CA_KEY.to_owned(), self.authority.clone())].into());
            let annotations = map.metadata.annotations.get_or_insert_default();
            annotations.insert(DESCRIPTION.0.into(), DESCRIPTION.1.into());
        };
        match ctx.get::<ConfigMap>(Some(name), ROOT_CA)? {
            Some(map) => {
                return crate::retry_conflicts(ctx.modify(&*map, fill).await.map(|_| Action::await_change()));
            }
            None => {
                let mut map = ConfigMap { metadata: meta(name, ROOT_CA), ..ConfigMap::default() };
                fill(&mut map);
                create(ctx, map).await?;
            }
        }
        Ok(Action::await_change())
    }
}
