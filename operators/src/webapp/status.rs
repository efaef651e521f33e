//! What is reported about a WebApp. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use windlass::conditions;

use super::{
    api::{WebApp, WebAppStatus},
    build, domains, route,
};
use crate::workload::Rollout;

/// The status of a WebApp: what was seen, if anything could be, and what is to be said of it.
pub(super) fn reported(app: &WebApp, seen: Option<&Rollout>, conditions: Vec<Condition>) -> WebAppStatus {
    let counts = seen.map(Rollout::counts).unwrap_or_default();
    // Whether the domain is this WebApp's own stands in the conditions by now.
    let routes = conditions::find(&conditions, route::ROUTES_READY);
    let closed = [domains::CONFLICT, route::NOT_SERVED];
    let open = routes.is_none_or(|routes| !closed.contains(&routes.reason.as_str()));
    WebAppStatus {
        observed_generation: app.metadata.generation,
        url: Some(route::url(app, open)),
        desired_replicas: seen.map_or(app.spec.replicas, |seen| seen.wanted),
        replicas: counts.replicas.unwrap_or(0),
        ready_replicas: counts.ready_replicas.unwrap_or(0),
        updated_replicas: counts.updated_replicas.unwrap_or(0),
        available_replicas: counts.available_replicas.unwrap_or(0),
        selector: build::selector(app),
        conditions,
    }
}
