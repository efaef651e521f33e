//! The parsers, each behind a function of bytes.

use bytes::Bytes;
use http::{Method, Request, Uri, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use windlass_apiserver::{
    data_directory::DataDirectory,
    schema::cel,
    store::{DiskOptions, Store},
};

use super::corpus;
use crate::{
    dice::Dice,
    server::{CONFIG_MAPS, DEPLOYMENTS, Server, config_map, deployment},
};

/// A parser and what its inputs are made from.
pub(super) struct Target {
    pub(super) name: &'static str,
    /// How often it is drawn, beside the others.
    weight: usize,
    pub(super) entries: Vec<Vec<u8>>,
    way: Way,
}

/// How bytes get to a parser.
enum Way {
    /// As the body of a request.
    Body(Method, &'static str, &'static str),
    /// As a value in the query of a list.
    Query(&'static str),
    /// As the path and query of a request.
    Path,
    Expression,
    /// As a log on disk of this name.
    Log(String),
}

pub(super) struct Targets {
    pub(super) all: Vec<Target>,
    server: Server,
}

const DRY: &str = "/apis/apps/v1/namespaces/default/deployments?dryRun=All";
const DRY_ITEM: &str = "/apis/apps/v1/namespaces/default/deployments/a?dryRun=All&fieldManager=m";
const DEFINITION: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?dryRun=All";

impl Targets {
    pub(super) async fn new() -> Self {
        use Way::{Body, Query};
        let body = |name, method, path, media| {
            let way = Body(method, path, media);
            Target { name, weight: 8, entries: corpus(name), way }
        };
        let query =
            |name, parameter| Target { name, weight: 12, entries: corpus(name), way: Query(parameter) };
        let mut protobuf = body("json", Method::POST, DRY, "application/vnd.kubernetes.protobuf");
        protobuf.name = "protobuf";
        protobuf.entries = messages();
        let (log_name, log) = log().await;
        let all = vec![
            body("json", Method::POST, DRY, "application/json"),
            body("definition", Method::POST, DEFINITION, "application/json"),
            body("yaml", Method::POST, DRY, "application/yaml"),
            protobuf,
            body("json-patch", Method::PATCH, DRY_ITEM, "application/json-patch+json"),
            body("merge-patch", Method::PATCH, DRY_ITEM, "application/merge-patch+json"),
            body("strategic-patch", Method::PATCH, DRY_ITEM, "application/strategic-merge-patch+json"),
            body("apply", Method::PATCH, DRY_ITEM, "application/apply-patch+yaml"),
            query("label-selector", "labelSelector"),
            query("field-selector", "fieldSelector"),
            query("continue", "limit=1&continue"),
            Target { name: "path", weight: 15, entries: corpus("path"), way: Way::Path },
            Target { name: "expression", weight: 15, entries: corpus("expression"), way: Way::Expression },
            Target { name: "log", weight: 1, entries: vec![log], way: Way::Log(log_name) },
        ];
        Self { all, server: furnished().await }
    }

    pub(super) fn draw(&self, dice: &mut Dice) -> usize {
        let mut place = dice.below(self.all.iter().map(|target| target.weight).sum());
        self.all
            .iter()
            .position(|target| {
                let here = place < target.weight;
                place = place.wrapping_sub(target.weight);
                here
            })
            .unwrap()
    }

    /// Takes the input to its parser. Fails if what comes back is not the parser's own word.
    pub(super) async fn send(&mut self, target: usize, input: &[u8]) -> Result<(), String> {
        let (method, uri, media, body) = match &self.all[target].way {
            Way::Expression => {
                let Ok(text) = std::str::from_utf8(input) else { return Ok(()) };
                if let Ok(expression) = cel::Expression::compile(text) {
                    let object = json!({"a": 1, "b": ["x"], "s": "text", "m": {"k": "v"}});
                    let _ = expression.evaluate_bool(&[("self", &object), ("oldSelf", &object)]);
                }
                return Ok(());
            }
            Way::Log(name) => return open(name, input),
            Way::Body(method, path, media) => {
                (method.clone(), Uri::from_static(path), *media, Bytes::copy_from_slice(input))
            }
            Way::Query(parameter) => {
                let encoded: String =
                    input.iter().map(|byte| format!("%{byte:02x}")).collect::<Vec<_>>().concat();
                let Ok(uri) = Uri::try_from(format!("{CONFIG_MAPS}?{parameter}={encoded}")) else {
                    return Ok(());
                };
                (Method::GET, uri, "application/json", Bytes::new())
            }
            Way::Path => {
                let Ok(uri) = Uri::try_from(input) else { return Ok(()) };
                (Method::GET, uri, "application/json", Bytes::new())
            }
        };
        let watched = uri.query().is_some_and(|query| query.contains("watch"));
        let request = Request::builder().method(method).uri(uri).header(header::CONTENT_TYPE, media);
        let answer = self.server.request(request.body(Full::new(body)).unwrap()).await;
        let status = answer.status().as_u16();
        if status >= 500 && status != 504 {
            let said = answer.into_body().collect().await.map(|body| body.to_bytes()).unwrap_or_default();
            let body: Value = serde_json::from_slice(&said).unwrap_or_default();
            // Kubernetes answers some nonsense so: a message and no reason. What nobody foresaw has one.
            if status == 500 && body["reason"].is_null() && body["message"].is_string() {
                return Ok(());
            }
            return Err(format!("{status} {}", said.escape_ascii()));
        }
        if !watched {
            let _ = answer.into_body().collect().await;
        }
        Ok(())
    }
}

/// A server with something to patch and to list.
async fn furnished() -> Server {
    let server = Server::new();
    for name in ["a", "b", "c"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({"app": name}))).await.expect_success();
    }
    server.post(DEPLOYMENTS, &deployment("a")).await.expect_success();
    server
}

/// The messages that Kubernetes' own encoder has written.
fn messages() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/protobuf");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pb"));
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The name and the bytes of a log with a few objects.
async fn log() -> (String, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let directory = DataDirectory::open(folder.path()).unwrap();
    let server = Server::with_store(Store::open(&directory, options()).unwrap());
    for name in ["a", "b"] {
        server.post(CONFIG_MAPS, &config_map(name, &json!({"app": name}))).await.expect_success();
    }
    drop(server);
    drop(directory);
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path().join("store")).unwrap().map(|file| file.unwrap().path()).collect();
    files.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log-")));
    let path = files.pop().expect("a log");
    let bytes = std::fs::read(&path).unwrap();
    // What the server writes at its start is long and of one kind: a part is enough to bend.
    let part = bytes[..bytes.len().min(20_000)].to_vec();
    (path.file_name().unwrap().to_string_lossy().into_owned(), part)
}

fn options() -> DiskOptions {
    DiskOptions { sync: false, reserve: 0, ..DiskOptions::default() }
}

/// Opens a store whose log is these bytes: it opens, or says why not.
fn open(name: &str, bytes: &[u8]) -> Result<(), String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let directory = DataDirectory::open(folder.path()).map_err(|error| error.to_string())?;
    let store = directory.subdirectory("store").map_err(|error| error.to_string())?;
    std::fs::write(store.join(name), bytes).map_err(|error| error.to_string())?;
    drop(Store::open(&directory, options()));
    Ok(())
}
