//! The way through an Ingress. Pure.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::networking::v1::{
        HTTPIngressPath, HTTPIngressRuleValue, Ingress, IngressBackend, IngressRule, IngressServiceBackend,
        IngressSpec, IngressTLS, ServiceBackendPort,
    },
    apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta},
};
use kube::ResourceExt;
use windlass::conditions::{is_true, is_unknown};

use super::{
    super::{
        api::{IssuerKind, Tls, WebApp},
        build, domains,
    },
    ROUTES_READY,
};

/// The Ingress of a WebApp for these domains.
pub(super) fn wanted(app: &WebApp, hosts: &[String]) -> Ingress {
    let route = app.spec.route.clone().unwrap_or_default();
    let mut annotations = issuer(app);
    annotations.extend(route.annotations);
    let annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    Ingress {
        metadata: ObjectMeta { annotations, ..build::metadata(app) },
        spec: Some(IngressSpec {
            ingress_class_name: route.ingress_class_name,
            rules: Some(hosts.iter().map(|host| rule(app, host.clone())).collect()),
            tls: app.spec.tls.as_ref().map(|tls| vec![certificate(app, tls, hosts)]),
            ..IngressSpec::default()
        }),
        status: None,
    }
}

fn rule(app: &WebApp, host: String) -> IngressRule {
    let backend = IngressServiceBackend {
        name: app.name_any(),
        port: Some(ServiceBackendPort { name: Some(build::PORT.into()), number: None }),
    };
    IngressRule {
        host: Some(host),
        http: Some(HTTPIngressRuleValue {
            paths: vec![HTTPIngressPath {
                path: Some(domains::path(app)),
                path_type: "Prefix".into(),
                backend: IngressBackend { service: Some(backend), resource: None },
            }],
        }),
    }
}

fn certificate(app: &WebApp, tls: &Tls, hosts: &[String]) -> IngressTLS {
    let secret = tls.secret_name.clone().unwrap_or_else(|| format!("{}-tls", app.name_any()));
    IngressTLS { hosts: Some(hosts.to_vec()), secret_name: Some(secret) }
}

/// What tells cert-manager to issue a certificate.
fn issuer(app: &WebApp) -> BTreeMap<String, String> {
    let issuer = app.spec.tls.as_ref().and_then(|tls| tls.issuer_ref.as_ref());
    let annotation = issuer.map(|issuer| {
        let key = match issuer.kind {
            IssuerKind::Issuer => "cert-manager.io/issuer",
            IssuerKind::ClusterIssuer => "cert-manager.io/cluster-issuer",
        };
        (key.to_owned(), issuer.name.clone())
    });
    annotation.into_iter().collect()
}

/// Whether the domains lead to the application. `ingress` is the live one.
///
/// An Ingress without an address is no failure: many controllers never give one.
pub(super) fn judge(ingress: Option<&Ingress>) -> Condition {
    let balancer = ingress.and_then(|ingress| ingress.status.as_ref()?.load_balancer.as_ref());
    let addresses = balancer.and_then(|balancer| balancer.ingress.as_ref()).map_or(0, Vec::len);
    if addresses > 0 {
        is_true(ROUTES_READY, "AddressAssigned", "the Ingress has an address")
    } else {
        let message = "no Ingress controller has given the Ingress an address";
        is_unknown(ROUTES_READY, "AddressPending", message)
    }
}
