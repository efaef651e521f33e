//! The way through a Gateway. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use windlass::conditions::{self, is_false, is_true, is_unknown};

use super::{
    super::{
        api::{
            WebApp,
            gateway::{
                Backend, HTTPRoute, HTTPRouteSpec, ParentReference, PathMatch, RouteMatch, RouteParentStatus,
                RouteRule,
            },
        },
        build, domains,
    },
    ROUTES_READY,
};

/// A Gateway has not said anything yet.
const PENDING: &str = "GatewayPending";
/// A Gateway does not take the route.
const NOT_ACCEPTED: &str = "RouteNotAccepted";

/// The Gateways that a WebApp names.
pub(super) fn parents(app: &WebApp) -> Vec<ParentReference> {
    app.spec.route.as_ref().map(|route| route.parent_refs.clone()).unwrap_or_default()
}

/// The route of a WebApp for these domains. TLS is the Gateway's affair, which has the certificates.
pub(super) fn wanted(app: &WebApp, hosts: &[String]) -> HTTPRoute {
    let path = PathMatch { type_: Some("PathPrefix".into()), value: Some(domains::path(app)) };
    let rule = RouteRule {
        matches: vec![RouteMatch { path: Some(path) }],
        backend_refs: vec![Backend { name: app.name_any(), port: Some(app.spec.port) }],
    };
    let annotations = app.spec.route.clone().unwrap_or_default().annotations;
    let mut metadata = build::metadata(app);
    metadata.annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    HTTPRoute {
        metadata,
        spec: HTTPRouteSpec { parent_refs: parents(app), hostnames: hosts.to_vec(), rules: vec![rule] },
        status: None,
    }
}

/// Whether every Gateway that is named takes the route and finds its Service. `route` is the live one.
pub(super) fn judge(app: &WebApp, route: Option<&HTTPRoute>) -> Condition {
    let generation = route.and_then(|route| route.metadata.generation);
    let said = route.and_then(|route| route.status.as_ref()).map(|status| status.parents.as_slice());
    for parent in parents(app) {
        let words = said.unwrap_or_default().iter().filter(|word| is_about(app, word, &parent));
        let judged = words.map(|word| refusal(word, generation)).next();
        match judged {
            None | Some(Err(Waiting)) => {
                let message = format!("the Gateway {} has not taken the route yet", parent.name);
                return is_unknown(ROUTES_READY, PENDING, message);
            }
            Some(Ok(Some(why))) => {
                let message = format!("the Gateway {} does not take the route: {why}", parent.name);
                return is_false(ROUTES_READY, NOT_ACCEPTED, message);
            }
            Some(Ok(None)) => {}
        }
    }
    is_true(ROUTES_READY, "Accepted", "every Gateway takes the route")
}

fn is_about(app: &WebApp, word: &RouteParentStatus, parent: &ParentReference) -> bool {
    let place = |named: &ParentReference| named.namespace.clone().or_else(|| app.namespace());
    word.parent_ref.name == parent.name
        && word.parent_ref.section_name == parent.section_name
        && place(&word.parent_ref) == place(parent)
}

/// A Gateway has not looked at the route as it is now.
struct Waiting;

/// What a Gateway has against a route, if anything.
fn refusal(word: &RouteParentStatus, generation: Option<i64>) -> Result<Option<String>, Waiting> {
    for type_ in ["Accepted", "ResolvedRefs"] {
        let found = conditions::find(&word.conditions, type_).ok_or(Waiting)?;
        if found.observed_generation.is_some() && found.observed_generation < generation {
            return Err(Waiting);
        }
        match found.status.as_str() {
            "True" => {}
            "False" => return Ok(Some(format!("{type_} is false, {}: {}", found.reason, found.message))),
            _ => return Err(Waiting),
        }
    }
    Ok(None)
}
