//! The HTTP endpoints of an operator's process: `/metrics`, `/healthz`, `/readyz`.

use std::{fmt::Write, future::Future, net::SocketAddr};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{
        HeaderMap, StatusCode,
        header::{CONTENT_TYPE, HOST},
    },
    response::{IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use tokio::net::TcpListener;

use super::{Handle, Probes};
use crate::metrics::Metrics;

/// `/metrics` in the OpenMetrics text format.
pub(super) fn metrics(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(show_metrics)).with_state(metrics)
}

/// `/debug/runs`: what reconciles do, recorded while somebody asks. It holds what was written, so it is only for whom may
/// read the metrics, or for this machine: then no other name may lead to it.
pub(super) fn runs(handle: Handle, guarded: bool) -> Router {
    let show = move |headers: HeaderMap, RawQuery(query): RawQuery| async move {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
        let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
        if !guarded && !["127.0.0.1", "localhost", "[::1]"].contains(&host) {
            return StatusCode::MISDIRECTED_REQUEST.into_response();
        }
        let since = query.as_deref().and_then(|query| query.strip_prefix("since=")?.parse().ok());
        let looked = serde_json::to_string(&handle.look(since.unwrap_or(0)));
        looked.map_or_else(
            |_| StatusCode::INTERNAL_SERVER_ERROR.into_response(),
            |looked| ([(CONTENT_TYPE, "application/json")], looked).into_response(),
        )
    };
    Router::new().route("/debug/runs", get(show))
}

/// `/healthz` answers as long as the process does; `/readyz` when the caches are filled and the watches healthy.
pub(super) fn probes(probes: Probes) -> Router {
    Router::new().route("/healthz", get(async || "ok")).route("/readyz", get(show_ready)).with_state(probes)
}

async fn show_metrics(State(metrics): State<Metrics>) -> Response {
    match metrics.encode() {
        Ok(page) => ([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], page)
            .into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// With `?exclude=watches` whatever the watches say, as Kubernetes' own endpoint leaves out what it is asked to.
async fn show_ready(State(probes): State<Probes>, RawQuery(query): RawQuery) -> Response {
    let mut checks = probes.checks();
    if query.is_some_and(|query| query.split('&').any(|part| part == "exclude=watches")) {
        checks.retain(|check| !check.name.starts_with("watch-"));
    }
    let ready = checks.iter().all(|check| check.failure.is_none());
    let mut page = String::new();
    for check in &checks {
        let line = match &check.failure {
            None => writeln!(page, "[+]{} ok", check.name),
            Some(reason) => writeln!(page, "[-]{} failed: {reason}", check.name),
        };
        line.expect("writing to a string must succeed");
    }
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, page).into_response()
}

/// Binds first, so that a taken port is an error before anything else starts.
pub(super) async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Serves until `stop` resolves.
pub(super) async fn serve<L: Listener<Addr = SocketAddr>>(
    listener: L,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn runs_are_told_on_this_machine_by_its_own_names_alone() {
        let table = [
            ("127.0.0.1:8080", false, StatusCode::OK),
            ("localhost:8080", false, StatusCode::OK),
            ("[::1]:8080", false, StatusCode::OK),
            ("evil.example:8080", false, StatusCode::MISDIRECTED_REQUEST),
            ("", false, StatusCode::MISDIRECTED_REQUEST),
            // The guard has asked the API server.
            ("operator.default.svc:8443", true, StatusCode::OK),
        ];
        for (host, guarded, status) in table {
            let request = Request::get("/debug/runs?since=0").header(HOST, host).body(Body::empty()).unwrap();
            let answer = runs(Handle::default(), guarded).oneshot(request).await.unwrap();
            assert_eq!(answer.status(), status, "{host}");
        }
    }
}
