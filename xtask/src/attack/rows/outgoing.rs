//! Calls out of the server: to Pods that are simulated, to addresses that nobody means, to servers that never answer.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

use super::super::{
    Stage,
    client::Who,
    objects::{self, CONFIG_MAPS, SERVICES},
};

const WEBHOOKS: &str = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations";

fn webhook(name: &str, client: &Value) -> Value {
    json!({"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1",
        "metadata": {"name": name}, "webhooks": [{"name": "hook.example.com", "clientConfig": client,
            "admissionReviewVersions": ["v1"], "sideEffects": "None", "timeoutSeconds": 30, "failurePolicy": "Fail",
            "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["CREATE"]}]}]})
}

/// Connections to the network of Pods, in the kernel's own words.
fn dials_pods(connections: &str) -> bool {
    // 10.244.0.0/16, least significant byte first, in the third column.
    connections
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .any(|remote| remote.contains("F40A:"))
}

/// A Service that leads to simulated Pods leads nowhere, and says so at once.
pub(super) async fn simulated(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    client.post(deployments, &objects::deployment("hook", 1)).await?.succeed()?;
    let service = json!({"kind": "Service", "apiVersion": "v1", "metadata": {"name": "hook"},
        "spec": {"selector": {"app": "hook"}, "ports": [{"port": 443, "targetPort": 8443}]}});
    client.post(SERVICES, &service).await?.succeed()?;
    let slices = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices";
    for turn in 0.. {
        let found = client.get(slices).await?.succeed()?;
        if String::from_utf8_lossy(&found.body).contains("10.244.") {
            break;
        }
        ensure!(turn < 200, "the Service has no endpoints after 20 s");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    client
        .post(WEBHOOKS, &webhook("hook", &json!({"service": {"namespace": "default", "name": "hook"}})))
        .await?
        .succeed()?;
    let mut other = stage.server.api().admin().await?;
    let (map, begin) = (objects::config_map("refused", "x"), Instant::now());
    let asked = tokio::spawn(async move { other.post(CONFIG_MAPS, &map).await });
    let mut dialled = false;
    while !asked.is_finished() {
        dialled |= dials_pods(&stage.server.connections()?);
        ensure!(!dialled, "the server dials a Pod that is simulated");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let answer = asked.await??;
    ensure!(answer.status == 500, "{}: {}", answer.status, answer.message());
    ensure!(answer.message().contains("simulated"), "the message does not say why: {}", answer.message());
    ensure!(begin.elapsed() < Duration::from_secs(20), "it took {} s", begin.elapsed().as_secs());
    Ok(answer.message().chars().rev().take(90).collect::<Vec<_>>().into_iter().rev().collect())
}

/// Link-local addresses, where clouds keep credentials, are not dialled; loopback is.
pub(super) async fn metadata(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    let refused = [
        "https://169.254.169.254/latest",
        "https://[::ffff:169.254.169.254]/",
        "https://[fe80::1]/",
        "https://0.0.0.0:8443/",
        "https://[::]:8443/",
        "https://224.0.0.1/",
        "https://255.255.255.255/",
    ];
    for url in refused {
        client.post(WEBHOOKS, &webhook("hook", &json!({"url": url}))).await?.succeed()?;
        let begin = Instant::now();
        let answer = client.post(CONFIG_MAPS, &objects::config_map("refused", "x")).await?;
        ensure!(answer.status == 500, "{url}: {}", answer.status);
        ensure!(answer.message().contains("refused to call"), "{url}: {}", answer.message());
        ensure!(begin.elapsed() < Duration::from_secs(20), "{url} took {} s", begin.elapsed().as_secs());
        client.delete(&format!("{WEBHOOKS}/hook")).await?.succeed()?;
    }
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/", listener.local_addr()?);
    client.post(WEBHOOKS, &webhook("hook", &json!({"url": url}))).await?.succeed()?;
    let asked =
        tokio::spawn(async move { client.post(CONFIG_MAPS, &objects::config_map("refused", "x")).await });
    let arrived = tokio::time::timeout(Duration::from_secs(20), listener.accept()).await;
    ensure!(arrived.is_ok(), "a webhook on loopback is not called");
    drop((arrived, listener));
    let answer = asked.await??;
    ensure!(answer.status == 500, "a webhook that hangs up gave {}", answer.status);
    Ok(format!("{} addresses refused, loopback called", refused.len()))
}

/// A client that leaves takes its request along: nobody waits for the webhook any more.
pub(super) async fn client_leaves(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/", listener.local_addr()?);
    client.post(WEBHOOKS, &webhook("hook", &json!({"url": url}))).await?.succeed()?;
    let asked =
        tokio::spawn(async move { client.post(CONFIG_MAPS, &objects::config_map("left", "x")).await });
    let (mut held, _) = tokio::time::timeout(Duration::from_secs(20), listener.accept()).await??;
    asked.abort();
    let begin = Instant::now();
    let mut bytes = [0; 4096];
    // The handshake was begun; after it comes the end of the connection, long before the webhook's timeout.
    loop {
        let read = tokio::time::timeout(Duration::from_secs(15), held.read(&mut bytes)).await;
        match read {
            Ok(Ok(0) | Err(_)) => break,
            Ok(Ok(_)) => {}
            Err(_) => anyhow::bail!("the webhook is still waited for 15 s after the client left"),
        }
    }
    let mut other = stage.server.api().admin().await?;
    let left = other.get(&format!("{CONFIG_MAPS}/left")).await?.status;
    ensure!(left == 404, "the object is there: {left}");
    Ok(format!("the webhook was left {:.1} s after the client", begin.elapsed().as_secs_f64()))
}

/// A webhook that never answers, a watch, and an unread list are under way: the process ends all the same.
pub(super) async fn stop_under_way(stage: &mut Stage) -> Result<String> {
    let mut client = stage.server.api().admin().await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("https://{}/", listener.local_addr()?);
    client.post(WEBHOOKS, &webhook("hook", &json!({"url": url}))).await?.succeed()?;
    let hanging =
        tokio::spawn(async move { client.post(CONFIG_MAPS, &objects::config_map("held", "x")).await });
    let held = tokio::time::timeout(Duration::from_secs(20), listener.accept()).await??;
    let mut streams = Vec::new();
    for path in [CONFIG_MAPS.to_owned() + "?watch=true", "/openapi/v2".to_owned()] {
        let mut stream = stage.server.api().stream(Who::Admin, "http/1.1").await?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).await?;
        streams.push(stream);
    }
    let took = stage.server.terminate()?;
    drop((held, streams));
    hanging.abort();
    ensure!(took < Duration::from_secs(9), "SIGTERM took {:.1} s", took.as_secs_f64());
    Ok(format!("ended {:.1} s after SIGTERM", took.as_secs_f64()))
}
