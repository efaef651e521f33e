//! The way from a domain to the Service. Pure.
//!
//! | `spec.route.type` | way |
//! |-|-|
//! | `Auto` | a Gateway, if one is named and the cluster serves Gateway API; else an Ingress |
//! | `Gateway`, `Ingress` | that one |
//! | `None`, or no domain | none |

mod gateway;
mod ingress;

use k8s_openapi::{api::networking::v1::Ingress, apimachinery::pkg::apis::meta::v1::Condition};
use kube::ResourceExt;
use windlass::{
    Children,
    conditions::{READY, is_false, is_true},
};

use super::{
    api::{RouteType, WebApp, gateway::HTTPRoute},
    domains,
};
use crate::workload::Problem;

/// The condition that says whether the domains lead to the application.
pub(super) const ROUTES_READY: &str = "RoutesReady";
/// The reason of a WebApp that wants a Gateway where there is no Gateway API.
pub(super) const NOT_SERVED: &str = "GatewayNotServed";
/// The reason of a WebApp with TLS behind a Gateway.
pub(super) const TLS_NOT_APPLIED: &str = "TLSNotApplied";
/// The reason of a WebApp whose Gateways do not let requests through.
const ROUTES_NOT_READY: &str = "RoutesNotReady";

/// How requests come from the domains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    None,
    Ingress,
    Gateway,
}

/// The way of a WebApp on a cluster that does or does not serve Gateway API.
pub(super) fn way(app: &WebApp, served: bool) -> Way {
    if !domains::is_routed(app) {
        return Way::None;
    }
    match app.spec.route.as_ref().map(|route| route.type_).unwrap_or_default() {
        RouteType::None => Way::None,
        RouteType::Ingress => Way::Ingress,
        RouteType::Gateway => Way::Gateway,
        RouteType::Auto if served && !gateway::parents(app).is_empty() => Way::Gateway,
        RouteType::Auto => Way::Ingress,
    }
}

/// The problem of a WebApp that cannot go the way that it wants.
pub(super) fn obstacle(way: Way, served: bool) -> Option<Problem> {
    (way == Way::Gateway && !served).then(|| {
        Problem::new(
            NOT_SERVED,
            "the cluster does not serve HTTPRoute of gateway.networking.k8s.io/v1; install Gateway API, or set \
             spec.route.type to Ingress",
        )
    })
}

/// The problem of a WebApp that asks for something which the way that it goes cannot give.
pub(super) fn shortfall(app: &WebApp, way: Way) -> Option<Problem> {
    (way == Way::Gateway && app.spec.tls.is_some()).then(|| {
        Problem::new(
            TLS_NOT_APPLIED,
            "spec.tls does nothing behind a Gateway, whose listeners have the certificates; name the certificate there \
             and remove spec.tls, or set spec.route.type to Ingress",
        )
    })
}

/// Adds what leads from these domains to the application.
pub(super) fn with_route(children: Children, app: &WebApp, way: Way, hosts: &[String]) -> Children {
    match way {
        Way::None => children,
        Way::Ingress => children.with(ingress::wanted(app, hosts)),
        Way::Gateway => children.with(gateway::wanted(app, hosts)),
    }
}

/// Whether the domains lead to the application. The objects are the live ones.
pub(super) fn judge(
    app: &WebApp,
    way: Way,
    ingress: Option<&Ingress>,
    route: Option<&HTTPRoute>,
) -> Condition {
    match way {
        Way::None => is_true(ROUTES_READY, "NoRoute", "no domain is asked for"),
        Way::Ingress => ingress::judge(ingress),
        Way::Gateway => gateway::judge(app, route),
    }
}

/// What a route that does not lead anywhere means for the application as a whole. A Gateway says whether it takes a
/// route, so without its word the application is not reached; an Ingress controller need not say anything.
pub(super) fn unready(way: Way, routes: &Condition) -> Option<Condition> {
    let closed = way == Way::Gateway && routes.status != "True";
    closed.then(|| is_false(READY, ROUTES_NOT_READY, &routes.message))
}

/// Where the application is reached: by the first of the domains that lead to it, or within the cluster.
///
/// What a Gateway's listeners speak stands in the Gateway, so only an Ingress is known to have TLS.
pub(super) fn url(app: &WebApp, way: Way, hosts: &[String]) -> String {
    match hosts.first().filter(|_| way != Way::None) {
        Some(host) => {
            let scheme = if way == Way::Ingress && app.spec.tls.is_some() { "https" } else { "http" };
            let path = domains::path(app);
            format!("{scheme}://{host}{}", if path == "/" { "" } else { &path })
        }
        None => {
            let namespace = app.namespace().unwrap_or_default();
            format!("http://{}.{namespace}.svc:{}", app.name_any(), app.spec.port)
        }
    }
}
