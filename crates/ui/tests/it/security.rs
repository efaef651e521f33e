//! Nobody sees anything without the token, from elsewhere or by another name, and what a cluster holds stays text.

use windlass::{
    k8s_openapi::api::core::v1::{ConfigMap, Secret},
    kube::{Api, api::PostParams},
    serde_json::{from_value, json},
};
use windlass_ui::Options;

use crate::World;

#[tokio::test]
async fn without_the_token_nothing_is_shown() {
    let world = World::start().await;
    let host = &world.browser.host;
    for path in [
        "/",
        "/events",
        "/object?version=v1&plural=pods&name=a",
        "/page.js",
        "/run?id=1",
        "/at?revision=1",
        "/nowhere",
    ] {
        let answer = world
            .browser
            .raw(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
            .await;
        assert_eq!(answer.status, 401, "{path}");
        assert!(answer.head.contains("content-security-policy: default-src 'none'"), "{}", answer.head);
    }
    let token = &world.browser.token;
    let link =
        |host: &str| format!("GET /?token={token} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    let answer = world.browser.raw(&link(host)).await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("HttpOnly; SameSite=Strict"), "{}", answer.head);
    assert!(!answer.body.contains(token.as_str()), "the token is not in the page");
    assert_eq!(world.browser.raw(&link("evil.example")).await.status, 421, "a rebound name");
    let port = host.rsplit_once(':').unwrap().1;
    let foreign = format!(
        "GET /events HTTP/1.1\r\nHost: {host}\r\nOrigin: http://evil.example\r\nCookie: windlass-page-{port}={token}\r\nConnection: close\r\n\r\n"
    );
    assert_eq!(world.browser.raw(&foreign).await.status, 403, "another origin");
}

#[tokio::test]
async fn what_a_cluster_holds_is_text() {
    let world = World::start().await;
    let hostile = "<script>alert(1)</script>\u{1b}[31m\" onclick='x'&amp;";
    let object: ConfigMap = from_value(json!({
        "metadata": {"name": format!("a{}", "b".repeat(252)), "annotations": {"note": hostile}},
        "data": {"page.html": hostile, "long": format!("{hostile}\nline\n")},
    }))
    .unwrap();
    let name = object.metadata.name.clone().unwrap();
    Api::<ConfigMap>::namespaced(world.cluster.client(), "default")
        .create(&PostParams { field_manager: Some("<b>me</b>".into()), ..PostParams::default() }, &object)
        .await
        .unwrap();
    for part in ["overview", "yaml", "history", "edit"] {
        let path = format!(
            "/object?version=v1&kind=ConfigMap&plural=configmaps&namespace=default&name={name}&part={part}"
        );
        let answer = world.browser.get(&path).await;
        assert_eq!(answer.status, 200);
        for raw in ["<script", "<b>me", "\u{1b}", "' onclick"] {
            assert!(!answer.body.contains(raw), "{raw:?} in {part}: {}", answer.body);
        }
    }
    // A query is as foreign as an object.
    let answer = world
        .browser
        .get("/object?version=v1&kind=%3Cscript%3E&plural=pods&namespace=default&name=%3Cscript%3E")
        .await;
    assert!(!answer.body.contains("<script"), "{}", answer.body);
}

#[tokio::test]
async fn the_values_of_secrets_are_shown_only_when_asked_for() {
    let world = World::start().await;
    let secret: Secret =
        from_value(json!({"metadata": {"name": "s"}, "stringData": {"password": "hunter2"}})).unwrap();
    Api::<Secret>::namespaced(world.cluster.client(), "default")
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
    let path = "/object?version=v1&kind=Secret&plural=secrets&namespace=default&name=s";
    for part in ["yaml", "history", "overview"] {
        let answer = world.browser.get(&format!("{path}&part={part}")).await;
        assert!(!answer.body.contains("aHVudGVyMg"), "{part}");
    }
    assert!(world.browser.get(&format!("{path}&part=yaml&reveal=1")).await.body.contains("aHVudGVyMg"));
}

#[tokio::test]
async fn a_page_that_may_not_change_anything_does_not() {
    let world = World::with(Options::default()).await;
    let object = "version=v1&kind=Namespace&plural=namespaces&name=default";
    for path in ["apply", "delete", "restore", "fault"] {
        let answer = world.browser.post(&format!("/{path}?{object}&revision=1&fault=down"), "").await;
        assert!(
            answer.body.contains("\"ok\":false") && answer.body.contains("--edit"),
            "{path}: {}",
            answer.body
        );
    }
    assert!(!world.browser.get(&format!("/object?{object}")).await.body.contains("data-action=\"delete\""));
}
