//! Deployments, ReplicaSets and Pods.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI32, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, TryStreamExt};
use serde_json::json;
use windlass::{
    k8s_openapi::api::{
        apps::v1::{Deployment, ReplicaSet},
        core::v1::Pod,
    },
    kube::{
        api::{DeleteParams, PatchParams},
        runtime::{WatchStreamExt, watcher},
    },
};
use windlass_cluster::{Cluster, Timing};

use crate::support::{
    api, conditions, create, decode, deployment, events, is_complete, merge, pods_of, sets_of, wait,
    wait_complete,
};

#[tokio::test]
async fn a_deployment_becomes_available() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 3)).await;
    let done = wait_complete(&client, "web").await;
    assert_eq!(
        conditions(&done),
        ["Available=True MinimumReplicasAvailable", "Progressing=True NewReplicaSetAvailable"]
    );
    let revision = &done.metadata.annotations.as_ref().unwrap()["deployment.kubernetes.io/revision"];
    assert_eq!(revision, "1");
    let sets = sets_of(&client, "web").await;
    assert_eq!(sets.len(), 1);
    let pods = pods_of(&client, "web").await;
    assert_eq!(pods.len(), 3);
    let set = sets[0].metadata.name.clone().unwrap();
    for pod in &pods {
        let name = pod.metadata.name.as_deref().unwrap();
        assert!(name.starts_with(&format!("{set}-")), "{name} is not named after {set}");
        let status = pod.status.as_ref().unwrap();
        assert_eq!(status.phase.as_deref(), Some("Running"));
        assert!(status.pod_ip.as_deref().unwrap().starts_with("10.244."));
        assert_eq!(pod.spec.as_ref().unwrap().node_name.as_deref(), Some("windlass-1"));
    }
    cluster.shutdown().await.unwrap();
}

#[tokio::test]
async fn events_read_as_those_of_kubernetes() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 1)).await;
    wait_complete(&client, "web").await;
    let set = sets_of(&client, "web").await[0].metadata.name.clone().unwrap();
    let pod = pods_of(&client, "web").await[0].metadata.name.clone().unwrap();
    let scheduled = format!("Scheduled: Successfully assigned default/{pod} to windlass-1");
    let expected = [
        (
            "Deployment",
            "web".to_owned(),
            format!("ScalingReplicaSet: Scaled up replica set {set} from 0 to 1"),
        ),
        ("ReplicaSet", set, format!("SuccessfulCreate: Created pod: {pod}")),
        ("Pod", pod.clone(), scheduled),
        ("Pod", pod, "Started: Container started".to_owned()),
    ];
    for (kind, name, line) in expected {
        // Events are sent in the background.
        let mut lines = Vec::new();
        for _ in 0..200 {
            lines = events(&client, kind, &name).await;
            if lines.contains(&line) {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        assert!(lines.contains(&line), "{line:?} is not among {lines:?}");
    }
}

#[tokio::test]
async fn a_deployment_scales_up_and_down() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 1)).await;
    wait_complete(&client, "web").await;
    for size in [5, 2, 0, 1] {
        merge::<Deployment>(&client, "web", json!({"spec": {"replicas": size}})).await;
        wait_complete(&client, "web").await;
        assert_eq!(pods_of(&client, "web").await.len(), size);
        assert_eq!(sets_of(&client, "web").await.len(), 1);
    }
}

#[tokio::test]
async fn a_rolling_update_keeps_the_minimum_available() {
    let timing = Timing { ready: std::time::Duration::from_millis(5), ..Timing::default() };
    let cluster = Cluster::builder().timing(timing).start().await.unwrap();
    let client = cluster.client();
    let mut web = deployment("web", 6);
    web.spec.strategy = Some(decode(json!({"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}})));
    create(&client, &web).await;
    wait_complete(&client, "web").await;
    let (least, most) = (Arc::new(AtomicI32::new(6)), Arc::new(AtomicI32::new(6)));
    let observer = {
        let (least, most) = (least.clone(), most.clone());
        let watch = watcher(api::<Deployment>(&client), watcher::Config::default()).applied_objects();
        tokio::spawn(watch.try_for_each(move |web| {
            let status = web.status.unwrap_or_default();
            least.fetch_min(status.available_replicas.unwrap_or(0), Ordering::SeqCst);
            most.fetch_max(status.replicas.unwrap_or(0), Ordering::SeqCst);
            async { Ok(()) }
        }))
    };
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    merge::<Deployment>(&client, "web", image).await;
    let done = wait_complete(&client, "web").await;
    observer.abort();
    assert!(least.load(Ordering::SeqCst) >= 5, "only {least:?} of 6 were available");
    assert!(most.load(Ordering::SeqCst) <= 8, "{most:?} ran at once");
    assert_eq!(done.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "2");
    let sets = sets_of(&client, "web").await;
    let mut sizes: Vec<_> = sets.iter().map(|set| set.spec.replicas.unwrap()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [0, 6]);
    for pod in pods_of(&client, "web").await {
        assert_eq!(pod.spec.unwrap().containers[0].image.as_deref(), Some("nginx:2"));
    }
}

#[tokio::test]
async fn a_recreation_never_mixes_versions() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let mut web = deployment("web", 3);
    web.spec.strategy = Some(decode(json!({"type": "Recreate"})));
    create(&client, &web).await;
    wait_complete(&client, "web").await;
    let pods = watcher(api::<Pod>(&client), watcher::Config::default()).boxed();
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    let observer = tokio::spawn(async move {
        let mut alive = std::collections::BTreeMap::new();
        let mut pods = pods;
        while let Some(Ok(event)) = pods.next().await {
            match event {
                watcher::Event::Apply(pod) | watcher::Event::InitApply(pod) => {
                    let ended = matches!(
                        pod.status.as_ref().and_then(|s| s.phase.as_deref()),
                        Some("Succeeded" | "Failed")
                    );
                    let name = pod.metadata.name.clone().unwrap();
                    if ended {
                        alive.remove(&name);
                    } else {
                        alive.insert(name, pod.spec.unwrap().containers[0].image.clone().unwrap());
                    }
                }
                watcher::Event::Delete(pod) => drop(alive.remove(&pod.metadata.name.unwrap())),
                _ => {}
            }
            let images: std::collections::BTreeSet<&String> = alive.values().collect();
            assert!(images.len() <= 1, "two versions run at once: {alive:?}");
        }
    });
    merge::<Deployment>(&client, "web", image).await;
    wait_complete(&client, "web").await;
    assert!(!observer.is_finished(), "{:?}", observer.await);
    observer.abort();
}

#[tokio::test]
async fn a_paused_deployment_scales_but_does_not_roll() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 1)).await;
    wait_complete(&client, "web").await;
    let paused = json!({"spec": {"paused": true, "replicas": 2,
        "template": {"spec": {"containers": [{"name": "web", "image": "nginx:2"}]}}}});
    merge::<Deployment>(&client, "web", paused).await;
    wait(api::<Deployment>(&client), "web", "scaled", |web| {
        web.and_then(|web| web.status.as_ref()).is_some_and(|status| status.available_replicas == Some(2))
    })
    .await;
    assert_eq!(sets_of(&client, "web").await.len(), 1);
    let web = merge::<Deployment>(&client, "web", json!({"spec": {"paused": false}})).await;
    assert!(conditions(&web).contains(&"Progressing=Unknown DeploymentPaused".to_owned()));
    wait_complete(&client, "web").await;
    assert_eq!(sets_of(&client, "web").await.len(), 2);
}

#[tokio::test]
async fn an_orphan_is_adopted_and_a_changed_label_releases() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 2)).await;
    wait_complete(&client, "web").await;
    let set = sets_of(&client, "web").await.remove(0);
    let (set_name, hash) =
        (set.metadata.name.unwrap(), set.metadata.labels.unwrap()["pod-template-hash"].clone());
    let victim = pods_of(&client, "web").await.remove(0).metadata.name.unwrap();
    let freed = json!({"metadata": {"labels": {"pod-template-hash": "none"}}});
    merge::<Pod>(&client, &victim, freed).await;
    wait(api::<Pod>(&client), &victim, "released", |pod| {
        pod.is_some_and(|pod| pod.metadata.owner_references.as_ref().is_none_or(Vec::is_empty))
    })
    .await;
    wait(api::<ReplicaSet>(&client), &set_name, "full again", |set| {
        set.and_then(|set| set.status.as_ref()).is_some_and(|status| status.available_replicas == Some(2))
    })
    .await;
    merge::<Pod>(&client, &victim, json!({"metadata": {"labels": {"pod-template-hash": hash}}})).await;
    // Adopted again, so one of three is too much.
    let mut left = 0;
    for _ in 0..500 {
        left = pods_of(&client, "web").await.len();
        if left == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(left, 2);
}

#[tokio::test]
async fn failures_on_demand_show_in_the_deployment() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    for (name, phase, reason) in [
        ("image-pull-error", "Pending", "ErrImagePull"),
        ("crash-loop", "Running", "CrashLoopBackOff"),
        ("never-ready", "Running", ""),
    ] {
        let mut broken = deployment(name, 1);
        broken.spec.template.metadata.as_mut().unwrap().annotations =
            Some([("windlass.dev/simulate".to_owned(), name.to_owned())].into());
        create(&client, &broken).await;
        wait(api::<Deployment>(&client), name, "observed", |d| {
            d.and_then(|d| d.status.as_ref()).is_some_and(|status| status.updated_replicas == Some(1))
        })
        .await;
        let pod = pods_of(&client, name).await.remove(0).metadata.name.unwrap();
        let pod = wait(api::<Pod>(&client), &pod, reason, |pod| {
            let status = pod.and_then(|pod| pod.status.clone()).unwrap_or_default();
            let container = status.container_statuses.unwrap_or_default().into_iter().next();
            let state = container.and_then(|container| container.state).unwrap_or_default();
            match state.waiting {
                Some(waiting) => waiting.reason.as_deref() == Some(reason),
                None => reason.is_empty() && state.running.is_some(),
            }
        })
        .await;
        assert_eq!(pod.unwrap().status.unwrap().phase.as_deref(), Some(phase));
        let broken = api::<Deployment>(&client).get(name).await.unwrap();
        assert!(!is_complete(&broken));
        assert!(conditions(&broken).contains(&"Available=False MinimumReplicasUnavailable".to_owned()));
    }
}

#[tokio::test]
async fn a_pod_that_fits_nowhere_says_why_and_is_scheduled_when_it_fits() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let pod: Pod = decode(json!({
        "metadata": {"name": "picky"},
        "spec": {"nodeSelector": {"disk": "fast"}, "containers": [{"name": "c", "image": "busybox"}]},
    }));
    create(&client, &pod).await;
    let pod = wait(api::<Pod>(&client), "picky", "refused by the node", |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions
            .iter()
            .any(|c| c.message.as_ref().is_some_and(|m| m.starts_with("0/1 nodes are available")))
    })
    .await
    .unwrap();
    let condition = pod.status.unwrap().conditions.unwrap().remove(0);
    assert_eq!(condition.reason.as_deref(), Some("Unschedulable"));
    assert_eq!(
        condition.message.as_deref(),
        Some(
            "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector. \
             preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
        )
    );
    let nodes: windlass::kube::Api<windlass::k8s_openapi::api::core::v1::Node> =
        windlass::kube::Api::all(client.clone());
    let label = windlass::kube::api::Patch::Merge(json!({"metadata": {"labels": {"disk": "fast"}}}));
    nodes.patch("windlass-1", &PatchParams::default(), &label).await.unwrap();
    wait(api::<Pod>(&client), "picky", "running", |pod| {
        pod.and_then(|pod| pod.status.as_ref()).is_some_and(|s| s.phase.as_deref() == Some("Running"))
    })
    .await;
}

#[tokio::test]
async fn a_deleted_pod_ends_and_is_replaced() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 1)).await;
    wait_complete(&client, "web").await;
    let first = pods_of(&client, "web").await.remove(0).metadata.name.unwrap();
    api::<Pod>(&client).delete(&first, &DeleteParams::default()).await.unwrap();
    wait(api::<Pod>(&client), &first, "gone", |pod| pod.is_none()).await;
    wait_complete(&client, "web").await;
    let second = pods_of(&client, "web").await.remove(0).metadata.name.unwrap();
    assert_ne!(first, second);
}

#[tokio::test]
async fn pods_of_different_ages_can_be_scaled_down() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    create(&client, &deployment("web", 30)).await;
    wait_complete(&client, "web").await;
    // Their times must differ by whole seconds, but not by much.
    for replicas in [45, 60] {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        merge::<Deployment>(&client, "web", json!({"spec": {"replicas": replicas}})).await;
        wait_complete(&client, "web").await;
    }
    tokio::time::sleep(Duration::from_millis(1100)).await;
    merge::<Deployment>(&client, "web", json!({"spec": {"replicas": 5}})).await;
    wait_complete(&client, "web").await;
    let set = sets_of(&client, "web").await.remove(0).metadata.name.unwrap();
    let panics = events(&client, "ReplicaSet", &set).await;
    let panics: Vec<_> = panics.iter().filter(|event| event.starts_with("ReconcilePanicked")).collect();
    assert!(panics.is_empty(), "{panics:#?}");
}

#[tokio::test]
async fn a_pod_whose_init_container_declares_a_port_starts() {
    let cluster = Cluster::start().await.unwrap();
    let client = cluster.client();
    let reloader = |name: &str, port: i32| {
        json!({
            "name": name, "image": "quay.io/prometheus-operator/prometheus-config-reloader:v0.93.0",
            "args": ["--watch-interval=0", "--listen-address=:8081"],
            "ports": [{"name": "reloader-web", "containerPort": port}],
        })
    };
    let pod: Pod = decode(json!({
        "metadata": {"name": "prometheus"},
        "spec": {
            "initContainers": [reloader("init-config-reloader", 8081)],
            "containers": [
                {"name": "prometheus", "image": "quay.io/prometheus/prometheus:v3.9.0", "ports": [{"containerPort": 9090}]},
                reloader("config-reloader", 8080),
            ],
        },
    }));
    create(&client, &pod).await;
    wait(api::<Pod>(&client), "prometheus", "ready", |pod| {
        let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.clone()).unwrap_or_default();
        conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
    })
    .await;
}
