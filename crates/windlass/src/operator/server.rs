//! The HTTP endpoints of an operator's process: `/metrics`, `/healthz`, `/readyz`.

use std::{fmt::Write, future::Future, net::SocketAddr};

use axum::{
    Router,
    extract::{RawQuery, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
    serve::Listener,
};
use tokio::net::TcpListener;

use super::Probes;
use crate::metrics::Metrics;

/// `/metrics` in the OpenMetrics text format.
pub(super) fn metrics(metrics: Metrics) -> Router {
    Router::new().route("/metrics", get(show_metrics)).with_state(metrics)
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
