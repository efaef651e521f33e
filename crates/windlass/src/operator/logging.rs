//! Log lines on stderr, and with the feature `otlp` the same spans for a collector.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, Layer, layer::SubscriberExt, util::SubscriberInitExt};

use super::settings::{LogFormat, Settings};
#[cfg(feature = "otlp")]
use super::traces;
use crate::runs;

/// Why logging cannot begin.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    #[error("failed to read --log-level {0:?}")]
    Level(String, #[source] tracing_subscriber::filter::ParseError),
    #[cfg(feature = "otlp")]
    #[error(transparent)]
    Traces(#[from] traces::Error),
}

impl Error {
    pub(super) fn advice(&self) -> &'static str {
        match self {
            Self::Level(..) => "write error, warn, info, debug or trace",
            #[cfg(feature = "otlp")]
            Self::Traces(_) => "OTEL_EXPORTER_OTLP_ENDPOINT must be http://host:port or https://host:port",
        }
    }
}

/// What is to be finished at the end of the process.
#[derive(Debug, Default)]
pub(super) struct Logging {
    #[cfg(feature = "otlp")]
    traces: Option<traces::Traces>,
}

/// Begins to log. A subscriber that the program has set itself stays.
#[cfg_attr(not(feature = "otlp"), expect(unused_variables, reason = "only traces have the operator's name"))]
pub(super) fn start(settings: &Settings, operator: &str) -> Result<Logging, Error> {
    let level = settings.log_level();
    let filter =
        EnvFilter::try_new(quietened(level)).map_err(|error| Error::Level(level.to_owned(), error))?;
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(
            std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty()),
        )
        .with_writer(std::io::stderr);
    let lines = match settings.given.log_format.unwrap_or_default() {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    let registry = tracing_subscriber::registry().with(lines.with_filter(filter)).with(runs::layer());
    #[cfg(not(feature = "otlp"))]
    {
        let _ = registry.try_init();
        Ok(Logging::default())
    }
    #[cfg(feature = "otlp")]
    {
        let traces = traces::Traces::from_env(operator)?;
        let spans =
            traces.as_ref().map(|traces| traces.layer().with_filter(EnvFilter::new(quietened(level))));
        let _ = registry.with(spans).try_init();
        Ok(Logging { traces })
    }
}

/// Leaves out kube's own line about every failed request: whoever made the request tells of it. Who asks for kube's
/// lines gets them.
fn quietened(level: &str) -> String {
    if level.contains("kube") || level.is_empty() {
        return level.to_owned();
    }
    format!("{level},kube_client::client::builder=off")
}

impl Logging {
    /// Sends what has not been sent yet.
    #[cfg_attr(not(feature = "otlp"), expect(clippy::unused_async, reason = "only traces are sent"))]
    pub(super) async fn finish(self) {
        #[cfg(feature = "otlp")]
        if let Some(traces) = self.traces {
            traces.finish().await;
        }
    }
}
