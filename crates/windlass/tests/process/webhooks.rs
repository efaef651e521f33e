//! What the API server sees of an operator's webhooks.

use std::{path::PathBuf, time::Duration};

use serde_json::{Value, json};
use windlass::{
    k8s_openapi::{
        api::admissionregistration::v1::ValidatingWebhookConfiguration,
        apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
    },
    kube::{
        Api, Client, Config, CustomResourceExt, ResourceExt,
        api::{DeleteParams, ListParams, Patch, PatchParams, PostParams},
        config::KubeConfigOptions,
    },
};

use crate::{
    child::Operator,
    operator::{self, Parcel, v1},
    setting::{self, Setting, eventually},
};

fn parcel(name: &str, spec: &Value) -> Parcel {
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()
}

/// In the cluster's way: a Service, certificates from the Secret, and the generated permissions only.
pub fn real() {
    let _turn = setting::turn();
    setting::runtime().block_on(async {
        let setting = Setting::new("webhooks", setting::real()).await;
        let (host, port) = (setting.address.to_string(), setting.port.to_string());
        let args =
            ["--webhook-host", &host, "--webhook-port", &port, "--health-probe-bind-address", "127.0.0.1:0"];
        let replica = |name| Operator::start(&setting.kubeconfig, name, &args);
        let mut first = replica("one");
        first.wrote("serving webhooks", Duration::from_secs(30));
        judged(&setting.admin, &setting.namespace).await;
        converted(&setting.admin, &setting.namespace).await;
        first.terminate();
        assert!(first.ended(Duration::from_secs(20)).success(), "{}", first.output());
        assert!(
            !first.output().contains("orbidden"),
            "the generated rules must suffice:\n{}",
            first.output()
        );
        drop(first);
        // The certificate is in the Secret: whoever comes next is trusted at once.
        let second = replica("two");
        second.wrote("serving webhooks", Duration::from_secs(30));
        judged(&setting.admin, &setting.namespace).await;
        drop(second);
        setting.remove().await;
    });
}

/// As on a developer's machine: a URL, and configurations that come and go with the process.
pub fn embedded() {
    setting::runtime().block_on(async {
        let admin = setting::embedded().await;
        let directory = setting::directory("embedded-webhooks");
        let kubeconfig: PathBuf = directory.join("kubeconfig");
        std::fs::write(&kubeconfig, serde_json::to_string(&admin).unwrap()).unwrap();
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await.unwrap();
        let client = Client::try_from(config).unwrap();
        let crds = Api::<CustomResourceDefinition>::all(client.clone());
        let crd = operator::operator().crds()[0].clone();
        crds.create(&PostParams::default(), &crd).await.unwrap();
        let strategy = || async {
            let live = crds.get(Parcel::crd_name()).await.unwrap();
            let left = live.annotations().contains_key("windlass.dev/conversion-before");
            let strategy = live.spec.conversion.map(|conversion| conversion.strategy);
            (strategy.unwrap_or_else(|| "None".to_owned()), left)
        };
        let port = setting::free_port("127.0.0.1".parse().unwrap()).to_string();
        let url = format!("https://127.0.0.1:{port}");
        let args = ["--webhook-host=127.0.0.1", "--webhook-port", &port, "--webhook-url", &url];
        let probes = ["--health-probe-bind-address", "127.0.0.1:0"];
        let mut operator = Operator::start(&kubeconfig, "one", &[&args[..], &probes[..]].concat());
        operator.wrote("serving webhooks", Duration::from_secs(30));
        judged(&client, "default").await;
        converted(&client, "default").await;
        speaks_http2(&client, &format!("127.0.0.1:{port}")).await;
        assert_eq!(strategy().await, ("Webhook".to_owned(), true));
        operator.terminate();
        assert!(operator.ended(Duration::from_secs(20)).success(), "{}", operator.output());
        assert_eq!(strategy().await, ("None".to_owned(), false), "as it was before");
        let parcels = Api::<Parcel>::namespaced(client.clone(), "default");
        let unjudged = parcel("late", &json!({"grams": -1}));
        parcels.create(&PostParams::default(), &unjudged).await.expect("nobody is asked any more");

        // A process that is killed leaves an address where nobody listens; the next one clears that up.
        let mut killed = Operator::start(&kubeconfig, "two", &[&args[..], &probes[..]].concat());
        eventually("the kind is converted", || async { strategy().await.0 == "Webhook" }).await;
        killed.kill();
        let old = Api::<v1::Parcel>::namespaced(client.clone(), "default");
        assert!(old.get("late").await.is_err(), "nobody answers");
        let quiet = ["--enable-webhooks=false", "--health-probe-bind-address=0"];
        let mut next = Operator::start(&kubeconfig, "three", &quiet);
        eventually("the conversion is put back", || async { strategy().await == ("None".to_owned(), false) })
            .await;
        next.wrote("starting", Duration::from_secs(30));
        parcels.create(&PostParams::default(), &parcel("later", &json!({"grams": -1}))).await.unwrap();
        next.terminate();
        assert!(next.ended(Duration::from_secs(20)).success(), "{}", next.output());
        std::fs::remove_dir_all(directory).unwrap();
    });
}

/// A client that offers both protocols gets HTTP/2, and an answer.
async fn speaks_http2(client: &Client, address: &str) {
    use rustls::{
        ClientConfig, RootCertStore,
        pki_types::{CertificateDer, ServerName, pem::PemObject},
    };
    let configurations = Api::<ValidatingWebhookConfiguration>::all(client.clone());
    let configuration = configurations.get("parcel-operator-local").await.unwrap();
    let bundle = configuration.webhooks.unwrap()[0].client_config.ca_bundle.clone().unwrap().0;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bundle) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let provider = rustls::crypto::ring::default_provider().into();
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let stream = connector.connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let io = hyper_util::rt::TokioIo::new(stream);
    let executor = hyper_util::rt::TokioExecutor::new();
    let (mut sender, connection) = hyper::client::conn::http2::handshake(executor, io).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::get(format!("https://{address}/nothing"));
    let answer = sender.send_request(request.body(String::new()).unwrap()).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (404, http::Version::HTTP_2));
}

/// Rejection with the fields at fault, defaults, warnings, and a guarded deletion.
async fn judged(client: &Client, namespace: &str) {
    let parcels = Api::<Parcel>::namespaced(client.clone(), namespace);
    let params = PostParams::default();
    let bad = parcel("bad", &json!({"grams": -1}));
    // Until the API server has seen the newest configuration it may not ask, or not trust.
    eventually("a bad parcel is refused", || async {
        match parcels.create(&params, &bad).await {
            Ok(_) => {
                parcels.delete("bad", &DeleteParams::default()).await.unwrap();
                false
            }
            Err(error) => error.to_string().contains("must be positive"),
        }
    })
    .await;
    let refusal = match parcels.create(&params, &bad).await.unwrap_err() {
        windlass::kube::Error::Api(status) => status,
        other => panic!("{other}"),
    };
    assert_eq!((refusal.code, refusal.reason.as_str()), (422, "Invalid"));
    assert_eq!(
        refusal.message,
        "admission webhook \"validate.v2.parcels.process.windlass.dev\" denied the request: \
         Parcel.process.windlass.dev \"bad\" is invalid: spec.grams: Invalid value: -1: must be positive"
    );
    assert_eq!(refusal.details.unwrap().causes[0].field, "spec.grams");

    let empty = parcels.create(&params, &parcel("light", &json!({}))).await.unwrap();
    assert_eq!(empty.spec.grams, Some(500), "the default is in what the API server answers");
    let rehearsal = PostParams { dry_run: true, ..PostParams::default() };
    let rehearsed = parcels.create(&rehearsal, &parcel("never", &json!({}))).await.unwrap();
    assert_eq!((rehearsed.spec.grams, parcels.get_opt("never").await.unwrap().is_none()), (Some(500), true));

    assert_eq!(warnings(client, namespace).await, ["299 - \"heavy parcels are slow\""]);

    let stamp = json!({"metadata": {"labels": {"registered": "yes"}}});
    parcels.patch("light", &PatchParams::default(), &Patch::Merge(&stamp)).await.unwrap();
    let refusal = parcels.delete("light", &DeleteParams::default()).await.unwrap_err();
    assert!(refusal.to_string().contains("registered parcels stay"), "{refusal}");
    let stamp = json!({"metadata": {"labels": null}});
    parcels.patch("light", &PatchParams::default(), &Patch::Merge(&stamp)).await.unwrap();
    parcels.delete("light", &DeleteParams::default()).await.unwrap();
}

/// The warnings of a creation, which is a rehearsal.
async fn warnings(client: &Client, namespace: &str) -> Vec<String> {
    let heavy = json!({
        "apiVersion": "process.windlass.dev/v2", "kind": "Parcel",
        "metadata": {"name": "heavy"}, "spec": {"grams": 40_000},
    });
    let path = format!("/apis/process.windlass.dev/v2/namespaces/{namespace}/parcels?dryRun=All");
    let request = http::Request::post(path).header("content-type", "application/json");
    let response = client.send(request.body(heavy.to_string().into_bytes().into()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 201);
    let values = response.headers().get_all("warning").iter();
    values.map(|value| value.to_str().unwrap().to_owned()).collect()
}

/// Both versions of one object, with nothing lost on the way.
async fn converted(client: &Client, namespace: &str) {
    let old = Api::<v1::Parcel>::namespaced(client.clone(), namespace);
    let new = Api::<Parcel>::namespaced(client.clone(), namespace);
    let spec = json!({"kilograms": "3", "stamp": "blue"});
    let body: v1::Parcel =
        serde_json::from_value(json!({"metadata": {"name": "old"}, "spec": spec})).unwrap();
    let created = old.create(&PostParams::default(), &body).await.unwrap();
    assert_eq!(created.spec.stamp.as_deref(), Some("blue"));
    let hub = new.get("old").await.unwrap();
    assert_eq!((hub.spec.grams, hub.uid()), (Some(3000), created.uid()));
    let change = json!({"spec": {"grams": 7000}});
    new.patch("old", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    let listed = old.list(&ListParams::default()).await.unwrap().items;
    let back = listed.iter().find(|parcel| parcel.name_any() == "old").unwrap();
    assert_eq!((back.spec.kilograms.as_str(), back.spec.stamp.as_deref()), ("7", Some("blue")));
    let wrong = json!({"spec": {"kilograms": "many"}});
    let refusal = old.patch("old", &PatchParams::default(), &Patch::Merge(&wrong)).await.unwrap_err();
    assert!(refusal.to_string().contains("failed to convert Parcel"), "{refusal}");
    old.delete("old", &DeleteParams::default()).await.unwrap();
}
