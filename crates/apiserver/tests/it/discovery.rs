//! Discovery and OpenAPI for clients that keep what they have.

use bytes::Bytes;
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use serde_json::Value;

use crate::server::Server;

const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

async fn ask(server: &Server, path: &str, known: Option<&str>) -> (http::response::Parts, Bytes) {
    let mut request = Request::get(path).header(header::ACCEPT, format!("{AGGREGATED},application/json"));
    if let Some(tag) = known {
        request = request.header(header::IF_NONE_MATCH, tag);
    }
    let (parts, body) = server.request(request.body(Full::new(Bytes::new())).unwrap()).await.into_parts();
    (parts, body.collect().await.unwrap().to_bytes())
}

#[tokio::test]
async fn a_client_that_has_the_list_is_told_so() {
    let server = Server::new();
    for path in ["/api", "/apis", "/openapi/v3"] {
        let (first, body) = ask(&server, path, None).await;
        assert_eq!((first.status, body.is_empty()), (StatusCode::OK, false), "{path}");
        let tag = first.headers[header::ETAG].to_str().unwrap().to_owned();
        let (second, body) = ask(&server, path, Some(&tag)).await;
        assert_eq!((second.status, body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
        let (other, _) = ask(&server, path, Some("\"other\"")).await;
        assert_eq!(other.status, StatusCode::OK, "{path}");
    }
}

#[tokio::test]
async fn a_document_that_is_asked_for_by_its_hash_may_be_kept() {
    let server = Server::new();
    let (_, index) = ask(&server, "/openapi/v3", None).await;
    let index: Value = serde_json::from_slice(&index).unwrap();
    let address = index["paths"]["apis/apps/v1"]["serverRelativeURL"].as_str().unwrap();
    let (parts, _) = ask(&server, address, None).await;
    assert_eq!(parts.headers[header::CACHE_CONTROL], "public, immutable");
    assert!(parts.headers.contains_key(header::EXPIRES));
    let (parts, _) = ask(&server, "/openapi/v3/apis/apps/v1", None).await;
    assert_eq!(parts.headers[header::CACHE_CONTROL], "no-cache, private");
}
