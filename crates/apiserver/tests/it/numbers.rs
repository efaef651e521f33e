//! Numbers in queries, as large and as small as they can be written.

use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};

use crate::{
    server::{CONFIG_MAPS, PODS, Server, config_map},
    shapes,
};

const EXTREMES: [&str; 12] = [
    "0",
    "-1",
    "1",
    "2147483648",
    "9223372036",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
    "1e9",
];

/// Answers that a client can act on: never an internal error, never a panic.
fn expected(status: u16) -> bool {
    matches!(status, 200 | 400 | 404 | 410 | 422 | 504)
}

#[tokio::test(start_paused = true)]
async fn no_number_is_too_large_or_too_small_for_a_query() {
    let server = Server::new();
    for number in EXTREMES {
        server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "b"}]}});
        server.post(PODS, &pod).await.expect_success();
        let gets = [
            format!("{CONFIG_MAPS}?limit={number}"),
            format!("{CONFIG_MAPS}?timeoutSeconds={number}"),
            format!("{CONFIG_MAPS}?resourceVersion={number}"),
            format!("{CONFIG_MAPS}?resourceVersion={number}&resourceVersionMatch=Exact"),
            format!("{CONFIG_MAPS}?resourceVersion={number}&resourceVersionMatch=NotOlderThan"),
            format!("{CONFIG_MAPS}/a?resourceVersion={number}"),
            format!("{PODS}/a/log?tailLines={number}"),
            format!("{PODS}/a/log?limitBytes={number}"),
            format!("{PODS}/a/log?sinceSeconds={number}"),
        ];
        for path in gets {
            let answer = server.get(&path).await;
            let bare = answer.body["message"].as_str().is_some_and(|why| why.starts_with("strconv."))
                || answer.body["reason"].is_null();
            assert!(expected(answer.status.as_u16()) || bare, "{path}: {} {}", answer.status, answer.body);
            assert!(!answer.body.to_string().contains("panicked"), "{path}: {}", answer.body);
        }
        for query in [format!("timeoutSeconds={number}"), format!("resourceVersion={number}")] {
            let path = format!("{CONFIG_MAPS}?watch=true&{query}");
            let request = Request::builder().uri(&path).body(Full::default()).unwrap();
            // A watch that begins goes on until its time is over; beginning it is enough.
            let status = server.request(request).await.status().as_u16();
            assert!(
                expected(status) || status == 500 && query.starts_with("resourceVersion"),
                "{path}: {status}"
            );
        }
        for path in [format!("{CONFIG_MAPS}/a"), format!("{PODS}/a")] {
            let path = format!("{path}?gracePeriodSeconds={number}");
            let answer = server.send(Method::DELETE, &path, "", "application/json", &Value::Null).await;
            assert!(expected(answer.status.as_u16()), "{path}: {} {}", answer.status, answer.body);
            server.delete(path.split('?').next().unwrap(), &json!({"gracePeriodSeconds": 0})).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_watch_that_can_be_asked_for_is_a_watch() {
    let server = Server::new();
    for seconds in ["9223372036854775807", "9223372036", "31536000000"] {
        let mut watch = server.watch(&format!("{CONFIG_MAPS}?watch=true&timeoutSeconds={seconds}")).await;
        server.post(CONFIG_MAPS, &config_map("a", &json!({}))).await.expect_success();
        assert_eq!(watch.event().await, ("ADDED".into(), "a".into()), "{seconds}");
        server.delete(&format!("{CONFIG_MAPS}/a"), &Value::Null).await.expect_success();
    }
}

/// Every number of every kind, from the recorded schema. What is taken can also be shown, changed and deleted.
#[tokio::test(start_paused = true)]
async fn no_number_is_too_large_or_too_small_for_a_field() {
    let server = Server::new();
    let (mut sent, mut taken) = (0, 0);
    for shape in shapes::built_in(&server).await {
        for field in shape.numbers() {
            for number in &field.extremes {
                let what = format!("{} {} = {number}", shape.kind, field.path());
                let answer = server.post(&shape.path, &shape.with_number(&field, number)).await;
                sent += 1;
                let known =
                    answer.status.is_success() || matches!(answer.status.as_u16(), 400 | 403 | 409 | 422);
                assert!(known, "{what}: {} {}", answer.status, answer.body);
                let Some(name) =
                    answer.body["metadata"]["name"].as_str().filter(|_| answer.status.is_success())
                else {
                    continue;
                };
                taken += 1;
                let path = format!("{}/{name}", shape.path);
                if server.get(&path).await.status != 200 {
                    // A review is answered and not kept.
                    continue;
                }
                server.table(&path).await;
                let touched = server.merge(&path, &json!({"metadata": {"annotations": {"a": "b"}}})).await;
                assert!(touched.status != 500, "{what}: {}", touched.body);
                server.delete(&path, &json!({"gracePeriodSeconds": 0})).await;
                server.merge(&path, &json!({"metadata": {"finalizers": null}})).await;
            }
        }
    }
    assert!(sent > 2000 && taken > 200, "{sent} sent, {taken} taken");
}
