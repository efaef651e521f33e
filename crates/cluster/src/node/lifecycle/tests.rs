//! Whole lives of Pods, as kubelet shows them.

use windlass::serde_json::{Value, from_value, json};

use super::{
    super::behaviour::{self, SIMULATE},
    *,
};
use crate::pods::tests::at;

fn pod(spec: Value) -> Pod {
    from_value(json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": "u1", "generation": 1},
        "spec": spec,
        "status": {"phase": "Pending", "qosClass": "BestEffort"},
    }))
    .unwrap()
}

fn plain() -> Pod {
    pod(json!({"containers": [{"name": "web", "image": "nginx"}]}))
}

fn simulating(value: &str, policy: &str) -> Pod {
    let mut pod = pod(json!({"restartPolicy": policy, "containers": [{"name": "web", "image": "nginx"}]}));
    pod.metadata.annotations = Some([(SIMULATE.to_owned(), value.to_owned())].into());
    pod
}

/// Takes the Pod as far as it goes at one moment, and says what was seen on the way.
fn live(pod: &mut Pod, timing: Timing, second: i64) -> (Vec<String>, Option<Duration>, bool) {
    let mut seen = Vec::new();
    for _ in 0..10 {
        let (behaviour, _) = behaviour::of(pod, timing.run);
        let scene = Scene {
            pod,
            behaviour: &behaviour,
            timing: behaviour::timing(pod, timing),
            host_ip: "192.0.2.1",
            pod_ip: "10.244.0.2",
            now: at(second),
            missing: &NOTHING,
        };
        let Step { status, next, gone, .. } = step(&scene);
        let same = pod.status.as_ref() == Some(&status);
        pod.status = Some(status);
        if !same {
            seen.push(describe(pod));
        }
        if same || gone {
            return (seen, next, gone);
        }
    }
    panic!("the Pod does not settle: {seen:?}");
}

fn describe(pod: &Pod) -> String {
    let status = pod.status.as_ref().unwrap();
    let state = |container: &ContainerStatus| {
        let state = container.state.clone().unwrap_or_default();
        let what = match (state.waiting, state.terminated) {
            (Some(waiting), _) => waiting.reason.unwrap(),
            (_, Some(end)) => format!("{}({})", end.reason.unwrap(), end.exit_code),
            _ => "Running".into(),
        };
        format!("{what} restarts={}", container.restart_count)
    };
    let containers: Vec<String> = status.container_statuses.iter().flatten().map(state).collect();
    let ready = if pods::is_ready(pod) { " Ready" } else { "" };
    format!("{} [{}]{ready}", status.phase.as_deref().unwrap(), containers.join(", "))
}

fn conditions(pod: &Pod) -> Vec<String> {
    let all = pod.status.as_ref().unwrap().conditions.clone().unwrap();
    let line = |c: &windlass::k8s_openapi::api::core::v1::PodCondition| {
        let mut line = format!("{}={}", c.type_, c.status);
        for more in [&c.reason, &c.message].into_iter().flatten() {
            line.push(' ');
            line.push_str(more);
        }
        line
    };
    all.iter().map(line).collect()
}

#[test]
fn a_pod_is_created_runs_and_becomes_ready() {
    let mut pod = plain();
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen, ["Pending [ContainerCreating restarts=0]", "Running [Running restarts=0] Ready"]);
    assert_eq!(next, None);
    let status = pod.status.as_ref().unwrap();
    assert_eq!(status.pod_ip.as_deref(), Some("10.244.0.2"));
    assert_eq!(status.host_ip.as_deref(), Some("192.0.2.1"));
    assert_eq!(status.qos_class.as_deref(), Some("BestEffort"));
    assert_eq!(
        conditions(&pod),
        [
            "PodReadyToStartContainers=True",
            "Initialized=True",
            "Ready=True",
            "ContainersReady=True",
            "PodScheduled=True"
        ]
    );
}

#[test]
fn a_pod_that_is_being_created_has_kubelets_conditions() {
    let mut pod = plain();
    let timing = Timing { start: Duration::from_secs(5), ready: Duration::from_secs(3), ..Timing::default() };
    let (_, next, _) = live(&mut pod, timing, 100);
    assert_eq!(next, Some(Duration::from_secs(5)));
    assert_eq!(
        conditions(&pod),
        [
            "PodReadyToStartContainers=False PodSandboxNotReady no pod sandbox exists",
            "Initialized=True",
            "Ready=False ContainersNotReady containers with unready status: [web]",
            "ContainersReady=False ContainersNotReady containers with unready status: [web]",
            "PodScheduled=True",
        ]
    );
    let (seen, next, _) = live(&mut pod, timing, 105);
    assert_eq!((seen, next), (vec!["Running [Running restarts=0]".to_owned()], Some(Duration::from_secs(3))));
    let (seen, ..) = live(&mut pod, timing, 108);
    assert_eq!(seen, ["Running [Running restarts=0] Ready"]);
}

#[test]
fn a_crash_loop_backs_off_longer_and_longer() {
    let mut pod = simulating("crash-loop", "Always");
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(
        seen,
        [
            "Pending [ContainerCreating restarts=0]",
            "Running [Error(1) restarts=0]",
            "Running [Error(1) restarts=1]",
            "Running [CrashLoopBackOff restarts=1]",
        ]
    );
    assert_eq!(next, Some(Duration::from_secs(10)));
    let (seen, next, _) = live(&mut pod, Timing::default(), 110);
    assert_eq!(seen, ["Running [Error(1) restarts=2]", "Running [CrashLoopBackOff restarts=2]"]);
    assert_eq!(next, Some(Duration::from_secs(20)));
    let state = pod.status.unwrap().container_statuses.unwrap().remove(0).state.unwrap();
    let message = state.waiting.unwrap().message.unwrap();
    assert_eq!(message, "back-off 20s restarting failed container=web pod=web_shop(u1)");
}

#[test]
fn an_image_that_cannot_be_pulled_leaves_the_pod_pending() {
    let mut pod = simulating("image-pull-error", "Always");
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen[1], "Pending [ErrImagePull restarts=0]");
    assert_eq!(next, Some(Duration::from_secs(10)));
    let (seen, next, _) = live(&mut pod, Timing::default(), 110);
    assert_eq!((seen, next), (vec!["Pending [ImagePullBackOff restarts=0]".to_owned()], None));
}

#[test]
fn a_pod_that_never_becomes_ready_runs() {
    let mut pod = simulating("never-ready", "Always");
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen[1], "Running [Running restarts=0]");
    assert_eq!(next, None);
}

#[test]
fn the_restart_policy_decides_what_an_end_means() {
    for (value, policy, last) in [
        ("complete", "Never", "Succeeded [Completed(0) restarts=0]"),
        ("complete", "OnFailure", "Succeeded [Completed(0) restarts=0]"),
        ("fail", "Never", "Failed [Error(1) restarts=0]"),
        ("fail", "OnFailure", "Running [CrashLoopBackOff restarts=1]"),
        ("complete", "Always", "Running [CrashLoopBackOff restarts=1]"),
        ("oom-kill", "Never", "Failed [OOMKilled(137) restarts=0]"),
    ] {
        let mut pod = simulating(value, policy);
        let (seen, ..) = live(&mut pod, Timing::default(), 100);
        assert_eq!(seen.last().unwrap(), last, "{value} {policy}");
    }
}

#[test]
fn a_completed_pod_has_kubelets_conditions() {
    let mut pod = simulating("complete", "Never");
    live(&mut pod, Timing::default(), 100);
    assert_eq!(
        conditions(&pod),
        [
            "PodReadyToStartContainers=False PodSandboxNotReady pod sandbox is not ready",
            "Initialized=True PodCompleted",
            "Ready=False PodCompleted",
            "ContainersReady=False PodCompleted",
            "PodScheduled=True",
        ]
    );
}

#[test]
fn a_deleted_pod_stops_and_goes() {
    let mut pod = plain();
    live(&mut pod, Timing::default(), 100);
    pod.metadata.deletion_timestamp = Some(Time(at(230)));
    pod.metadata.deletion_grace_period_seconds = Some(30);
    let slow = Timing { stop: Duration::from_secs(4), ..Timing::default() };
    let (seen, next, gone) = live(&mut pod, slow, 200);
    assert_eq!((seen, next, gone), (Vec::new(), Some(Duration::from_secs(4)), false));
    let (seen, _, gone) = live(&mut pod, slow, 204);
    assert_eq!((seen, gone), (vec!["Succeeded [Completed(0) restarts=0]".to_owned()], true));
}

#[test]
fn init_containers_end_before_the_others_start_and_sidecars_go_on() {
    let mut pod = pod(json!({
        "initContainers": [{"name": "i", "image": "b"}, {"name": "s", "image": "b", "restartPolicy": "Always"}],
        "containers": [{"name": "web", "image": "nginx"}],
    }));
    let (seen, ..) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen, ["Pending [PodInitializing restarts=0]", "Running [Running restarts=0] Ready"]);
    let init = pod.status.unwrap().init_container_statuses.unwrap();
    assert!(containers::terminated(&init[0]).is_some_and(|end| end.exit_code == 0));
    assert!(containers::started_at(&init[1]).is_some());
}

#[test]
fn an_init_container_ends_whatever_ports_it_declares() {
    let ports = json!([{"name": "reloader", "containerPort": 8081}]);
    let mut watched = pod(json!({
        "initContainers": [{"name": "i", "image": "b", "args": ["--watch-interval=0"], "ports": ports}],
        "containers": [{"name": "web", "image": "nginx"}],
    }));
    let (seen, ..) = live(&mut watched, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Running [Running restarts=0] Ready");
    let mut slow = pod(json!({
        "initContainers": [
            {"name": "s", "image": "b", "restartPolicy": "Always", "ports": ports},
            {"name": "i", "image": "b", "command": ["sleep", "5"], "ports": ports},
        ],
        "containers": [{"name": "web", "image": "nginx"}],
    }));
    let (seen, next, _) = live(&mut slow, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Pending [PodInitializing restarts=0]");
    assert_eq!(next, Some(Duration::from_secs(5)), "a command says when it ends");
    live(&mut slow, Timing::default(), 105);
    let init = slow.status.unwrap().init_container_statuses.unwrap();
    assert!(containers::started_at(&init[0]).is_some(), "a sidecar goes on");
}

#[test]
fn times_of_any_length_are_waited_for() {
    let mut pod = simulating("evict", "Always");
    let times = pod.metadata.annotations.as_mut().unwrap();
    times.insert("windlass.dev/start-after-seconds".into(), u64::MAX.to_string());
    times.insert("windlass.dev/exit-after-seconds".into(), u32::MAX.to_string());
    let (_, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(next, Some(Duration::from_secs(u64::MAX)));
}

#[test]
fn a_readiness_gate_must_be_open() {
    let mut pod = pod(json!({"containers": [{"name": "web"}], "readinessGates": [{"conditionType": "x/y"}]}));
    live(&mut pod, Timing::default(), 100);
    assert!(conditions(&pod)[2].starts_with("Ready=False ReadinessGatesNotReady corresponding condition"));
    assert_eq!(conditions(&pod)[3], "ContainersReady=True");
}

#[test]
fn a_pod_can_be_evicted_after_a_while() {
    let mut pod = simulating("evict", "Always");
    pod.metadata.annotations.as_mut().unwrap().insert("windlass.dev/exit-after-seconds".into(), "5".into());
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Running [Running restarts=0] Ready");
    assert_eq!(next, Some(Duration::from_secs(5)));
    let (seen, ..) = live(&mut pod, Timing::default(), 105);
    assert_eq!(seen, ["Failed [Error(137) restarts=0]"]);
    assert_eq!(pod.status.unwrap().reason.as_deref(), Some("Evicted"));
}

#[test]
fn a_pod_may_have_times_of_its_own() {
    let mut pod = plain();
    let times = [("windlass.dev/start-after-seconds", "30"), ("windlass.dev/ready-after-seconds", "10")];
    pod.metadata.annotations = Some(times.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
    let (_, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(next, Some(Duration::from_secs(30)));
    let (seen, next, _) = live(&mut pod, Timing::default(), 130);
    assert_eq!(
        (seen.last().unwrap().as_str(), next),
        ("Running [Running restarts=0]", Some(Duration::from_secs(10)))
    );
    let (seen, ..) = live(&mut pod, Timing::default(), 140);
    assert_eq!(seen, ["Running [Running restarts=0] Ready"]);
}

#[test]
fn an_init_container_that_fails_keeps_the_others_waiting() {
    let spec = |policy: &str| {
        json!({
            "restartPolicy": policy,
            "initContainers": [{"name": "a", "command": ["false"]}, {"name": "b", "command": ["true"]}],
            "containers": [{"name": "web"}],
        })
    };
    let mut never = pod(spec("Never"));
    let (seen, ..) = live(&mut never, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Failed [PodInitializing restarts=0]");
    assert!(conditions(&never)[1].starts_with("Initialized=False ContainersNotInitialized"));
    let mut always = pod(spec("Always"));
    let (seen, next, _) = live(&mut always, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Pending [PodInitializing restarts=0]");
    assert_eq!(next, Some(Duration::from_secs(10)));
    let init = always.status.unwrap().init_container_statuses.unwrap();
    assert!(containers::is_waiting_for(&init[0], &[containers::CRASH_LOOP]));
    assert!(init[1].container_id.is_none());
}

#[test]
fn a_command_says_how_its_container_ends() {
    let mut pod = pod(json!({"restartPolicy": "Never", "containers": [
        {"name": "work", "command": ["sh", "-c", "sleep 5; exit 3"]},
        {"name": "server", "ports": [{"containerPort": 80}]},
    ]}));
    let (_, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(next, Some(Duration::from_secs(5)));
    let (seen, ..) = live(&mut pod, Timing::default(), 105);
    assert_eq!(seen, ["Running [Error(3) restarts=0, Running restarts=0]"]);
}

#[test]
fn a_pod_that_has_had_its_time_is_ended() {
    let mut pod = pod(json!({"activeDeadlineSeconds": 20, "containers": [{"name": "web"}]}));
    let (_, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(next, Some(Duration::from_secs(20)));
    live(&mut pod, Timing::default(), 120);
    let status = pod.status.unwrap();
    assert_eq!(
        (status.phase.as_deref(), status.reason.as_deref()),
        (Some("Failed"), Some("DeadlineExceeded"))
    );
}

#[test]
fn readiness_waits_for_the_delay_of_its_probe() {
    let mut pod =
        pod(json!({"containers": [{"name": "web", "readinessProbe": {"initialDelaySeconds": 15}}]}));
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!(
        (seen.last().unwrap().as_str(), next),
        ("Running [Running restarts=0]", Some(Duration::from_secs(15)))
    );
    let (seen, ..) = live(&mut pod, Timing::default(), 115);
    assert_eq!(seen, ["Running [Running restarts=0] Ready"]);
}

#[test]
fn a_probe_that_can_only_fail_is_believed() {
    let probe = json!({"exec": {"command": ["/bin/false"]}});
    let mut pod = pod(json!({"containers": [{"name": "web", "readinessProbe": probe}]}));
    let (seen, next, _) = live(&mut pod, Timing::default(), 100);
    assert_eq!((seen.last().unwrap().as_str(), next), ("Running [Running restarts=0]", None));
}

#[test]
fn an_image_that_cannot_be_there_is_not_pulled() {
    let mut pod = pod(json!({"containers": [{"name": "web", "image": "webserver:404"}]}));
    let (seen, ..) = live(&mut pod, Timing::default(), 100);
    assert_eq!(seen.last().unwrap(), "Pending [ErrImagePull restarts=0]");
}

#[test]
fn a_debug_container_starts_in_a_running_pod_and_its_generation_is_observed() {
    let mut pod = plain();
    live(&mut pod, Timing::default(), 100);
    pod.metadata.generation = Some(2);
    let debug = json!([{"name": "debugger", "image": "busybox", "command": ["sleep", "1000"]}]);
    pod.spec.as_mut().unwrap().ephemeral_containers = from_value(debug).unwrap();
    live(&mut pod, Timing::default(), 110);
    let status = pod.status.unwrap();
    assert!(containers::started_at(&status.ephemeral_container_statuses.unwrap()[0]).is_some());
    assert_eq!(status.observed_generation, Some(2));
}

static NOTHING: Missing = Missing { mounts: Vec::new(), containers: std::collections::BTreeMap::new() };

fn probed(value: &str, container: Value) -> Pod {
    let mut pod = pod(json!({"restartPolicy": "Always", "containers": [container]}));
    pod.metadata.annotations = Some([(SIMULATE.to_owned(), value.to_owned())].into());
    pod
}

#[test]
fn a_failing_liveness_probe_restarts_its_container() {
    let probe =
        json!({"httpGet": {"port": 80}, "periodSeconds": 5, "failureThreshold": 3, "initialDelaySeconds": 2});
    let mut pod =
        probed("liveness-failure", json!({"name": "web", "image": "nginx", "livenessProbe": probe}));
    let (seen, next, _) = live(&mut pod, Timing::default(), 0);
    assert_eq!(seen.last().unwrap(), "Running [Running restarts=0] Ready");
    assert_eq!(next, Some(Duration::from_secs(12)));
    let (seen, ..) = live(&mut pod, Timing::default(), 12);
    assert!(seen.iter().any(|line| line.contains("Error(137)")), "{seen:?}");
    assert_eq!(seen.last().unwrap(), "Running [Running restarts=1] Ready");
}

#[test]
fn a_container_whose_startup_probe_fails_never_starts() {
    let probe = json!({"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 2});
    let mut pod = pod(json!({"containers": [{"name": "web", "image": "nginx", "startupProbe": probe}]}));
    live(&mut pod, Timing::default(), 0);
    let status = &pod.status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0];
    assert_eq!((status.started, status.ready), (Some(false), false));
    let (seen, ..) = live(&mut pod, Timing::default(), 1);
    assert!(seen.iter().any(|line| line.contains("Error(137)")), "{seen:?}");
}

#[test]
fn hooks_that_fail_are_told_and_those_that_take_time_are_waited_for() {
    let hook = json!({"postStart": {"httpGet": {"port": 80}}});
    let mut pod = probed("post-start-failure", json!({"name": "web", "image": "nginx", "lifecycle": hook}));
    let (seen, ..) = live(&mut pod, Timing::default(), 0);
    assert!(seen.last().unwrap().contains("CrashLoopBackOff"), "{seen:?}");
    let hook = json!({"preStop": {"sleep": {"seconds": 7}}});
    let mut slow = self::pod(json!({"containers": [{"name": "web", "image": "nginx", "lifecycle": hook}]}));
    live(&mut slow, Timing::default(), 0);
    slow.metadata.deletion_grace_period_seconds = Some(30);
    slow.metadata.deletion_timestamp = Some(Time(at(40)));
    let (_, next, gone) = live(&mut slow, Timing::default(), 10);
    assert_eq!((next, gone), (Some(Duration::from_secs(7)), false));
    assert!(live(&mut slow, Timing::default(), 17).2);
}
