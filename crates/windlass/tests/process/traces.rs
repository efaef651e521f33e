//! What a collector receives of an operator.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{Router, body::Bytes, extract::State, http::HeaderMap, routing::post};
use serde_json::json;
use windlass::{
    k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    kube::{Api, Client, Config, CustomResourceExt, api::PostParams, config::KubeConfigOptions},
};

use crate::{
    child::Operator,
    operator::{NAME, Parcel},
    setting::{self, eventually},
};

type Received = Arc<Mutex<Vec<(String, Bytes)>>>;

async fn receive(State(received): State<Received>, headers: HeaderMap, body: Bytes) {
    let content = headers["content-type"].to_str().unwrap().to_owned();
    received.lock().unwrap().push((content, body));
}

/// A short attribute as protobuf has it: a message of a name and of a message with a string.
fn attribute(name: &str, value: &str) -> Vec<u8> {
    let field = |tag: u8, bytes: &[u8]| [&[tag, u8::try_from(bytes.len()).unwrap()], bytes].concat();
    [field(0x0a, name.as_bytes()), field(0x12, &field(0x0a, value.as_bytes()))].concat()
}

pub fn embedded() {
    setting::runtime().block_on(async {
        let received = Received::default();
        let router = Router::new().route("/v1/traces", post(receive)).with_state(received.clone());
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("http://{}", socket.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(socket, router).await });

        let (admin, directory) = (setting::embedded().await, setting::directory("traces"));
        let kubeconfig = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string(&admin).unwrap()).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        crds.create(&PostParams::default(), &Parcel::crd()).await.unwrap();
        let body = json!({"metadata": {"name": "one"}, "spec": {"grams": 1}});
        let parcel: Parcel = serde_json::from_value(body).unwrap();
        let parcels = Api::<Parcel>::namespaced(client.clone(), "default");
        parcels.create(&PostParams::default(), &parcel).await.unwrap();

        let args = ["--health-probe-bind-address=0", "--enable-webhooks=false"];
        let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint.as_str())];
        let mut operator = Operator::start_with(&kubeconfig, "one", &args, &variables);
        let labels = Api::<windlass::k8s_openapi::api::core::v1::ConfigMap>::namespaced(client, "default");
        eventually("the parcel was reconciled", || async { labels.get_opt("one").await.unwrap().is_some() })
            .await;
        operator.terminate();
        assert!(operator.ended(Duration::from_secs(20)).success(), "{}", operator.output());

        let received = received.lock().unwrap();
        assert!(!received.is_empty(), "the last spans are sent before the process ends");
        assert!(received.iter().all(|(content, _)| content == "application/x-protobuf"));
        let all: Vec<u8> = received.iter().flat_map(|(_, body)| body.to_vec()).collect();
        for expected in [
            attribute("service.name", NAME),
            attribute("controller", "parcel"),
            attribute("key", "default/one"),
            b"reconcile".to_vec(),
        ] {
            let text = String::from_utf8_lossy(&expected).into_owned();
            assert!(all.windows(expected.len()).any(|part| part == expected), "{text:?} is missing");
        }
        std::fs::remove_dir_all(directory).unwrap();
    });
}
