//! A deployment that is cut off anywhere is finished by the next one.

use windlass::{
    kube::Client,
    testing::{Fuse, LastWrite},
};
use windlass_cluster::Identity;

use crate::bed::{Bed, definition, options, release_with};

#[tokio::test(start_paused = true)]
async fn a_second_run_finishes_wherever_the_first_was_cut_off() {
    let old = || release_with("op:1", [definition(&["v1"], &["size"]), map("gone", "1")]);
    let new = || release_with("op:2", [definition(&["v2", "v1"], &["size"]), map("new", "1")]);
    let expected = {
        let bed = Bed::start().await;
        bed.deploy(&old()).await.unwrap();
        bed.deploy(&new()).await.unwrap();
        bed.state().await
    };
    let mut cut = 0;
    // Questions about permissions and rehearsals are counted too, and are most of them.
    for write in (1..).step_by(4) {
        let bed = Bed::start().await;
        bed.deploy(&old()).await.unwrap();
        bed.put("user", crate::bed::object("v1", "a")).await;
        let how = if cut % 2 == 0 { LastWrite::Unsent } else { LastWrite::Unanswered };
        let fuse = Fuse::new(write, how);
        let client = Client::new(fuse.around(bed.cluster.server().as_user(Identity::admin())), "default");
        let first =
            bed.with_client(client, options(), |deployer| async move { deployer.deploy(&new()).await });
        let finished = tokio::select! { biased; () = fuse.blown() => false, done = first => done.is_ok() };
        if finished {
            break;
        }
        cut += 1;
        bed.deploy(&new()).await.unwrap_or_else(|error| panic!("after write {write}: {error}"));
        assert_eq!(bed.state().await, expected, "after write {write}");
        let stored =
            bed.get("apiextensions.k8s.io", "CustomResourceDefinition", None, "crates.example.com").await;
        assert_eq!(
            stored.unwrap()["status"]["storedVersions"],
            serde_json::json!(["v2"]),
            "after write {write}"
        );
        bed.undo(windlass_deploy::Options { allow_breaking: true, ..options() }).await.unwrap();
    }
    assert!(cut > 8, "the deployment was cut off {cut} times");
}

fn map(name: &str, value: &str) -> serde_json::Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "boxes"}, "data": {"k": value},
    })
}
