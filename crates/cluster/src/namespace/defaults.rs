//! What every namespace has from the start: the `default` ServiceAccount and the cluster's CA certificate; and what
//! the first one has, the Service of the API.

use std::sync::Arc;

use windlass::{
    Action, Context, Controller, Object, ObjectKey, Reconciler,
    k8s_openapi::{
        api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount},
        apimachinery::pkg::apis::meta::v1::ObjectMeta,
    },
    rbac, serde_json,
};

use crate::pods;

const ACCOUNT: &str = "default";
/// The Service of the API, and the namespace that it is in.
const API: (&str, &str) = ("default", "kubernetes");
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

/// The controller that puts the Service of the API back when somebody deletes it, as `kubectl delete service --all`
/// does.
pub(crate) fn api_service() -> Controller<ApiService> {
    Controller::new(ApiService)
        .name("kubernetesservice")
        .watches::<Service, _>(|service, _| {
            let mut namespaces = namespace_of(service, API.1);
            namespaces.retain(|namespace| namespace.name() == API.0);
            namespaces
        })
        .permits([rbac::rule("", ["services"], ["create"])])
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

/// Keeps the Service of the API.
pub(crate) struct ApiService;

impl Reconciler for ApiService {
    type Resource = Namespace;
    type Error = windlass::Error;

    async fn reconcile(&self, _: Arc<Namespace>, ctx: &Context<Namespace>) -> windlass::Result<Action> {
        let (namespace, name) = API;
        if ctx.key().name() == namespace && ctx.get::<Service>(Some(namespace), name)?.is_none() {
            let service = serde_json::from_value(windlass_apiserver::registry::api_service());
            create::<Service>(ctx, service.expect("the Service of the API must be one")).await?;
        }
        Ok(Action::await_change())
    }
}
