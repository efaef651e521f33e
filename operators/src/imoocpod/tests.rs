//! Build, without a cluster.

use super::{build, sample};

#[test]
fn a_pod_sleeps_and_is_named_by_the_server() {
    let imooc = sample();
    let pod = build::pod(&imooc, &build::template(&imooc), "abc", 0);
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("imoocpod-sample-pod"));
    assert_eq!(pod.metadata.labels.unwrap()["app"], "imoocpod-sample");
    let container = &pod.spec.unwrap().containers[0];
    assert_eq!(container.name, "busybox");
    assert_eq!(container.command.as_ref().unwrap(), &["sleep", "3600"]);
}

#[test]
fn unbounded_replicas_are_refused_by_the_controller_too() {
    for replicas in [-1, 101] {
        let mut imooc = sample();
        imooc.spec.replicas = replicas;
        assert_eq!(build::check(&imooc).unwrap_err().reason, "InvalidSpec");
    }
}
