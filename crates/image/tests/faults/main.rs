//! The registry client against a registry that has a bad day. A real registry that is well is asked by the lane `just
//! image`, in `crates/cli/tests/image`.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod proxy;
mod server;

use std::{net::TcpListener, sync::Arc, time::Duration};

use http::StatusCode;
use windlass_image::{
    Layout, Platform, Reference, operator,
    registry::{Access, Error, Keyring, PushOptions, Pushed, Repository, push},
    sbom,
};

use crate::server::{Play, RecordedRequest, Server, options};

fn layout() -> Layout {
    let image = operator(Platform::amd64(), "shop", "a program", 0).build().unwrap();
    let document = sbom::Document { name: "shop".into(), ..sbom::Document::default() };
    Layout::new(&"example.com/shop:1".parse().unwrap(), vec![image], vec![Some(document)])
}

fn me() -> Keyring {
    Keyring::of("me".into(), "hunter2".into())
}

async fn attempt(server: &Server, keyring: Keyring, how: PushOptions) -> Result<Pushed, Error> {
    let reference: Reference = format!("{}/team/shop:1", server.address).parse().unwrap();
    let repository = Repository::open(&reference, Access::Push, &options(keyring)).await?;
    push(&layout(), None, &repository, how, Arc::new(|_| {})).await
}

fn busy(after: Option<&str>) -> Play {
    let headers = after.map(|after| ("retry-after", after.to_owned())).into_iter().collect();
    Play::Answer(StatusCode::TOO_MANY_REQUESTS, headers, r#"{"errors":[{"code":"TOOMANYREQUESTS"}]}"#)
}

#[tokio::test]
async fn a_busy_registry_is_asked_again_when_it_says() {
    let mut count = 0;
    let server = Server::start(move |seen| {
        count += 1;
        let _ = seen;
        match count {
            1 | 4 | 9 => busy(Some("0")),
            2 => Play::Answer(StatusCode::SERVICE_UNAVAILABLE, Vec::new(), ""),
            5 => Play::Answer(StatusCode::BAD_GATEWAY, Vec::new(), "<html>"),
            _ => Play::Registry,
        }
    })
    .await;
    let pushed = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!(server.tag("1"), Some(pushed.digest));
}

#[tokio::test]
async fn a_registry_that_stays_busy_is_left_alone_in_the_end() {
    let server = Server::start(|_| busy(None)).await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    let expected =
        format!("the registry {} is busy (429 Too Many Requests), also after 6 attempts", server.address);
    assert_eq!(error.to_string(), expected);
    assert!(error.hint().unwrap().contains("is not sent again"));
    // One more for the question whether it speaks TLS, which is no HTTP request at all.
    assert_eq!(server.seen("").len(), 6);
}

#[tokio::test]
async fn a_registry_that_asks_for_hours_is_not_waited_for() {
    let server = Server::start(|_| busy(Some("21600"))).await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    assert!(error.to_string().ends_with("also after 1 attempts; it asks to wait 21600 s"), "{error}");
}

#[tokio::test]
async fn an_upload_that_breaks_off_begins_anew() {
    let mut torn = 0;
    let server = Server::start(move |seen| {
        if seen.line.starts_with("PUT") && seen.line.contains("/blobs/") && torn < 3 {
            torn += 1;
            return Play::Close;
        }
        Play::Registry
    })
    .await;
    let pushed = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!(server.tag("1"), Some(pushed.digest.clone()));
    assert_eq!(server.seen("POST").len(), pushed.uploaded.0 + 3);
}

#[tokio::test]
async fn a_push_that_broke_off_is_finished_by_the_next() {
    let mut broken = true;
    let server = Server::start(move |seen| {
        // The index comes last, and its tag is what makes the image one.
        if seen.line.ends_with("PUT /v2/team/shop/manifests/1") && broken {
            broken = false;
            return Play::Answer(StatusCode::INTERNAL_SERVER_ERROR, Vec::new(), "");
        }
        Play::Registry
    })
    .await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("refuses the manifest 1: 500"), "{error}");
    assert_eq!(server.tag("1"), None, "the tag names nothing that is not whole");
    let finished = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!((finished.uploaded.0, finished.manifests), (0, 1));
    let again = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!((again.uploaded.0, again.manifests, again.tagged), (0, 0, false));
}

#[tokio::test]
async fn a_tag_that_is_there_is_kept_if_that_is_asked_for() {
    let server = Server::start(|_| Play::Registry).await;
    let careful = PushOptions { no_clobber: true, ..PushOptions::default() };
    attempt(&server, Keyring::default(), careful).await.unwrap();
    attempt(&server, Keyring::default(), careful).await.unwrap();
    let before = server.tag("1");

    let other = operator(Platform::amd64(), "shop", "another program", 0).build().unwrap();
    let other = Layout::new(&"example.com/shop:1".parse().unwrap(), vec![other], Vec::new());
    let reference: Reference = format!("{}/team/shop:1", server.address).parse().unwrap();
    let repository = Repository::open(&reference, Access::Push, &options(Keyring::default())).await.unwrap();
    let sent = server.seen("POST").len();
    let error = push(&other, None, &repository, careful, Arc::new(|_| {})).await.unwrap_err();
    assert!(
        error.to_string().contains("/team/shop:1 is there already, with other content (sha256:"),
        "{error}"
    );
    assert_eq!((server.tag("1"), server.seen("POST").len()), (before, sent), "nothing was sent");
}

#[tokio::test]
async fn a_token_is_fetched_for_what_is_asked_and_again_when_it_has_expired() {
    let place = Arc::new(std::sync::OnceLock::<String>::new());
    let known = place.clone();
    let (mut tokens, mut uses) = (0, 0);
    let server = Server::start(move |seen: &RecordedRequest| {
        if seen.line.starts_with("GET /token?") {
            tokens += 1;
            let body = if tokens == 1 { r#"{"token":"one"}"# } else { r#"{"access_token":"two"}"# };
            return Play::Answer(StatusCode::OK, Vec::new(), body);
        }
        let valid = match seen.authorization.as_deref() {
            Some("Bearer one") => {
                uses += 1;
                uses < 4
            }
            Some("Bearer two") => true,
            _ => false,
        };
        if valid {
            return Play::Registry;
        }
        let challenge =
            format!(r#"Bearer realm="http://{}/token",service="a registry""#, known.get().unwrap());
        Play::Answer(StatusCode::UNAUTHORIZED, vec![("www-authenticate", challenge)], "")
    })
    .await;
    place.set(server.address.clone()).unwrap();
    attempt(&server, me(), PushOptions::default()).await.unwrap();
    let asked = server.seen("GET /token");
    assert_eq!(asked.len(), 2);
    for request in asked {
        assert_eq!(
            request.line,
            "GET /token?service=a+registry&scope=repository%3Ateam%2Fshop%3Apull%2Cpush"
        );
        assert_eq!(request.authorization.as_deref(), Some("Basic bWU6aHVudGVyMg=="));
    }
}

#[tokio::test]
async fn a_registry_that_denies_is_quoted_and_not_asked_twice() {
    let challenge = || vec![("www-authenticate", "Basic realm=\"x\"".to_owned())];
    let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
    let server = Server::start(move |_| Play::Answer(StatusCode::UNAUTHORIZED, challenge(), body)).await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    let line = format!(
        "the registry {} denies access to team/shop: UNAUTHORIZED: authentication required",
        server.address
    );
    assert_eq!(error.to_string(), line);
    assert!(error.hint().unwrap().contains(&format!("docker login {}", server.address)));
    let error = attempt(&server, me(), PushOptions::default()).await.unwrap_err();
    assert_eq!(error.to_string(), line);
    assert!(error.hint().unwrap().contains("this login may not do that"));
    assert_eq!(server.seen("").len(), 3, "once for anybody, twice with a password");

    let server = Server::start(|seen| match seen.line.as_str() {
        "GET /v2/" => Play::Registry,
        _ => Play::Answer(
            StatusCode::FORBIDDEN,
            Vec::new(),
            r#"{"errors":[{"code":"DENIED","message":"no"}]}"#,
        ),
    })
    .await;
    let error = attempt(&server, me(), PushOptions::default()).await.unwrap_err();
    // A HEAD has no body to quote.
    assert!(error.to_string().contains("denies access to team/shop: 403 Forbidden"), "{error}");
}

#[tokio::test]
async fn a_registry_that_is_down_is_named() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let reference: Reference = format!("127.0.0.1:{port}/shop:1").parse().unwrap();
    let error = Repository::open(&reference, Access::Push, &options(Keyring::default())).await.err().unwrap();
    let line = error.to_string();
    assert!(line.starts_with(&format!("failed to reach the registry 127.0.0.1:{port}: ")), "{line}");
    assert!(line.contains("refused"), "{line}");
    assert!(error.hint().unwrap().contains("--insecure"));
}

#[tokio::test]
async fn plain_http_is_spoken_only_if_that_is_asked_for() {
    let server = Server::start(|_| Play::Registry).await;
    let reference: Reference = format!("{}/shop:1", server.address).parse().unwrap();
    let careful = windlass_image::registry::Options { insecure: false, ..options(me()) };
    let error = Repository::open(&reference, Access::Push, &careful).await.err().unwrap();
    assert!(error.to_string().contains("it does not speak TLS"), "{error}");
    assert_eq!(server.seen("").len(), 0, "no request, and no password, came through");
}

#[tokio::test]
async fn what_is_no_registry_is_said_to_be_none() {
    let server = Server::start(|_| Play::Answer(StatusCode::NOT_FOUND, Vec::new(), "<html>")).await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("it is no registry (404 for /v2/)"), "{error}");
}

#[tokio::test]
async fn a_registry_that_keeps_something_else_is_noticed() {
    let server = Server::start(|seen| {
        if seen.line.starts_with("PUT") && seen.line.contains("/manifests/") {
            let other = format!("sha256:{}", "0".repeat(64));
            return Play::Answer(StatusCode::CREATED, vec![("docker-content-digest", other)], "");
        }
        Play::Registry
    })
    .await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    assert!(matches!(error, Error::Mismatch { .. }), "{error}");
}

#[tokio::test]
async fn a_limit_of_somebody_in_between_comes_with_advice() {
    let server = Server::start(|seen| {
        if seen.line.starts_with("PUT") {
            return Play::Answer(StatusCode::PAYLOAD_TOO_LARGE, Vec::new(), "");
        }
        Play::Registry
    })
    .await;
    let error = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap_err();
    assert!(error.hint().unwrap().contains("--chunk-size"), "{error}");
}

#[tokio::test]
async fn a_password_does_not_follow_an_upload_to_another_host() {
    let elsewhere = Server::start(|_| Play::Registry).await;
    let address = elsewhere.address.clone();
    let server = Server::start(move |seen| {
        if seen.authorization.is_none() {
            return Play::Answer(
                StatusCode::UNAUTHORIZED,
                vec![("www-authenticate", "Basic realm=\"x\"".to_owned())],
                "",
            );
        }
        if seen.line.starts_with("POST") {
            let place = format!("http://{address}/v2/team/shop/blobs/uploads/7?x=y");
            return Play::Answer(StatusCode::ACCEPTED, vec![("location", place)], "");
        }
        Play::Registry
    })
    .await;
    let pushed = attempt(&server, me(), PushOptions::default()).await.unwrap();
    let uploads = elsewhere.seen("PUT");
    assert_eq!(uploads.len(), pushed.uploaded.0);
    assert!(uploads.iter().all(|upload| upload.authorization.is_none()));
}

#[tokio::test]
async fn a_dry_run_asks_and_sends_nothing() {
    let server = Server::start(|_| Play::Registry).await;
    let dry = PushOptions { dry_run: true, ..PushOptions::default() };
    let would = attempt(&server, Keyring::default(), dry).await.unwrap();
    assert!(server.seen("POST").is_empty() && server.seen("PUT").is_empty());
    let did = attempt(&server, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!(would, did);
}

#[tokio::test]
async fn referrers_are_listed_under_a_tag_only_where_the_registry_does_not_list_them() {
    let tags = |server: &Server| server.seen("PUT /v2/team/shop/manifests/sha256-").len();
    let without = Server::start(|_| Play::Registry).await;
    attempt(&without, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!(tags(&without), 1);

    let with = Server::start(|seen| {
        if seen.line.starts_with("GET /v2/team/shop/referrers/sha256:") {
            return Play::Answer(StatusCode::OK, Vec::new(), r#"{"schemaVersion":2,"manifests":[]}"#);
        }
        Play::Registry
    })
    .await;
    let pushed = attempt(&with, Keyring::default(), PushOptions::default()).await.unwrap();
    assert_eq!((pushed.referrers, tags(&with)), (1, 0));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    tokio::time::pause();
    // Accepts in the kernel, and nobody reads.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let reference: Reference = format!("{}/shop:1", silent.local_addr().unwrap()).parse().unwrap();
    let patient = Duration::from_hours(1);
    let options = options(Keyring::default());
    let opening = Repository::open(&reference, Access::Push, &options);
    let error = tokio::time::timeout(patient, opening).await.unwrap().err().unwrap();
    assert!(error.to_string().contains("no answer within"), "{error}");
}
