//! Tokens of an issuer of OpenID Connect, which really serves its keys over TLS on loopback.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use windlass_apiserver::{
    ApiServer,
    auth::{
        oidc::{Algorithm, OidcOptions},
        token::{ISSUER, Signer},
    },
    environment::{Environment, TokioClock},
    registry::Registry,
    store::Store,
};

use crate::hook::certificates;

/// An issuer whose documents a test can change.
struct Issuer {
    address: SocketAddr,
    authorities: String,
    documents: Arc<Mutex<BTreeMap<String, Value>>>,
    asked: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Issuer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Issuer {
    async fn start(signer: &Signer) -> Self {
        let (tls, bundle) = certificates(&["127.0.0.1"]);
        let socket = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let documents: Arc<Mutex<BTreeMap<String, Value>>> = Arc::default();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (served, noted) = (Arc::clone(&documents), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = socket.accept().await {
                let Ok(stream) = tls.accept(stream).await else { continue };
                let (served, noted) = (Arc::clone(&served), Arc::clone(&noted));
                let service = service_fn(move |request: Request<Incoming>| {
                    let path = request.uri().path().to_owned();
                    noted.lock().unwrap().push(path.clone());
                    let found = served.lock().unwrap().get(&path).cloned();
                    let answer: Response<Full<Bytes>> = match found {
                        Some(document) => Response::new(Full::from(document.to_string())),
                        None => Response::builder().status(404).body(Full::from("none")).unwrap(),
                    };
                    async move { Ok::<_, std::convert::Infallible>(answer) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(connection);
            }
        });
        let authorities = String::from_utf8(STANDARD.decode(bundle).unwrap()).unwrap();
        let issuer = Self { address, authorities, documents, asked, task };
        let url = issuer.url();
        issuer.put(
            "/.well-known/openid-configuration",
            json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
        );
        issuer.put("/keys", signer.key_set());
        issuer
    }

    fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    fn put(&self, path: &str, document: Value) {
        self.documents.lock().unwrap().insert(path.to_owned(), document);
    }

    fn server(&self, change: impl FnOnce(&mut OidcOptions)) -> ApiServer {
        let mut options = OidcOptions::new(&self.url(), "windlass").unwrap();
        options.authorities = Some(self.authorities.clone());
        options.algorithms = vec![Algorithm::Es256];
        options.groups_claim = Some("groups".to_owned());
        change(&mut options);
        let environment =
            Environment::new(TokioClock::starting_at("2026-01-01T00:00:00Z".parse().unwrap()), 7);
        let registry = Registry::new(Arc::new(Store::default()), environment).unwrap();
        ApiServer::new(Arc::new(registry)).with_oidc(options)
    }

    fn token(&self, signer: &Signer) -> String {
        // The moment of the server's clock, and an hour.
        let end = 1_767_225_600 + 3600;
        let claims =
            json!({"iss": self.url(), "aud": "windlass", "sub": "ann", "groups": ["dev"], "exp": end});
        signer.sign(&claims).unwrap()
    }
}

/// Who the server thinks it is.
async fn who(server: &ApiServer, token: &str) -> (u16, Value) {
    let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).to_string();
    let request = Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
        .header(header::AUTHORIZATION, format!("Bearer {token}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Full::new(Bytes::from(body)))
        .unwrap();
    let answer = server.answer(request).await;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice::<Value>(&body).unwrap()["status"]["userInfo"].clone())
}

#[tokio::test]
async fn a_token_of_the_issuer_is_a_user_and_any_other_is_nobody() {
    let (signer, stranger) = (Signer::generate().unwrap(), Signer::generate().unwrap());
    let issuer = Issuer::start(&signer).await;
    let server = issuer.server(|_| {});
    let (status, user) = who(&server, &issuer.token(&signer)).await;
    assert_eq!(status, 201);
    assert_eq!(user["username"], format!("{}#ann", issuer.url()));
    assert_eq!(user["groups"], json!(["dev", "system:authenticated"]));
    assert_eq!(who(&server, &issuer.token(&stranger)).await.0, 401);
    assert_eq!(who(&server, "abc").await.0, 401);
    // Its own tokens are its own, whatever the issuer's keys are.
    let own = signer.sign(&json!({"iss": ISSUER, "sub": "system:serviceaccount:default:default"})).unwrap();
    assert_eq!(who(&server, &own).await.0, 401);
    let asked = issuer.asked.lock().unwrap().clone();
    assert_eq!(asked[..2], ["/.well-known/openid-configuration", "/keys"]);
    assert!(asked.len() <= 4, "keys are kept: {asked:?}");
}

#[tokio::test]
async fn new_keys_of_the_issuer_are_fetched_when_a_token_names_them() {
    let (old, new) = (Signer::generate().unwrap(), Signer::generate().unwrap());
    let issuer = Issuer::start(&old).await;
    let server = issuer.server(|_| {});
    assert_eq!(who(&server, &issuer.token(&old)).await.0, 201);
    issuer.put("/keys", new.key_set());
    let token = issuer.token(&new);
    let rotated = async {
        while who(&server, &token).await.0 != 201 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), rotated).await.unwrap();
    assert_eq!(
        who(&server, &issuer.token(&old)).await.0,
        401,
        "what the issuer has withdrawn is worth nothing"
    );
}

#[tokio::test]
async fn an_issuer_that_is_not_who_it_claims_or_does_not_answer_lets_nobody_in() {
    let signer = Signer::generate().unwrap();
    let issuer = Issuer::start(&signer).await;
    let token = issuer.token(&signer);
    // Signed by an authority that nobody has named.
    let untrusted = issuer.server(|options| options.authorities = Some(other_authority()));
    assert_eq!(who(&untrusted, &token).await.0, 401);
    let server = issuer.server(|_| {});
    issuer.put(
        "/.well-known/openid-configuration",
        json!({"issuer": "https://else", "jwks_uri": "https://else"}),
    );
    assert_eq!(who(&server, &token).await.0, 401);
    issuer.documents.lock().unwrap().clear();
    assert_eq!(who(&issuer.server(|_| {}), &token).await.0, 401);
    let gone = issuer.server(|_| {});
    drop(issuer);
    assert_eq!(who(&gone, &token).await.0, 401);
}

fn other_authority() -> String {
    String::from_utf8(STANDARD.decode(certificates(&["127.0.0.1"]).1).unwrap()).unwrap()
}
