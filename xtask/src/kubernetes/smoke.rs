//! `smoke`: proves that a testbed is a cluster: a Deployment from a local image, HTTP through its Service, logs, exec.
//!
//! Enters a testbed with a node; leaves nothing in it but the loaded image. Each step prints what it saw.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::images::{self, Image, Layer};
use super::kubectl::Kubectl;
use super::layout::{self, Layout};
use super::process::Identity;
use super::{inside, requirements, state};

const NAMESPACE: &str = "windlass-smoke";
const IMAGE: &str = "docker.io/library/windlass-smoke:1";
const GREETING: &str = "hello from the smoke test";
const SERVER: &str = "#!/bin/busybox sh
trap 'exit 0' TERM
echo serving
/bin/busybox httpd -f -p 8080 -h /site &
wait
";

const MANIFEST: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: windlass-smoke}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello, namespace: windlass-smoke}
spec:
  replicas: 2
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      containers:
      - name: hello
        image: windlass-smoke:1
        ports: [{containerPort: 8080}]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: hello, namespace: windlass-smoke}
spec:
  selector: {app: hello}
  ports: [{port: 80, targetPort: 8080}]
";

pub(super) fn run(name: &str) -> Result<()> {
    let (layout, inner) = state::require_node(name)?;
    let kubectl = Kubectl::new(&layout::kubectl()?, &layout.kubeconfig());
    let begin = Instant::now();
    let outcome = prove(&layout, inner, &kubectl);
    if outcome.is_err() {
        // Best effort: it explains the failure that is about to be reported.
        let pods = kubectl.output(&["describe", "pods", "--namespace", NAMESPACE]).unwrap_or_default();
        anstream::eprintln!("{pods}");
    }
    let removed = kubectl.output(&["delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=60s"]);
    outcome?;
    removed.context("failed to remove what the smoke test made")?;
    anstream::println!("smoke test passed in {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

fn prove(layout: &Layout, inner: Identity, kubectl: &Kubectl) -> Result<()> {
    let archive = layout.path("smoke.tar");
    write_image(&archive)?;
    images::import(inside::nsenter(inner, true, "ctr"), &archive)?;
    step("a locally built image is loaded");

    kubectl.with_input(&["apply", "--filename=-"], MANIFEST)?;
    let in_namespace = |args: &[&str]| kubectl.output(&[&["--namespace", NAMESPACE], args].concat());
    in_namespace(&["rollout", "status", "deployment/hello", "--timeout=90s"])?;
    step("its Deployment is available");

    let service = in_namespace(&["get", "service", "hello", "--output=jsonpath={.spec.clusterIP}"])?;
    get_from_box(inner, &format!("{service}:80"))?;
    step("it answers HTTP through its Service");

    let request = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc {service} 80");
    let answer = in_namespace(&["exec", "deployment/hello", "--", "/bin/busybox", "sh", "-c", &request])?;
    ensure!(answer.contains(GREETING), "a Pod got another answer through the Service: {answer:?}");
    step("`kubectl exec` works, and a Pod reaches the Service");

    let logs = in_namespace(&["logs", "deployment/hello"])?;
    ensure!(logs.trim() == "serving", "`kubectl logs` gave {logs:?}");
    step("`kubectl logs` works");
    Ok(())
}

fn step(what: &str) {
    anstream::println!("  ok  {what}");
}

fn write_image(path: &Path) -> Result<()> {
    let busybox = requirements::busybox().context("failed to find a static busybox")?;
    let layer = Layer::default()
        .file("bin/busybox", fs_err::read(busybox)?, 0o755)
        .symlink("bin/nc", "busybox")
        .file("serve", SERVER.as_bytes().to_vec(), 0o755)
        .file("site/index.html", format!("{GREETING}\n").into_bytes(), 0o644);
    let image = Image {
        tags: vec![IMAGE.to_owned()],
        layers: vec![layer],
        entrypoint: vec!["/serve".to_owned()],
        ports: vec![8080],
        ..Image::default()
    };
    images::write_file(path, &[image])
}

/// Asks from the box's network until the answer is right: kube-proxy may be a moment behind the endpoints.
fn get_from_box(inner: Identity, address: &str) -> Result<()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let output = inside::nsenter(inner, false, std::env::current_exe()?)
            .args(["kubernetes", "__http-get", address])
            .output()
            .context("failed to start a client in the box")?;
        let body = String::from_utf8_lossy(&output.stdout);
        if output.status.success() && body.trim() == GREETING {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!(
                "no right answer from {address}: {body:?} {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A client of one request, for use in a network namespace where no other client may be installed.
pub(super) fn http_get(address: SocketAddr) -> Result<()> {
    let patience = Duration::from_secs(3);
    let mut stream = TcpStream::connect_timeout(&address, patience)
        .with_context(|| format!("failed to reach {address}"))?;
    stream.set_read_timeout(Some(patience))?;
    write!(stream, "GET / HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("failed to read from {address}"))?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer was no HTTP")?;
    ensure!(head.split(' ').nth(1) == Some("200"), "the answer was {:?}", head.lines().next());
    anstream::print!("{body}");
    Ok(())
}
