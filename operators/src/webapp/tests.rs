//! Build, domains and status, without a cluster.

use std::sync::Arc;

use k8s_openapi::{
    api::{
        apps::v1::Deployment, autoscaling::v2::HorizontalPodAutoscaler, core::v1::Service,
        networking::v1::Ingress, policy::v1::PodDisruptionBudget,
    },
    apimachinery::pkg::apis::meta::v1::Time,
};
use serde_json::{Value, json};
use windlass::jiff::Timestamp;

use super::{
    WebApp,
    api::gateway::HTTPRoute,
    autoscaler, build, domains,
    route::{self, Way},
    sample,
};
use crate::workload::deployed::Workload;

fn app(name: &str, second: i64, spec: Value) -> WebApp {
    let mut full = serde_json::to_value(sample().spec).unwrap();
    full.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    let mut app = WebApp::new(name, serde_json::from_value(full).unwrap());
    app.metadata.namespace = Some("shop".into());
    app.metadata.uid = Some(format!("u-{name}"));
    app.metadata.creation_timestamp = Some(Time(Timestamp::from_second(second).unwrap()));
    app
}

#[test]
fn an_ingress_leads_from_every_domain_to_the_service() {
    let app = app("web", 0, json!({"domains": ["www.example.com", "example.com"], "path": "/shop/"}));
    let children = build::children(&app, None, route::way(&app, false), &domains::hosts(&app));
    let spec = children.of::<Ingress>()[0].spec.clone().unwrap();
    let rules = serde_json::to_value(spec.rules).unwrap();
    assert_eq!(rules[0]["host"], "example.com");
    assert_eq!(rules[1]["host"], "www.example.com");
    assert_eq!(rules.as_array().unwrap().len(), 2, "a domain that is given twice is one");
    assert_eq!(rules[0]["http"]["paths"][0]["path"], "/shop");
    assert_eq!(route::url(&app, route::way(&app, false), &domains::hosts(&app)), "http://example.com/shop");
}

#[test]
fn a_domain_in_conflict_costs_that_domain_alone() {
    let app = app("web", 0, json!({"domains": ["www.example.com"], "tls": {"secretName": "cert"}}));
    let own = ["www.example.com".to_owned()];
    let children = build::children(&app, None, Way::Ingress, &own);
    let spec = serde_json::to_value(&children.of::<Ingress>()[0].spec).unwrap();
    assert_eq!(spec["rules"].as_array().unwrap().len(), 1);
    assert_eq!(spec["rules"][0]["host"], "www.example.com");
    assert_eq!(spec["tls"][0]["hosts"], json!(own));
    assert_eq!(route::url(&app, Way::Ingress, &own), "https://www.example.com");
}

#[test]
fn tls_behind_a_gateway_is_told_and_no_url_claims_it() {
    let spec = json!({"tls": {"secretName": "cert"}, "route": {"parentRefs": [{"name": "edge"}]}});
    let app = app("web", 0, spec);
    assert_eq!(route::shortfall(&app, Way::Gateway).unwrap().reason, "TLSNotApplied");
    assert_eq!(route::shortfall(&app, Way::Ingress), None);
    assert_eq!(route::url(&app, Way::Gateway, &domains::hosts(&app)), "http://example.com");
}

#[test]
fn volumes_and_more_ports_reach_the_pods_and_the_service() {
    let spec = json!({
        "ports": [{"name": "admin", "port": 81, "targetPort": 8081}, {"name": "dns", "port": 53, "protocol": "UDP"}],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    });
    let children = build::children(&app("web", 0, spec), None, Way::None, &[]);
    let pod = json!(children.of::<Deployment>()[0].spec.template.spec);
    assert_eq!(pod["volumes"], json!([{"name": "tmp", "emptyDir": {}}]));
    let container = &pod["containers"][0];
    assert_eq!(container["volumeMounts"], json!([{"name": "tmp", "mountPath": "/tmp"}]));
    let port = |name: &str, number: i32, protocol: &str| json!({"name": name, "containerPort": number, "protocol": protocol});
    assert_eq!(
        container["ports"],
        json!([port("http", 80, "TCP"), port("admin", 8081, "TCP"), port("dns", 53, "UDP")])
    );
    let offered = |name: &str, number: i32, protocol: &str| json!({"name": name, "port": number, "targetPort": name, "protocol": protocol});
    assert_eq!(
        json!(children.of::<Service>()[0].spec)["ports"],
        json!([offered("http", 80, "TCP"), offered("admin", 81, "TCP"), offered("dns", 53, "UDP")])
    );
}

#[test]
fn an_autoscaler_that_does_not_scale_is_told() {
    let judged = |conditions: Value| {
        let live = json!({"spec": {"maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "web"}},
            "status": {"desiredReplicas": 1, "conditions": conditions}});
        let condition = autoscaler::judge(Some(&serde_json::from_value(live).unwrap()));
        format!("{}/{}", condition.status, condition.reason)
    };
    let said = |type_: &str, status: &str, reason: &str| json!({"type": type_, "status": status, "reason": reason, "message": "m"});
    let able = said("AbleToScale", "True", "SucceededGetScale");
    assert_eq!(autoscaler::judge(None).status, "Unknown");
    assert_eq!(judged(json!([])), "Unknown/AutoscalerPending");
    let blind = said("ScalingActive", "False", "FailedGetResourceMetric");
    assert_eq!(judged(json!([able, blind])), "False/FailedGetResourceMetric");
    assert_eq!(judged(json!([said("AbleToScale", "False", "FailedGetScale")])), "False/FailedGetScale");
    assert_eq!(
        judged(json!([able, said("ScalingActive", "False", "ScalingDisabled")])),
        "True/ScalingActive"
    );
    assert_eq!(
        judged(json!([able, said("ScalingLimited", "True", "TooManyReplicas")])),
        "True/ScalingActive"
    );
}

#[test]
fn an_issuer_is_asked_for_a_certificate() {
    let tls = json!({"tls": {"issuerRef": {"name": "letsencrypt", "kind": "ClusterIssuer"}}});
    let app = app("web", 0, tls);
    let children = build::children(&app, None, route::way(&app, false), &domains::hosts(&app));
    let ingress = children.of::<Ingress>()[0];
    let annotations = ingress.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["cert-manager.io/cluster-issuer"], "letsencrypt");
    let tls = &ingress.spec.as_ref().unwrap().tls.as_ref().unwrap()[0];
    assert_eq!(tls.secret_name.as_deref(), Some("web-tls"));
    assert_eq!(route::url(&app, route::way(&app, false), &domains::hosts(&app)), "https://example.com");
}

#[test]
fn without_a_domain_there_is_no_route() {
    for spec in [json!({"domain": null}), json!({"route": {"type": "None"}})] {
        let app = app("web", 0, spec);
        assert!(
            build::children(&app, None, route::way(&app, false), &domains::hosts(&app))
                .of::<Ingress>()
                .is_empty()
        );
        assert_eq!(
            route::url(&app, route::way(&app, false), &domains::hosts(&app)),
            "http://web.shop.svc:80"
        );
    }
}

#[test]
fn with_an_autoscaler_the_number_of_replicas_is_not_ours_to_say() {
    let scaled = app("web", 0, json!({"autoscaling": {"min": 2, "max": 5}}));
    let children = build::children(&scaled, None, Way::Ingress, &[]);
    assert_eq!(children.of::<Deployment>()[0].spec.replicas, None);
    let spec = children.of::<HorizontalPodAutoscaler>()[0].spec.clone();
    assert_eq!((spec.min_replicas, spec.max_replicas), (Some(2), 5));
    let metric = serde_json::to_value(&spec.metrics.unwrap()[0]).unwrap();
    assert_eq!(
        metric["resource"],
        json!({
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
        })
    );
    let fixed = build::children(&app("web", 0, json!({})), None, Way::Ingress, &[]);
    assert_eq!(fixed.of::<Deployment>()[0].spec.replicas, Some(3));
    assert!(fixed.of::<HorizontalPodAutoscaler>().is_empty());
}

#[test]
fn a_deployment_without_a_number_of_replicas_is_no_crash() {
    let scaled = app("web", 0, json!({"autoscaling": {"min": 2, "max": 5}}));
    assert_eq!(scaled.wanted(&Deployment::default()), 1);
}

#[test]
fn a_single_replica_has_no_disruption_budget() {
    let budgets = |spec: Value| {
        let children = build::children(&app("web", 0, spec), None, Way::Ingress, &[]);
        children.of::<PodDisruptionBudget>().iter().map(|it| json!(it.spec)).collect::<Vec<_>>()
    };
    assert!(budgets(json!({"replicas": 1})).is_empty());
    assert!(budgets(json!({"autoscaling": {"min": 1, "max": 9}})).is_empty());
    assert_eq!(budgets(json!({"replicas": 2}))[0]["maxUnavailable"], 1);
    let kept = &budgets(json!({"replicas": 3, "disruption": {"minAvailable": "50%"}}))[0];
    assert_eq!((&kept["minAvailable"], &kept["maxUnavailable"]), (&json!("50%"), &Value::Null));
}

#[test]
fn of_two_webapps_with_one_domain_the_older_has_it() {
    let (old, new) = (app("b", 1, json!({})), app("a", 2, json!({})));
    let both = [Arc::new(new.clone()), Arc::new(old.clone())];
    assert_eq!(domains::conflict(&old, "example.com/", &both), None);
    let problem = domains::conflict(&new, "example.com/", &both).unwrap();
    assert_eq!(problem.reason, "DomainConflict");
    assert!(problem.message.contains("shop/b"), "{problem}");
    let twin = app("a", 1, json!({}));
    let twins = [Arc::new(old.clone()), Arc::new(twin.clone())];
    assert_eq!(domains::conflict(&twin, "example.com/", &twins), None, "the same second: by name");
    assert!(domains::conflict(&old, "example.com/", &twins).is_some());
    let elsewhere = app("c", 3, json!({"path": "/other"}));
    assert_ne!(domains::places(&elsewhere), domains::places(&old), "another path is another place");
}

#[test]
fn what_the_schema_refuses_the_controller_refuses_too() {
    for spec in [
        json!({"autoscaling": {"min": 3, "max": 2}}),
        json!({"disruption": {}}),
        json!({"replicas": -1}),
        json!({"domain": null, "tls": {"secretName": "x"}}),
    ] {
        assert_eq!(build::check(&app("web", 0, spec)).unwrap_err().reason, "InvalidSpec");
    }
}

#[test]
fn the_digest_of_the_configuration_is_on_the_pods() {
    let children = build::children(&app("web", 0, json!({})), Some("abc"), Way::Ingress, &[]);
    let template = children.of::<Deployment>()[0].spec.template.clone();
    assert_eq!(template.metadata.unwrap().annotations.unwrap()[build::CONFIG_HASH], "abc");
}

// === gateways ===

fn behind(route: Value) -> WebApp {
    app("web", 0, json!({"domains": ["www.example.com"], "path": "/shop", "route": route}))
}

#[test]
fn auto_takes_a_gateway_only_if_one_is_named_and_the_cluster_has_them() {
    let named = behind(json!({"parentRefs": [{"name": "edge"}]}));
    assert_eq!([true, false].map(|served| route::way(&named, served)), [Way::Gateway, Way::Ingress]);
    assert_eq!(route::way(&behind(json!({})), true), Way::Ingress);
    let asked = behind(json!({"type": "Gateway", "parentRefs": [{"name": "edge"}]}));
    assert_eq!(route::way(&asked, false), Way::Gateway);
    assert_eq!(route::obstacle(Way::Gateway, false).unwrap().reason, "GatewayNotServed");
    assert_eq!(route::obstacle(Way::Gateway, true), None);
    assert_eq!(
        route::way(&behind(json!({"type": "Ingress", "parentRefs": [{"name": "edge"}]})), true),
        Way::Ingress
    );
}

#[test]
fn a_route_leads_from_the_gateways_to_the_service() {
    let app = behind(json!({"parentRefs": [{"name": "edge", "namespace": "infra", "sectionName": "https"}]}));
    let children = build::children(&app, None, Way::Gateway, &domains::hosts(&app));
    assert!(children.of::<Ingress>().is_empty());
    assert_eq!(
        json!(children.of::<HTTPRoute>()[0].spec),
        json!({
            "parentRefs": [{"name": "edge", "namespace": "infra", "sectionName": "https"}],
            "hostnames": ["example.com", "www.example.com"],
            "rules": [{
                "matches": [{"path": {"type": "PathPrefix", "value": "/shop"}}],
                "backendRefs": [{"name": "web", "port": 80}],
            }],
        })
    );
}

fn judged(app: &WebApp, parents: Value) -> String {
    let mut route =
        build::children(app, None, Way::Gateway, &domains::hosts(app)).of::<HTTPRoute>()[0].clone();
    route.metadata.generation = Some(2);
    route.status = serde_json::from_value(json!({"parents": parents})).unwrap();
    let routes = route::judge(app, Way::Gateway, None, Some(&route));
    let ready = route::unready(Way::Gateway, &routes).map(|ready| ready.status);
    assert_eq!(ready.is_none(), routes.status == "True", "only an open route is ready");
    format!("{}/{}", routes.status, routes.reason)
}

fn says(name: &str, accepted: &str, resolved: &str, generation: i64) -> Value {
    let condition = |type_: &str, status: &str| {
        json!({
            "type": type_, "status": status, "reason": "R", "message": "m", "observedGeneration": generation,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    json!({
        "parentRef": {"name": name, "namespace": "shop"}, "controllerName": "c",
        "conditions": [condition("Accepted", accepted), condition("ResolvedRefs", resolved)],
    })
}

#[test]
fn every_gateway_must_take_the_route_as_it_is_now() {
    let app = behind(json!({"parentRefs": [{"name": "a"}, {"name": "b"}]}));
    let a = says("a", "True", "True", 2);
    assert_eq!(judged(&app, json!([])), "Unknown/GatewayPending");
    assert_eq!(judged(&app, json!([a])), "Unknown/GatewayPending");
    assert_eq!(judged(&app, json!([a, says("b", "True", "True", 1)])), "Unknown/GatewayPending");
    assert_eq!(judged(&app, json!([a, says("b", "False", "True", 2)])), "False/RouteNotAccepted");
    assert_eq!(judged(&app, json!([a, says("b", "True", "False", 2)])), "False/RouteNotAccepted");
    assert_eq!(judged(&app, json!([a, says("b", "True", "True", 2)])), "True/Accepted");
}
