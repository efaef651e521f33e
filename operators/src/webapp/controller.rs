//! The flow of a WebApp: gather, apply, report, as every kind on a Deployment does it.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment,
        autoscaling::v2::HorizontalPodAutoscaler,
        core::v1::{ConfigMap, Secret, Service},
        networking::v1::Ingress,
        policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::Condition,
};
use kube::{
    Api, ResourceExt,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use serde_json::json;
use windlass::{
    Action, Applied, Children, Context, Controller, Object, ObjectKey, Reader, Reconciler, Watch,
    conditions::{DEGRADED, is_false, is_true},
};

use super::{
    api::{WebApp, WebAppStatus, gateway::HTTPRoute},
    build, domains,
    route::{self, Way},
    status,
};
use crate::workload::{
    Error, Problem, Rollout, Settings,
    deployed::{self, Workload},
    digest, pods,
};

/// The index of WebApps by the ConfigMaps and Secrets that their Pods use: `ConfigMap/name`.
const USES: &str = "uses";
/// The field manager that holds the number of replicas between the end of ours and the autoscaler's first word.
const HANDOVER: &str = "windlass-handover";

/// The controller of WebApps.
pub fn controller(settings: Settings) -> Controller<WebApps> {
    let controller = Controller::new(WebApps)
        .owns::<Deployment>()
        .owns::<Service>()
        .owns::<Ingress>()
        .owns_with(Watch::<HTTPRoute>::new().optional())
        .owns::<HorizontalPodAutoscaler>()
        .owns::<PodDisruptionBudget>()
        .watches::<WebApp, _>(rivals)
        .watches::<ConfigMap, _>(|map: &ConfigMap, cache: &Reader| users("ConfigMap", map, cache))
        .watches::<Secret, _>(|secret: &Secret, cache: &Reader| users("Secret", secret, cache))
        .index::<WebApp>(domains::PLACES, domains::places)
        .index::<WebApp>(USES, |app| {
            uses(app).into_iter().map(|(kind, name)| format!("{kind}/{name}")).collect()
        });
    settings.apply(pods::watched(controller, build::UID))
}

/// The WebApps that want a place of this one: who has it may have changed.
fn rivals(app: &WebApp, cache: &Reader) -> Vec<ObjectKey> {
    let mut keys = Vec::new();
    for place in domains::places(app) {
        let all = cache.indexed::<WebApp>(domains::PLACES, &place).unwrap_or_default();
        keys.extend(all.iter().filter(|rival| rival.uid() != app.uid()).map(|rival| ObjectKey::of(&**rival)));
    }
    keys
}

/// The WebApps whose Pods use an object.
fn users<K: Object>(kind: &str, object: &K, cache: &Reader) -> Vec<ObjectKey> {
    let value = format!("{kind}/{}", object.name_any());
    let all = cache.indexed::<WebApp>(USES, &value).unwrap_or_default();
    all.iter().filter(|app| app.namespace() == object.namespace()).map(|app| ObjectKey::of(&**app)).collect()
}

/// The ConfigMaps and Secrets that the Pods' environment comes from.
fn uses(app: &WebApp) -> Vec<(&'static str, String)> {
    let mut used = Vec::new();
    for source in &app.spec.env_from {
        used.extend(source.config_map_ref.iter().map(|it| ("ConfigMap", it.name.clone())));
        used.extend(source.secret_ref.iter().map(|it| ("Secret", it.name.clone())));
    }
    for source in app.spec.env.iter().filter_map(|variable| variable.value_from.as_ref()) {
        used.extend(source.config_map_key_ref.iter().map(|it| ("ConfigMap", it.name.clone())));
        used.extend(source.secret_key_ref.iter().map(|it| ("Secret", it.name.clone())));
    }
    used.sort();
    used.dedup();
    used
}

/// The reconciler.
#[derive(Clone, Copy, Debug)]
pub struct WebApps;

impl Reconciler for WebApps {
    type Resource = WebApp;
    type Error = Error;

    async fn reconcile(&self, app: Arc<WebApp>, ctx: &Context<WebApp>) -> Result<Action, Error> {
        hand_over(&app, ctx).await?;
        deployed::reconcile(&*app, ctx).await
    }
}

/// Lets go of the number of replicas without losing it, when an autoscaler is to take over.
///
/// A field that its only manager no longer names is removed, and the API server would put the default in its place:
/// 1. Someone else must hold the number until the autoscaler does.
async fn hand_over(app: &WebApp, ctx: &Context<WebApp>) -> Result<(), Error> {
    let scaled = ctx.owned::<HorizontalPodAutoscaler>().map_err(Error::ReadChildren)?;
    let owned = ctx.owned::<Deployment>().map_err(Error::ReadChildren)?;
    let deployment = owned.iter().find(|deployment| deployment.name_any() == app.name_any());
    let (Some(deployment), Some(_), true) = (deployment, &app.spec.autoscaling, scaled.is_empty()) else {
        return Ok(());
    };
    let namespace = app.namespace().unwrap_or_default();
    let kind = ApiResource::erase::<Deployment>(&());
    let api = Api::<DynamicObject>::namespaced_with(ctx.client().clone(), &namespace, &kind);
    let held = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": deployment.name_any(), "uid": deployment.uid()},
        "spec": {"replicas": deployment.spec.replicas},
    });
    let params = PatchParams::apply(HANDOVER).force();
    let sent = api.patch(&deployment.name_any(), &params, &Patch::Apply(held)).await;
    sent.map(|_| ()).map_err(|source| Error::HandOver(Box::new(source)))
}

/// The way to a WebApp, and what is in it.
struct Access {
    way: Way,
    obstacle: Option<Problem>,
}

impl Access {
    fn of(app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<Self> {
        let served = ctx.is_served::<HTTPRoute>()?;
        let way = route::way(app, served);
        let obstacle = conflict(app, ctx)?.or_else(|| route::obstacle(way, served));
        Ok(Self { way, obstacle })
    }
}

/// The problem of a WebApp that does not get a place that it wants.
fn conflict(app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<Option<Problem>> {
    for place in domains::places(app) {
        let all = ctx.indexed::<WebApp>(domains::PLACES, &place)?;
        if let Some(problem) = domains::conflict(app, &place, &all) {
            return Ok(Some(problem));
        }
    }
    Ok(None)
}

/// The digest of everything that the Pods' environment comes from.
fn config(app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<Option<String>> {
    let namespace = app.namespace();
    let mut seen = Vec::new();
    for (kind, name) in uses(app) {
        let data = match kind {
            "ConfigMap" => ctx.get::<ConfigMap>(namespace.as_deref(), &name)?.map(|map| json!(map.data)),
            _ => ctx.get::<Secret>(namespace.as_deref(), &name)?.map(|secret| json!(secret.data)),
        };
        seen.push((kind, name, data));
    }
    Ok((!seen.is_empty()).then(|| digest::of(&seen)))
}

impl Workload for WebApp {
    const UID: &'static str = build::UID;

    fn check(&self) -> Result<(), Problem> {
        build::check(self)
    }

    fn children(&self, ctx: &Context<Self>) -> windlass::Result<Children> {
        let Access { way, obstacle } = Access::of(self, ctx)?;
        let way = if obstacle.is_none() { way } else { Way::None };
        Ok(build::children(self, config(self, ctx)?.as_deref(), way))
    }

    fn wanted(&self, deployment: &Deployment) -> i32 {
        match self.spec.autoscaling {
            Some(_) => deployment.spec.replicas.unwrap_or(1),
            None => self.spec.replicas,
        }
    }

    fn image(&self) -> &str {
        &self.spec.image
    }

    fn reported(&self, seen: Option<&Rollout>, conditions: Vec<Condition>) -> WebAppStatus {
        status::reported(self, seen, conditions)
    }

    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool> {
        deployed::has_service(self, ctx)
    }

    fn more_conditions(&self, ctx: &Context<Self>, applied: &Applied) -> windlass::Result<Vec<Condition>> {
        let Access { way, obstacle } = Access::of(self, ctx)?;
        if let Some(problem) = obstacle {
            let routes = is_false(route::ROUTES_READY, problem.reason, &problem.message);
            return Ok(vec![routes, is_true(DEGRADED, problem.reason, problem.message)]);
        }
        let ingress = applied.get::<Ingress>(&self.name_any());
        let route = applied.get::<HTTPRoute>(&self.name_any());
        let routes = route::judge(self, way, ingress.as_deref(), route.as_deref());
        let refused = (routes.status == "False").then(|| is_true(DEGRADED, &routes.reason, &routes.message));
        let unready = route::unready(way, &routes);
        Ok([Some(routes), refused, unready].into_iter().flatten().collect())
    }
}
