//! From a request to its answer: who may ask, and which room answers.

use std::{convert::Infallible, sync::Arc};

use axum::{
    Router,
    body::Body,
    extract::{DefaultBodyLimit, RawQuery, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{ACCEPT_LANGUAGE, CONTENT_TYPE, COOKIE, SET_COOKIE},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use bytes::Bytes;
use futures::StreamExt;
use maud::Markup;
use serde::Serialize;

use crate::{App, change, guard::HEADERS, query::parse, stream, views, words::Language};

const SCRIPT: &str = include_str!("../assets/page.js");
const STYLE: &str = include_str!("../assets/page.css");
const ICON: &str = include_str!("../assets/icon.svg");

/// An object is at most this long in the API server, and a little longer in YAML.
const LONGEST: usize = 8 * 1024 * 1024;

/// All routes, behind the guard.
pub(crate) fn router(app: Arc<App>) -> Router {
    let asset = |kind: &'static str, text: &'static str| get(async move || ([(CONTENT_TYPE, kind)], text));
    Router::new()
        .route("/", get(front))
        .route("/page.js", asset("text/javascript; charset=utf-8", SCRIPT))
        .route("/page.css", asset("text/css; charset=utf-8", STYLE))
        .route("/icon.svg", asset("image/svg+xml", ICON))
        .route("/events", get(events))
        .route("/object", get(object))
        .route("/run", get(run))
        .route("/at", get(at))
        .route("/earlier", get(earlier))
        .route("/apply", post(apply))
        .route("/delete", post(delete))
        .route("/restore", post(restore))
        .route("/fault", post(fault))
        .layer(DefaultBodyLimit::max(LONGEST))
        .layer(middleware::from_fn_with_state(app.clone(), guarded))
        .with_state(app)
}

/// Refuses whom the guard does not know, and puts the headers on every answer.
async fn guarded(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut answer = match app.guard.refuse(&method, &uri, request.headers()) {
        Some((status, why)) => (status, format!("{why}\n")).into_response(),
        None => {
            let mut answer = next.run(request).await;
            // Whoever came by the link needs it no longer.
            if uri.path() == "/"
                && let Ok(cookie) = HeaderValue::from_str(&app.guard.cookie())
            {
                answer.headers_mut().append(SET_COOKIE, cookie);
            }
            answer
        }
    };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    answer
}

fn language(headers: &HeaderMap) -> Language {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    Language::of(text(COOKIE), text(ACCEPT_LANGUAGE))
}

pub(crate) fn html(markup: Markup) -> Response {
    ([(CONTENT_TYPE, "text/html; charset=utf-8")], markup.into_string()).into_response()
}

pub(crate) fn json(value: &impl Serialize) -> Response {
    match serde_json::to_string(value) {
        Ok(text) => ([(CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn front(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    html(views::front(&app.options, language(&headers)))
}

async fn events(State(app): State<Arc<App>>) -> Response {
    let frames = stream::frames(app).map(|frame| Ok::<_, Infallible>(Bytes::from(frame)));
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

async fn object(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    html(views::object(&app, &parse(query.as_deref()), language(&headers)).await)
}

async fn run(State(app): State<Arc<App>>, headers: HeaderMap, RawQuery(query): RawQuery) -> Response {
    html(views::run(&app, &parse(query.as_deref()), language(&headers)).await)
}

/// The rows of the cluster as it was.
async fn at(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    let query = parse(query.as_deref());
    let revision =
        query.get("revision").filter(|text| text.parse::<u64>().is_ok_and(|revision| revision > 0));
    let Some(revision) = revision else {
        return (StatusCode::BAD_REQUEST, "a revision is a number\n").into_response();
    };
    let (rows, unknown) = app.index.at(revision).await;
    json(&serde_json::json!({ "rows": rows, "unknown": unknown }))
}

/// What happened before the page was opened.
async fn earlier(State(app): State<Arc<App>>) -> Response {
    json(&app.index.earlier().await)
}

async fn apply(State(app): State<Arc<App>>, RawQuery(query): RawQuery, body: String) -> Response {
    json(&change::apply(&app, &parse(query.as_deref()), &body).await)
}

async fn delete(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    json(&change::delete(&app, &parse(query.as_deref())).await)
}

async fn restore(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    json(&change::restore(&app, &parse(query.as_deref())).await)
}

async fn fault(State(app): State<Arc<App>>, RawQuery(query): RawQuery) -> Response {
    json(&change::fault(&app, &parse(query.as_deref())).await)
}
