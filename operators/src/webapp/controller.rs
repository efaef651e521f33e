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
    core::PartialObjectMeta,
};
use serde_json::json;
use windlass::{
    Action, Applied, Children, Context, Controller, Object, ObjectKey, Reader, Reconciler, Watch,
    conditions::{DEGRADED, is_false, is_true},
};

use super::{
    api::{WebApp, WebAppStatus, gateway::HTTPRoute},
    autoscaler, build,
    config::{Digests, uses},
    domains,
    route::{self, Way},
    status,
};
use crate::workload::{
    Error, Living, Problem, Rollout, Settings,
    deployed::{self, Workload},
    pods,
};

/// The index of WebApps by the ConfigMaps and Secrets that their Pods use: `ConfigMap/name`.
const USES: &str = "uses";
/// The field manager that holds the number of replicas between the end of ours and the autoscaler's first word.
const HANDOVER: &str = "windlass-handover";

/// The controller of WebApps.
pub fn controller(settings: Settings) -> Controller<WebApps> {
    let controller = Controller::new(WebApps::default())
        .owns::<Deployment>()
        .owns::<Service>()
        .owns::<Ingress>()
        .owns_with(Watch::<HTTPRoute>::new().optional())
        .owns::<HorizontalPodAutoscaler>()
        .owns::<PodDisruptionBudget>()
        .watches::<WebApp, _>(rivals)
        .watches::<PartialObjectMeta<ConfigMap>, _>(|map, cache: &Reader| users("ConfigMap", map, cache))
        .watches::<PartialObjectMeta<Secret>, _>(|secret, cache: &Reader| users("Secret", secret, cache))
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

/// The reconciler.
#[derive(Clone, Debug, Default)]
pub struct WebApps {
    digests: Digests,
    living: Living,
}

impl Reconciler for WebApps {
    type Resource = WebApp;
    type Error = Error;

    async fn reconcile(&self, app: Arc<WebApp>, ctx: &Context<WebApp>) -> Result<Action, Error> {
        self.living.see(ctx.key());
        hand_over(&app, ctx).await?;
        let config = self.digests.of(&app, ctx).await.map_err(Error::ReadChildren)?;
        deployed::reconcile(&*app, ctx, &config).await
    }

    async fn deleted(&self, key: &ObjectKey, _: &Context<WebApp>) -> Result<(), Error> {
        self.digests.forget(key);
        self.living.gone(key);
        Ok(())
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

/// The way to a WebApp, the domains that lead there, and what is in the way of others.
struct Access {
    way: Way,
    hosts: Vec<String>,
    obstacle: Option<Problem>,
    shortfall: Option<Problem>,
}

impl Access {
    fn of(app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<Self> {
        let served = ctx.is_served::<HTTPRoute>()?;
        let way = route::way(app, served);
        let (hosts, conflict) = contest(app, ctx)?;
        let blocked = route::obstacle(way, served);
        let closed = blocked.is_some() || hosts.is_empty();
        let shortfall = route::shortfall(app, way);
        let way = if closed { Way::None } else { way };
        Ok(Self { way, hosts, obstacle: conflict.or(blocked), shortfall })
    }
}

/// The domains that are a WebApp's own, and the problem of one that does not get all that it wants.
fn contest(app: &WebApp, ctx: &Context<WebApp>) -> windlass::Result<(Vec<String>, Option<Problem>)> {
    let (mut own, mut lost) = (Vec::new(), Vec::new());
    if !domains::is_routed(app) {
        return Ok((own, None));
    }
    for host in domains::hosts(app) {
        let place = domains::place(app, &host);
        let all = ctx.indexed::<WebApp>(domains::PLACES, &place)?;
        match domains::conflict(app, &place, &all) {
            Some(problem) => lost.push(problem.message),
            None => own.push(host),
        }
    }
    let problem = (!lost.is_empty()).then(|| Problem::new(domains::CONFLICT, lost.join("; ")));
    Ok((own, problem))
}

impl Workload for WebApp {
    const UID: &'static str = build::UID;
    /// The digest of the ConfigMaps and Secrets that the Pods use.
    type Given = Option<String>;

    fn check(&self) -> Result<(), Problem> {
        build::check(self)
    }

    fn children(&self, ctx: &Context<Self>, config: &Option<String>) -> windlass::Result<Children> {
        let Access { way, hosts, .. } = Access::of(self, ctx)?;
        Ok(build::children(self, config.as_deref(), way, &hosts))
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

    fn reported(
        &self,
        ctx: &Context<Self>,
        seen: Option<&Rollout>,
        conditions: Vec<Condition>,
    ) -> WebAppStatus {
        let access = Access::of(self, ctx).ok();
        let url = access.map(|access| route::url(self, access.way, &access.hosts));
        status::reported(self, url, seen, conditions)
    }

    fn can_serve(&self, ctx: &Context<Self>) -> windlass::Result<bool> {
        deployed::has_service(self, ctx)
    }

    fn more_conditions(&self, ctx: &Context<Self>, applied: &Applied) -> windlass::Result<Vec<Condition>> {
        let Access { way, obstacle, shortfall, .. } = Access::of(self, ctx)?;
        let scaling = self.spec.autoscaling.as_ref().map(|_| {
            let live = applied.get::<HorizontalPodAutoscaler>(&self.name_any());
            autoscaler::judge(live.as_deref())
        });
        let routes = match &obstacle {
            Some(problem) => is_false(route::ROUTES_READY, problem.reason, &problem.message),
            None => {
                let ingress = applied.get::<Ingress>(&self.name_any());
                let route = applied.get::<HTTPRoute>(&self.name_any());
                route::judge(self, way, ingress.as_deref(), route.as_deref())
            }
        };
        // The first that a person has to put right.
        let refused = |condition: &Condition| {
            (condition.status == "False").then(|| is_true(DEGRADED, &condition.reason, &condition.message))
        };
        let degraded = refused(&routes)
            .or_else(|| shortfall.map(|problem| is_true(DEGRADED, problem.reason, problem.message)))
            .or_else(|| scaling.as_ref().and_then(refused));
        // A domain of several that somebody else has does not make the others unreachable.
        let unready = if obstacle.is_none() { route::unready(way, &routes) } else { None };
        Ok([Some(routes), scaling, degraded, unready].into_iter().flatten().collect())
    }
}
