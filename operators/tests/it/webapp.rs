//! WebApp: the common suite, domains, autoscaling, configuration.

use std::time::Duration;

use k8s_openapi::api::{
    apps::v1::Deployment,
    autoscaling::v2::HorizontalPodAutoscaler,
    core::v1::{ConfigMap, Service},
    networking::v1::Ingress,
    policy::v1::PodDisruptionBudget,
};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use windlass::Operator;
use windlass_operators::{
    webapp::{WebApp, controller},
    workload::Settings,
};

use crate::{
    bed::{Bed, eventually},
    suite::{Subject, condition_of},
};

pub(crate) const SUBJECT: Subject = Subject {
    name: "webapp",
    size_field: "replicas",
    current_field: "replicas",
    spec: || json!({"image": "nginx:1.27", "imagePullPolicy": "IfNotPresent"}),
    other_image: "nginx:alpine",
    flat: true,
};

pub(crate) fn operator(namespace: &str) -> Operator {
    let settings = Settings { resync: Some(Duration::from_millis(200)), ..Settings::default() };
    Operator::new("webapp-operator").crd::<WebApp>().controller(controller(settings).namespace(namespace))
}

pub(crate) mod gateway;

crate::suite::suite!(SUBJECT, operator);
crate::crash::crash_test!(SUBJECT, operator);

on_both_clusters! { operator =>
    a_domain_gets_an_ingress_and_loses_it_with_its_part_of_the_spec
    of_two_webapps_with_one_domain_the_older_has_it_until_it_goes
    a_domain_that_somebody_else_has_costs_no_other_domain
    an_autoscaler_takes_the_replicas_over_and_keeps_them
    an_autoscaler_that_cannot_scale_is_told
    a_rollout_that_is_held_back_is_not_rolling_out
    a_changed_config_map_rolls_the_pods_that_use_it
    every_child_that_drifts_is_put_right
    a_spec_that_contradicts_itself_is_refused
    a_foreign_service_is_reported_and_left_alone
    the_gateway_that_is_named_is_used_once_there_is_gateway_api
}

use gateway::the_gateway_that_is_named_is_used_once_there_is_gateway_api;

fn with(name: &str, size: i32, spec: Value) -> Value {
    let mut object = SUBJECT.object(name, size);
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    object
}

async fn status(bed: &Bed, name: &str) -> Value {
    bed.dynamic("webapp").get(name).await.unwrap().data["status"].clone()
}

async fn a_domain_gets_an_ingress_and_loses_it_with_its_part_of_the_spec(bed: Bed) {
    SUBJECT.create(&bed, with("it", 2, json!({"domain": "it.example.com", "path": "/shop"}))).await;
    SUBJECT.settled(&bed, "it", 2).await;
    let ingress = bed.api::<Ingress>().get("it").await.unwrap().spec.unwrap();
    assert_eq!(ingress.rules.unwrap()[0].host.as_deref(), Some("it.example.com"));
    assert_eq!(status(&bed, "it").await["url"], "http://it.example.com/shop");
    assert_eq!(bed.count::<PodDisruptionBudget>().await, 1);
    SUBJECT.merge(&bed, "it", json!({"spec": {"domain": null}})).await;
    eventually("the Ingress is gone", || async { (bed.count::<Ingress>().await == 0).then_some(()) }).await;
    SUBJECT.settled(&bed, "it", 2).await;
    let inside = format!("http://it.{}.svc:80", bed.namespace);
    assert_eq!(status(&bed, "it").await["url"], inside);
}

async fn of_two_webapps_with_one_domain_the_older_has_it_until_it_goes(bed: Bed) {
    SUBJECT.create(&bed, with("old", 1, json!({"domain": "it.example.com"}))).await;
    SUBJECT.settled(&bed, "old", 1).await;
    // Ages have whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    SUBJECT.create(&bed, with("new", 1, json!({"domain": "it.example.com"}))).await;
    let message = SUBJECT.condition(&bed, "new", "Degraded", "True", "DomainConflict").await;
    assert!(message.contains(&format!("{}/old", bed.namespace)), "{message}");
    SUBJECT.condition(&bed, "new", "RoutesReady", "False", "DomainConflict").await;
    SUBJECT.settled(&bed, "new", 1).await;
    assert!(bed.api::<Ingress>().get_opt("new").await.unwrap().is_none());
    SUBJECT.condition(&bed, "old", "Degraded", "False", "AsExpected").await;

    bed.dynamic("webapp").delete("old", &DeleteParams::default()).await.unwrap();
    SUBJECT.condition(&bed, "new", "Degraded", "False", "AsExpected").await;
    eventually("the domain is its own", || async {
        bed.api::<Ingress>().get_opt("new").await.unwrap().map(|_| ())
    })
    .await;
}

async fn a_domain_that_somebody_else_has_costs_no_other_domain(bed: Bed) {
    SUBJECT.create(&bed, with("old", 1, json!({"domain": "it.example.com"}))).await;
    SUBJECT.settled(&bed, "old", 1).await;
    // Ages have whole seconds.
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let two = json!({"domain": "it.example.com", "domains": ["own.example.com"]});
    SUBJECT.create(&bed, with("new", 1, two)).await;
    let message = SUBJECT.condition(&bed, "new", "RoutesReady", "False", "DomainConflict").await;
    assert!(message.contains("it.example.com") && !message.contains("own.example.com"), "{message}");
    SUBJECT.settled(&bed, "new", 1).await;
    let ingress = bed.api::<Ingress>().get("new").await.unwrap().spec.unwrap();
    let hosts: Vec<Option<String>> = ingress.rules.unwrap().into_iter().map(|rule| rule.host).collect();
    assert_eq!(hosts, [Some("own.example.com".to_owned())]);
    assert_eq!(status(&bed, "new").await["url"], "http://own.example.com");
}

async fn an_autoscaler_that_cannot_scale_is_told(bed: Bed) {
    // Nobody measures the Pods here, on neither cluster.
    SUBJECT.create(&bed, with("it", 1, json!({"autoscaling": {"min": 1, "max": 3}}))).await;
    let scalers = bed.api::<HorizontalPodAutoscaler>();
    eventually("there is an autoscaler", || async { scalers.get_opt("it").await.unwrap() }).await;
    let blind = json!({"status": {"desiredReplicas": 1, "conditions": [{
        "type": "ScalingActive", "status": "False", "reason": "FailedGetResourceMetric",
        "message": "unable to get metrics for resource cpu", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    scalers.patch_status("it", &PatchParams::default(), &Patch::Merge(blind)).await.unwrap();
    let reason = "FailedGetResourceMetric";
    let message = SUBJECT.condition(&bed, "it", "AutoscalerReady", "False", reason).await;
    assert!(message.contains("does not scale"), "{message}");
    SUBJECT.condition(&bed, "it", "Degraded", "True", reason).await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"autoscaling": null}})).await;
    SUBJECT.condition(&bed, "it", "Degraded", "False", "AsExpected").await;
    let said = status(&bed, "it").await;
    assert!(condition_of(&said, "AutoscalerReady").is_none(), "what was said of it goes with it: {said}");
}

async fn a_rollout_that_is_held_back_is_not_rolling_out(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"paused": true, "image": SUBJECT.other_image}})).await;
    let message = SUBJECT.condition(&bed, "it", "Progressing", "False", "Paused").await;
    assert!(message.contains("spec.paused"), "{message}");
    SUBJECT.condition(&bed, "it", "Ready", "True", "Available").await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"paused": null}})).await;
    SUBJECT.settled(&bed, "it", 1).await;
    SUBJECT.condition(&bed, "it", "Progressing", "False", "RolloutComplete").await;
}

async fn an_autoscaler_takes_the_replicas_over_and_keeps_them(bed: Bed) {
    SUBJECT.create(&bed, SUBJECT.object("it", 3)).await;
    SUBJECT.settled(&bed, "it", 3).await;
    SUBJECT.merge(&bed, "it", json!({"spec": {"autoscaling": {"min": 2, "max": 5, "cpu": 50}}})).await;
    let scalers = bed.api::<HorizontalPodAutoscaler>();
    eventually("there is an autoscaler", || async { scalers.get_opt("it").await.unwrap() }).await;
    let deployments = bed.api::<Deployment>();
    let replicas = || async { deployments.get("it").await.unwrap().spec.replicas };
    assert_eq!(replicas().await, Some(3), "to let go of the number is not to lose it");
    // What an autoscaler does.
    let four = Patch::Merge(json!({"spec": {"replicas": 4}}));
    deployments.patch_scale("it", &PatchParams::default(), &four).await.unwrap();
    SUBJECT.settled(&bed, "it", 4).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(replicas().await, Some(4), "nobody takes it back");
    assert_eq!(status(&bed, "it").await["desiredReplicas"], 4);
    // And back to a fixed number.
    SUBJECT.merge(&bed, "it", json!({"spec": {"autoscaling": null}})).await;
    SUBJECT.settled(&bed, "it", 3).await;
    assert!(scalers.get_opt("it").await.unwrap().is_none());
}

async fn a_changed_config_map_rolls_the_pods_that_use_it(bed: Bed) {
    let _: ConfigMap = bed.create(json!({"metadata": {"name": "settings"}, "data": {"COLOUR": "red"}})).await;
    let from = json!({"envFrom": [{"configMapRef": {"name": "settings"}}]});
    SUBJECT.create(&bed, with("it", 1, from)).await;
    SUBJECT.settled(&bed, "it", 1).await;
    let before = bed.pod_names().await;
    let blue = Patch::Merge(json!({"data": {"COLOUR": "blue"}}));
    bed.api::<ConfigMap>().patch("settings", &PatchParams::default(), &blue).await.unwrap();
    eventually("another Pod runs", || async {
        let now = bed.pod_names().await;
        (now.len() == 1 && now != before).then_some(())
    })
    .await;
    SUBJECT.settled(&bed, "it", 1).await;
}

async fn every_child_that_drifts_is_put_right(bed: Bed) {
    SUBJECT.create(&bed, with("it", 2, json!({"domain": "it.example.com"}))).await;
    SUBJECT.settled(&bed, "it", 2).await;
    let params = PatchParams::default();
    let host = Patch::Json::<()>(
        serde_json::from_value(json!([
            {"op": "replace", "path": "/spec/rules/0/host", "value": "evil.example.com"},
        ]))
        .unwrap(),
    );
    bed.api::<Ingress>().patch("it", &params, &host).await.unwrap();
    eventually("the host is put right", || async {
        let rules = bed.api::<Ingress>().get("it").await.unwrap().spec?.rules?;
        (rules[0].host.as_deref() == Some("it.example.com")).then_some(())
    })
    .await;
    let budget = Patch::Merge(json!({"spec": {"maxUnavailable": 0}}));
    bed.api::<PodDisruptionBudget>().patch("it", &params, &budget).await.unwrap();
    eventually("the budget is put right", || async {
        let spec = bed.api::<PodDisruptionBudget>().get("it").await.unwrap().spec?;
        (json!(spec.max_unavailable) == 1).then_some(())
    })
    .await;
    bed.api::<Service>().delete("it", &DeleteParams::default()).await.unwrap();
    eventually("the Service is back", || async {
        bed.api::<Service>().get_opt("it").await.unwrap().map(|_| ())
    })
    .await;
}

async fn a_spec_that_contradicts_itself_is_refused(bed: Bed) {
    for (spec, why) in [
        (json!({"autoscaling": {"min": 3, "max": 2}}), "min must not be greater than max"),
        (json!({"tls": {"secretName": "x"}}), "tls needs a domain"),
        (
            json!({
                "domain": "a.example.com", "tls": {"secretName": "x"},
                "route": {"type": "Gateway", "parentRefs": [{"name": "edge"}]},
            }),
            "with a Gateway the certificates are those of its listeners",
        ),
        (json!({"ports": [{"name": "http", "port": 81}]}), "http is the name of spec.port"),
        (json!({"domain": "a.example.com", "tls": {}}), "name a Secret with a certificate"),
        (json!({"disruption": {"minAvailable": 1, "maxUnavailable": 1}}), "set either minAvailable"),
        (json!({"domain": "Not A Domain"}), "spec.domain"),
    ] {
        let status = SUBJECT.refusal(&bed, with("it", 1, spec.clone())).await;
        assert_eq!(status.code, 422, "{spec}");
        assert!(status.message.contains(why), "{spec}: {}", status.message);
    }
}

async fn a_foreign_service_is_reported_and_left_alone(bed: Bed) {
    bed.expects("NameConflict");
    let _: Service =
        bed.create(json!({"metadata": {"name": "it"}, "spec": {"ports": [{"port": 9999}]}})).await;
    SUBJECT.create(&bed, SUBJECT.object("it", 1)).await;
    let message = SUBJECT.condition(&bed, "it", "Degraded", "True", "NameConflict").await;
    assert!(message.contains("Service"), "{message}");
    SUBJECT.condition(&bed, "it", "Ready", "False", "NameConflict").await;
    let theirs = bed.api::<Service>().get("it").await.unwrap().spec.unwrap();
    assert_eq!(theirs.ports.unwrap()[0].port, 9999, "it was not touched");
}
