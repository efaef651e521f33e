//! The lines that a recorded run logs: a layer for the program's subscriber.

use std::fmt::Write;

use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    subscriber::Interest,
};
use tracing_subscriber::{
    Layer,
    layer::{Context, Filter},
    registry::LookupSpan,
};

use super::RECORDING;

/// A layer that hands the lines of recorded runs to their records, from level INFO up. Lines outside of them do not get as far
/// as that. [`Operator::main`](crate::Operator::main) has it; a program with a subscriber of its own adds it.
pub fn layer<S: Subscriber + for<'a> LookupSpan<'a>>() -> impl Layer<S> {
    Lines.with_filter(Recorded)
}

struct Lines;

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        let _ = RECORDING.try_with(|run| run.log(event.metadata().level().as_str(), line.text()));
    }
}

/// Passes what happens in a recorded run.
struct Recorded;

impl<S> Filter<S> for Recorded {
    fn enabled(&self, metadata: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        metadata.is_event() && *metadata.level() <= Level::INFO && RECORDING.try_with(|_| ()).is_ok()
    }

    fn callsite_enabled(&self, metadata: &'static Metadata<'static>) -> Interest {
        let wanted = metadata.is_event() && *metadata.level() <= Level::INFO;
        if wanted { Interest::sometimes() } else { Interest::never() }
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::INFO)
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn text(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
