//! `/metrics` beside that of a real kube-apiserver: the same families with the same types, labels and bounds.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, PODS, Server};

/// What a page says of a family.
#[derive(Debug, Default, PartialEq, Eq)]
struct Family {
    kind: String,
    labels: BTreeSet<String>,
    bounds: Vec<String>,
}

/// The families of a page, and every line with its value.
fn read(page: &str) -> (BTreeMap<String, Family>, BTreeMap<String, f64>) {
    let (mut families, mut lines) = (BTreeMap::<String, Family>::new(), BTreeMap::new());
    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            kind.clone_into(&mut families.entry(name.to_owned()).or_default().kind);
            continue;
        }
        if line.starts_with('#') {
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap();
        lines.insert(series.to_owned(), value.parse().unwrap());
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let plain = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let name = plain.filter(|plain| families.contains_key(*plain)).unwrap_or(name);
        let family = families.get_mut(name).unwrap_or_else(|| panic!("{line} has no type"));
        for label in labels.trim_end_matches('}').split("\",").filter(|label| !label.is_empty()) {
            let (label, value) = label.split_once("=\"").unwrap();
            let value = value.trim_end_matches('"').to_owned();
            if label != "le" {
                family.labels.insert(label.to_owned());
            } else if !family.bounds.contains(&value) {
                family.bounds.push(value);
            }
        }
    }
    (families, lines)
}

async fn page(server: &Server) -> String {
    let request = Request::get("/metrics").body(Full::new(Bytes::new())).unwrap();
    let answer = server.request(request).await.into_body().collect().await.unwrap();
    String::from_utf8(answer.to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn families_have_the_names_labels_and_bounds_of_the_real_server() {
    let server = Server::new();
    server.send(Method::GET, CONFIG_MAPS, "", "", &Value::Null).await.expect_success();
    let watch = Request::get(format!("{CONFIG_MAPS}?watch=true")).body(Full::new(Bytes::new())).unwrap();
    let mut watch = server.request(watch).await.into_body();
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    server.send(Method::POST, CONFIG_MAPS, "application/json", "", &map).await.expect_success();
    // Somebody has a say in a Pod.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"serviceAccountName": "none", "containers": [{"name": "c", "image": "i"}]}});
    let refused = server.send(Method::POST, PODS, "application/json", "", &pod).await;
    assert!(refused.status.is_client_error(), "{refused:?}");
    watch.frame().await.unwrap().unwrap();
    // What was sent is counted when there is nothing more to send.
    let more = tokio::time::timeout(std::time::Duration::from_millis(10), watch.frame()).await;
    assert!(more.is_err());
    let (ours, lines) = read(&page(&server).await);
    let fixture = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/metrics.txt");
    let recorded = std::fs::read_to_string(fixture).unwrap();
    let list = |text: &str| -> Vec<String> {
        text.split(',').filter(|part| *part != "-").map(str::to_owned).collect()
    };
    let mut different = Vec::new();
    for line in recorded.lines().filter(|line| !line.starts_with('#')) {
        let [name, kind, labels, bounds] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
        // There is no audit log here, and only Linux tells of a process.
        if name.starts_with("apiserver_audit") || (name.starts_with("process_") && !cfg!(target_os = "linux"))
        {
            continue;
        }
        let real =
            Family { kind: kind.into(), labels: list(labels).into_iter().collect(), bounds: list(bounds) };
        if ours.get(name) != Some(&real) {
            different.push(format!("{name}: {:?}, recorded {real:?}", ours.get(name)));
        }
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
    let watches = "apiserver_longrunning_requests{component=\"apiserver\",group=\"\",resource=\"configmaps\",\
                   scope=\"namespace\",subresource=\"\",verb=\"WATCH\",version=\"v1\"}";
    assert_eq!(lines.get(watches), Some(&1.0));
    let events = "apiserver_watch_events_total{group=\"\",resource=\"configmaps\",version=\"v1\"}";
    // The ConfigMaps that a namespace has from its beginning are events too.
    let sent = lines[events];
    assert!(sent >= 1.0, "{sent}");
    drop(watch);
    let (_, lines) = read(&page(&server).await);
    assert_eq!((lines.get(watches), lines.get(events)), (None, Some(&sent)));
    if cfg!(target_os = "linux") {
        assert!(lines["process_resident_memory_bytes"] > 1e6 && lines["process_open_fds"] >= 3.0);
        assert!(lines["process_start_time_seconds"] > 1.7e9);
    }
}
