//! Spans for an OpenTelemetry collector, over HTTP and protobuf. Behind the feature `otlp`.
//!
//! Enters: the variables that every OpenTelemetry program reads (`OTEL_EXPORTER_OTLP_ENDPOINT` or
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`, `OTEL_SERVICE_NAME`, `OTEL_TRACES_SAMPLER`, …). Leaves: one span for each
//! reconcile, with its controller, key and number, and the log lines of the run as its events. Without an endpoint
//! nothing is recorded.

use std::{future::Future, pin::Pin, time::Duration};

use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::{Resource, trace::SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::Subscriber;
use tracing_subscriber::{Layer, registry::LookupSpan};

/// How long one batch may take.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the last batch may hold up the end of the process.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that is read. A collector says little.
const ANSWER: usize = 1 << 20;

/// Why traces cannot be exported.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to set up the export of traces")]
    Exporter(#[source] ExporterBuildError),
    #[error("failed to load the certificates that a collector is checked with")]
    Roots(#[source] std::io::Error),
}

/// The way to the collector.
#[derive(Debug)]
pub(super) struct Traces {
    provider: SdkTracerProvider,
}

impl Traces {
    /// Traces for the collector that the environment names, if it names one.
    pub(super) fn from_env(operator: &str) -> Result<Option<Self>, Error> {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !set("OTEL_EXPORTER_OTLP_ENDPOINT") && !set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") {
            return Ok(None);
        }
        let exporter = SpanExporter::builder().with_http().with_http_client(Collector::new()?);
        let exporter = exporter.build().map_err(Error::Exporter)?;
        let resource = Resource::builder();
        let named = set("OTEL_SERVICE_NAME");
        let resource = if named { resource } else { resource.with_service_name(operator.to_owned()) };
        let provider = SdkTracerProvider::builder().with_batch_exporter(exporter);
        Ok(Some(Self { provider: provider.with_resource(resource.build()).build() }))
    }

    /// What turns spans of `tracing` into spans for the collector.
    pub(super) fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer().with_tracer(self.provider.tracer("windlass"))
    }

    /// Sends what has not been sent yet.
    pub(super) async fn finish(self) {
        // The provider waits for its own thread, which waits for requests of this runtime.
        let ended =
            tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(SHUTDOWN_TIMEOUT)).await;
        if let Ok(Err(error)) = ended {
            tracing::warn!(%error, "failed to send the last traces");
        }
    }
}

/// Posts to the collector on this runtime, whichever thread asks.
#[derive(Debug)]
struct Collector {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl Collector {
    fn new() -> Result<Self, Error> {
        let connector = HttpsConnectorBuilder::new()
            .with_provider_and_native_roots(rustls::crypto::ring::default_provider())
            .map_err(Error::Roots)?
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            runtime: Handle::current(),
        })
    }
}

impl HttpClient for Collector {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let answer = self.client.request(request.map(Full::new));
        let exchange = async move {
            let (parts, body) = answer.await?.into_parts();
            let body = Limited::new(body, ANSWER).collect().await?.to_bytes();
            Ok(Response::from_parts(parts, body))
        };
        let sent = self.runtime.spawn(async move { tokio::time::timeout(EXPORT_TIMEOUT, exchange).await });
        Box::pin(async move { sent.await?? })
    }
}
