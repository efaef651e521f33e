//! Large answers for clients that ask for gzip.

use std::io::Read;

use bytes::Bytes;
use http::{Method, Request, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};

use crate::server::{CONFIG_MAPS, Server};

/// What a client gets that sends this `Accept-Encoding`: the encoding, `Vary`, the bytes.
async fn get(server: &Server, path: &str, accepted: Option<&str>) -> (Option<String>, Option<String>, Bytes) {
    let mut request = Request::builder().method(Method::GET).uri(path);
    if let Some(accepted) = accepted {
        request = request.header(header::ACCEPT_ENCODING, accepted);
    }
    let response = server.request(request.body(Full::default()).unwrap()).await;
    assert!(response.status().is_success(), "{}", response.status());
    let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (encoding, vary) = (header(header::CONTENT_ENCODING), header(header::VARY));
    (encoding, vary, response.into_body().collect().await.unwrap().to_bytes())
}

fn decompressed(bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    plain
}

async fn with_config_maps(count: usize) -> Server {
    let server = Server::new();
    for index in 0..count {
        let text = format!("line {index}\n").repeat(1000);
        let object = json!({"metadata": {"name": format!("large-{index}")}, "data": {"text": text}});
        server.post(CONFIG_MAPS, &object).await.expect_success();
    }
    server
}

#[tokio::test]
async fn a_large_list_is_the_same_with_and_without_gzip() {
    let server = with_config_maps(60).await;
    let (encoding, vary, plain) = get(&server, CONFIG_MAPS, None).await;
    assert_eq!((encoding, vary), (None, None));
    assert!(plain.len() > 512 * 1024, "{}", plain.len());
    for accepted in ["gzip", "deflate, gzip"] {
        let (encoding, vary, small) = get(&server, CONFIG_MAPS, Some(accepted)).await;
        assert_eq!((encoding.as_deref(), vary.as_deref()), (Some("gzip"), Some("Accept-Encoding")));
        assert!(small.len() < plain.len() / 10, "{} of {}", small.len(), plain.len());
        assert_eq!(decompressed(&small), plain);
    }
    for refused in ["gzip;q=0", "identity", "br", "*"] {
        let (encoding, _, body) = get(&server, CONFIG_MAPS, Some(refused)).await;
        assert_eq!((encoding, body), (None, plain.clone()), "{refused}");
    }
}

#[tokio::test]
async fn a_large_object_is_compressed_too() {
    let server = Server::new();
    let object = json!({"metadata": {"name": "one"}, "data": {"text": "word ".repeat(100_000)}});
    server.post(CONFIG_MAPS, &object).await.expect_success();
    let path = format!("{CONFIG_MAPS}/one");
    let (_, _, plain) = get(&server, &path, None).await;
    let (encoding, _, small) = get(&server, &path, Some("gzip")).await;
    assert_eq!(encoding.as_deref(), Some("gzip"));
    assert_eq!(decompressed(&small), plain);
}

#[tokio::test]
async fn small_answers_and_watches_stay_as_they_are() {
    let server = with_config_maps(1).await;
    let (encoding, _, body) = get(&server, CONFIG_MAPS, Some("gzip")).await;
    assert_eq!(encoding, None);
    assert_eq!(serde_json::from_slice::<Value>(&body).unwrap()["kind"], "ConfigMapList");
    let watch = format!("{CONFIG_MAPS}?watch=true&timeoutSeconds=1");
    let (encoding, _, body) = get(&server, &watch, Some("gzip")).await;
    assert_eq!(encoding, None);
    assert!(body.starts_with(b"{\"type\":\"ADDED\""));
}

#[tokio::test]
async fn the_openapi_documents_differ_in_this_as_in_the_real_server() {
    let server = Server::new();
    let (_, _, plain) = get(&server, "/openapi/v2", None).await;
    let (encoding, _, small) = get(&server, "/openapi/v2", Some("gzip;q=0.5")).await;
    assert_eq!(encoding.as_deref(), Some("gzip"));
    assert_eq!(decompressed(&small), plain);
    let (encoding, _, body) = get(&server, "/openapi/v3/api/v1", Some("gzip")).await;
    assert_eq!(encoding, None);
    assert!(body.len() > 128 * 1024);
}
