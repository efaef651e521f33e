//! What the crate promises about itself: no clock and no chance of its own, and no secret in a log.

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use http::{Method, Request, header};
use http_body_util::Full;
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use crate::server::Server;

/// What would read the machine's clock or its random source.
const FORBIDDEN: [&str; 9] = [
    "Timestamp::now",
    "Zoned::now",
    "SystemTime",
    "std::time::Instant",
    "thread_rng",
    "rand::rng(",
    "rand::random",
    "new_v4",
    "RandomState",
];

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push(path);
        }
    }
}

#[test]
fn nothing_reads_the_machines_clock_or_chance() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 100, "the sources must be found");
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if FORBIDDEN.iter().any(|word| code.contains(word)) {
                found.push(format!("{}:{}: {}", file.display(), number + 1, line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "ask the Environment instead:\n{}", found.join("\n"));
}

/// Collects what is logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[tokio::test]
async fn no_secret_reaches_a_log() {
    const SECRET: &str = "c2VjcmV0LXdvcmQ=";
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(log.clone());
    let _guard = tracing::subscriber::set_default(subscriber.finish());
    tracing::info!("the log is read");
    let server = Server::new();
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = json!({"metadata": {"name": "a"}, "data": {"password": SECRET}});
    server.post(secrets, &secret).await.expect_success();
    // Failures are where bodies slip into messages.
    server.post(secrets, &secret).await.failed(409, "AlreadyExists");
    server.post(secrets, &json!({"metadata": {"name": "b"}, "data": {"password": [SECRET]}})).await;
    let bad = json!([{"op": "test", "path": "/data/password", "value": "no"}, {"op": "add", "path": "/x/y", "value": SECRET}]);
    server
        .send(Method::PATCH, &format!("{secrets}/a"), "application/json-patch+json", "application/json", &bad)
        .await;
    for token in [format!("Bearer {SECRET}"), format!("Basic {SECRET}")] {
        let request =
            Request::get(secrets).header(header::AUTHORIZATION, token).body(Full::<bytes::Bytes>::default());
        server.answer(request.unwrap()).await;
    }
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(text.contains("the log is read"));
    assert!(!text.contains(SECRET), "{text}");
}
