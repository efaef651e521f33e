//! Many requests, and large ones: bodies are read when it is known whose they are, and users do not get in each other's way.

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use windlass_apiserver::{auth::Identity, http::Limits, listener};

use crate::{
    bed::{AT_LAST, Bed, nothing, read, request, stuck, whole},
    server::{CONFIG_MAPS, Server, config_map},
};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

async fn bed(limits: Limits) -> Bed {
    let bed = Bed::new(listener::Limits::default(), limits).await;
    let admin = bed.certificate("admin", &["system:masters"]);
    let mut client = bed.http2(Some(&admin)).await;
    let role = json!({"metadata": {"name": "editor"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["*"]}]});
    let binding = json!({"metadata": {"name": "editor"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "editor"},
        "subjects": [{"kind": "Group", "name": "editors", "apiGroup": "rbac.authorization.k8s.io"}]});
    for (plural, object) in [("clusterroles", role), ("clusterrolebindings", binding)] {
        let sent = request(Method::POST, &format!("{RBAC}/{plural}"), whole(object.to_string()));
        assert_eq!(read(client.send_request(sent).await.unwrap()).await.0, 201);
    }
    bed
}

#[tokio::test]
async fn who_may_not_is_told_so_before_the_body_is_sent() {
    let bed = bed(Limits::default()).await;
    let mary = bed.certificate("mary", &[]);
    for (who, code) in [(None, 403), (Some(&mary), 403)] {
        let mut client = bed.http2(who).await;
        for _ in 0..300 {
            let sent = client.send_request(request(Method::POST, CONFIG_MAPS, stuck(1000)));
            let answer = tokio::time::timeout(AT_LAST, sent).await.expect("no body must be waited for");
            assert_eq!(read(answer.unwrap()).await.0, code);
        }
        let mut client = bed.http1(who).await;
        let sent = client.send_request(request(Method::POST, CONFIG_MAPS, stuck(1000)));
        let answer = tokio::time::timeout(AT_LAST, sent).await.expect("no body must be waited for");
        assert_eq!(read(answer.unwrap()).await.0, code);
    }
    let mut client = bed.http2(None).await;
    let mut forged = request(Method::POST, CONFIG_MAPS, stuck(1000));
    forged.headers_mut().insert("authorization", "Bearer x".parse().unwrap());
    assert_eq!(read(client.send_request(forged).await.unwrap()).await.0, 401);
    bed.stop().await;
}

#[tokio::test]
async fn a_large_body_that_is_refused_gets_its_answer_on_every_protocol() {
    let bed = bed(Limits::default()).await;
    let mary = bed.certificate("mary", &[]);
    let body = || whole(vec![b' '; 200 * 1024]);
    let answer = bed.http1(Some(&mary)).await.send_request(request(Method::POST, CONFIG_MAPS, body())).await;
    assert_eq!(read(answer.unwrap()).await.0, 403);
    let answer = bed.http2(Some(&mary)).await.send_request(request(Method::POST, CONFIG_MAPS, body())).await;
    assert_eq!(read(answer.unwrap()).await.0, 403);
    bed.stop().await;
}

#[tokio::test]
async fn a_user_with_too_many_requests_is_asked_to_come_again_and_others_are_served() {
    // A user has 2 of 8 seats, and 8 may wait.
    let bed = bed(Limits { mutating_requests_in_flight: 8, ..Limits::default() }).await;
    let eve = bed.certificate("eve", &["editors"]);
    let client = bed.http2(Some(&eve)).await;
    let mut waiting = Vec::new();
    for _ in 0..10 {
        let mut client = client.clone();
        waiting.push(tokio::spawn(async move {
            client.send_request(request(Method::POST, CONFIG_MAPS, stuck(10))).await
        }));
    }
    let metrics = || async {
        let admin = bed.certificate("admin", &["system:masters"]);
        let answer =
            bed.http1(Some(&admin)).await.send_request(request(Method::GET, "/metrics", nothing())).await;
        let bytes = http_body_util::BodyExt::collect(answer.unwrap().into_body()).await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    };
    let full = r#"apiserver_current_inqueue_requests{request_kind="mutating"} 8"#;
    while !metrics().await.contains(full) {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    let body = || whole(config_map("a", &json!({})).to_string());
    let refused = client.clone().send_request(request(Method::POST, CONFIG_MAPS, body())).await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "1");
    let (code, status) = read(refused).await;
    assert_eq!((code.as_u16(), &status["reason"]), (429, &json!("TooManyRequests")));
    // Her reads are apart, others have seats of their own, and an administrator needs none.
    let answer = client.clone().send_request(request(Method::GET, CONFIG_MAPS, nothing())).await.unwrap();
    assert_eq!(read(answer).await.0, 200);
    for (user, group, name) in [("mary", "editors", "b"), ("admin", "system:masters", "c")] {
        let who = bed.certificate(user, &[group]);
        let body = whole(config_map(name, &json!({})).to_string());
        let answer = bed.http2(Some(&who)).await.send_request(request(Method::POST, CONFIG_MAPS, body)).await;
        assert_eq!(read(answer.unwrap()).await.0, 201, "{user}");
    }
    let page = metrics().await;
    for line in [
        r#"apiserver_flowcontrol_rejected_requests_total{flow_schema="users",priority_level="mutating",reason="queue-full"} 1"#,
        r#"apiserver_flowcontrol_current_executing_requests{flow_schema="users",priority_level="mutating"} 2"#,
        r#"verb="POST",version="v1"} 1"#,
        r#"apiserver_resource_objects{group="",resource="configmaps"} "#,
    ] {
        assert!(page.contains(line), "{line} is not in\n{page}");
    }
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
    drop(client);
    bed.stop().await;
}

#[tokio::test]
async fn bodies_have_a_budget_and_one_user_cannot_take_all_of_it() {
    // 4 MB for all, 1 MB for one user.
    let bed = bed(Limits { body_memory: 4 << 20, ..Limits::default() }).await;
    let eve = bed.certificate("eve", &["editors"]);
    let client = bed.http2(Some(&eve)).await;
    let mut held = client.clone();
    // Without a length it may become as long as it can: it takes the whole share.
    let held =
        tokio::spawn(async move { held.send_request(request(Method::POST, CONFIG_MAPS, stuck(10))).await });
    let refused = async {
        loop {
            let body = whole(config_map("a", &json!({})).to_string());
            let answer = client.clone().send_request(request(Method::POST, CONFIG_MAPS, body)).await.unwrap();
            if answer.status() == 429 {
                return answer;
            }
        }
    };
    let refused = tokio::time::timeout(AT_LAST, refused).await.expect("there must be an end to it");
    assert_eq!(refused.headers()["retry-after"], "1");
    let mary = bed.certificate("mary", &["editors"]);
    let body = whole(config_map("b", &json!({})).to_string());
    let answer = bed.http2(Some(&mary)).await.send_request(request(Method::POST, CONFIG_MAPS, body)).await;
    assert_eq!(read(answer.unwrap()).await.0, 201);
    held.abort();
    bed.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_body_that_trickles_is_given_up_and_one_that_comes_steadily_is_not() {
    let server = Server::new();
    let sent = |piece: Bytes, pieces: usize| {
        let stream = futures::stream::unfold(0, move |sent| {
            let frame = Ok::<_, std::io::Error>(http_body::Frame::data(piece.clone()));
            async move {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
                (sent < pieces).then(|| (frame, sent + 1))
            }
        });
        http_body_util::StreamBody::new(stream)
    };
    let begun = tokio::time::Instant::now();
    let request =
        |body| http::Request::post(CONFIG_MAPS).header("content-type", "application/json").body(body);
    let answer = server.answer(request(sent(Bytes::from_static(b" "), 1000)).unwrap()).await;
    assert_eq!(answer.status(), 504);
    assert!(begun.elapsed() < std::time::Duration::from_secs(12), "{:?}", begun.elapsed());
    let answer = server.answer(request(sent(vec![b' '; 40_000].into(), 30)).unwrap()).await;
    // It arrived; that it is no JSON is another matter.
    assert_eq!(answer.status(), 400);
}

#[tokio::test]
async fn metrics_are_for_those_who_may_see_them() {
    let server = Server::new();
    let code = |server: Server| async move {
        let request = http::Request::get("/metrics").body(http_body_util::Full::default()).unwrap();
        server.request(request).await.status().as_u16()
    };
    assert_eq!(code(server.clone()).await, 200);
    assert_eq!(code(server.as_user(Identity::anonymous())).await, 403);
    assert_eq!(code(server.as_user(Identity::new("eve", []))).await, 403);
    let monitoring = Identity::new("prometheus", ["system:monitoring".to_owned()]);
    assert_eq!(code(server.as_user(monitoring)).await, 200);
}

#[tokio::test]
async fn a_long_list_is_the_same_in_pieces_and_a_short_one_says_how_long_it_is() {
    use http_body::Body;
    let server = Server::new();
    let mut expected = Vec::new();
    for number in 0..60 {
        let data = json!({"data": {"text": "x".repeat([10, 3000, 80_000][number % 3])}});
        let mut object = config_map(&format!("a-{number:03}"), &json!({"app": "a"}));
        object["data"] = data["data"].clone();
        let mut made = server.post(CONFIG_MAPS, &object).await.expect_success();
        made.as_object_mut().unwrap().retain(|key, _| key != "kind" && key != "apiVersion");
        expected.push(made);
        let whole = server.get(CONFIG_MAPS).await.expect_success();
        assert_eq!(whole["items"], Value::Array(expected.clone()), "with {number}");
        let request = http::Request::get(CONFIG_MAPS).body(http_body_util::Full::default()).unwrap();
        let body = server.request(request).await.into_body();
        let length = body.size_hint().exact().expect("the length of a plain list must be known");
        let bytes = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        assert_eq!(bytes.len() as u64, length, "with {number}");
        let table = server.table(CONFIG_MAPS).await;
        assert_eq!(table["rows"].as_array().unwrap().len(), number + 1);
    }
}
