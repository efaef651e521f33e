//! memcached behind a Memcached.

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::ListParams;
use serde_json::json;

use super::visitor::Visitor;
use crate::{
    bed::{Bed, eventually},
    memcached::SUBJECT,
};

/// Puts a value into each node and takes it out again, over a connection of its own.
const STORE_AND_READ: &str = r#"
for node in "$@"; do
  printf 'set greeting 0 60 5\r\nhello\r\nquit\r\n' | nc -w 10 "$node" 11211
  printf 'get greeting\r\nstats settings\r\nquit\r\n' | nc -w 10 "$node" 11211
done
echo done
"#;

/// Its Service is headless: clients learn the address of every node from it, and choose one for each key.
pub(super) async fn stores_and_returns_a_value(bed: Bed) {
    let mut object = SUBJECT.object("it", 2);
    object["spec"]["memoryMB"] = json!(32);
    object["spec"]["connections"] = json!(77);
    SUBJECT.create(&bed, object).await;
    SUBJECT.settled(&bed, "it", 2).await;
    let nodes = eventually("the Service knows both nodes", || async {
        let own = ListParams::default().labels("kubernetes.io/service-name=it");
        let slices = bed.api::<EndpointSlice>().list(&own).await.unwrap().items;
        let ready = slices.into_iter().filter_map(|slice| slice.endpoints).flatten().filter(|endpoint| {
            endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) == Some(true)
        });
        let addresses: Vec<String> = ready.flat_map(|endpoint| endpoint.addresses).collect();
        (addresses.len() == 2).then_some(addresses)
    })
    .await;
    let nodes: Vec<&str> = nodes.iter().map(String::as_str).collect();
    let visitor = Visitor::send(&bed, "visitor", STORE_AND_READ, &nodes).await;
    visitor.ends_with("done").await;
    let said = visitor.said().await;
    let count = |line: &str| said.iter().filter(|said| said.trim() == line).count();
    assert_eq!((count("STORED"), count("VALUE greeting 0 5"), count("hello")), (2, 2, 2), "{said:#?}");
    assert_eq!(count("STAT maxconns 77"), 2, "the options reach the server: {said:#?}");
    assert_eq!(count(&format!("STAT maxbytes {}", 32 * 1024 * 1024)), 2, "{said:#?}");
}
