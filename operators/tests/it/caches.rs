//! What the operators keep of a cluster: of the kinds that are many and large, only what is theirs, or the metadata.

use std::sync::{Arc, Mutex};

use http::{Request, header::ACCEPT};
use kube::{Client, client::Body};
use tower::service_fn;
use windlass_cluster::Cluster;
use windlass_operators::{catalogue, install, operator, webhooks};

/// A list or a watch: its path, its query, and what is accepted as an answer.
type Asked = (String, String, String);

fn recorded(client: Client, asked: Arc<Mutex<Vec<Asked>>>) -> Client {
    let service = service_fn(move |request: Request<Body>| {
        let accept = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        asked.lock().unwrap().push((path.to_owned(), query.to_owned(), accept.to_owned()));
        let client = client.clone();
        async move { client.send(request).await }
    });
    Client::new(service, "default")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_pods_config_maps_and_secrets_only_what_is_ours_is_kept() {
    let cluster = Cluster::start().await.unwrap();
    // A Database looks at the Pods and Secrets of its namespace by name.
    let others =
        || operator("windlass", catalogue().iter().filter(|entry| !entry.name.starts_with("database")));
    install::crds(&cluster.client(), &webhooks::without_conversion(others().crds())).await.unwrap();
    let asked = Arc::default();
    let client = recorded(cluster.client(), Arc::clone(&asked));
    let soon = tokio::time::sleep(std::time::Duration::from_secs(1));
    others().run(client, soon).await.unwrap();
    let asked = asked.lock().unwrap().clone();
    for plural in ["pods", "configmaps", "secrets"] {
        let lists: Vec<&Asked> =
            asked.iter().filter(|(path, ..)| path.ends_with(&format!("/{plural}"))).collect();
        assert!(!lists.is_empty(), "{plural} are watched: {asked:#?}");
        for list in lists {
            let (_, query, accept) = list;
            let scoped = query.contains("labelSelector") || accept.contains("as=PartialObjectMetadata");
            assert!(scoped, "all {plural} of the cluster would be kept: {list:?}");
        }
    }
    cluster.shutdown().await.unwrap();
}
