//! What a browser hears while it is open: the index and the runs enter, server-sent events leave.

use std::{sync::Arc, time::Duration};

use futures::{Stream, stream};
use serde_json::json;
use tokio::sync::watch;

use crate::{
    App,
    index::{Cursor, View},
};

/// How long changes are collected, so that a busy cluster sends few large events rather than many small ones.
const COLLECT: Duration = Duration::from_millis(30);
/// How often something is sent although nothing happens: whoever is gone is noticed.
const ALIVE: Duration = Duration::from_secs(15);
/// So many rows are in one event.
const ROWS: usize = 1000;

struct Listener {
    app: Arc<App>,
    view: View,
    cursor: Cursor,
    runs: watch::Receiver<u64>,
    run: u64,
    first: bool,
}

/// The events for one browser, from everything to whatever changes.
pub(crate) fn frames(app: Arc<App>) -> impl Stream<Item = String> {
    let (view, runs) = (app.index.view(), app.runs.changed());
    let listener = Listener { app, view, cursor: Cursor::default(), runs, run: 0, first: true };
    stream::unfold(listener, |mut listener| async move {
        let frame = listener.next().await?;
        Some((frame, listener))
    })
}

impl Listener {
    async fn next(&mut self) -> Option<String> {
        if std::mem::take(&mut self.first) {
            return Some(self.everything());
        }
        tokio::select! {
            changed = self.view.sequence.changed() => changed.ok()?,
            changed = self.runs.changed() => changed.ok()?,
            () = tokio::time::sleep(ALIVE) => return Some(": alive\n\n".into()),
        }
        tokio::time::sleep(COLLECT).await;
        self.view.sequence.mark_unchanged();
        Some(self.everything())
    }

    /// All that is new.
    fn everything(&mut self) -> String {
        let mut update = self.app.index.update(&mut self.cursor);
        let rows = std::mem::take(&mut update.put);
        let mut frames = String::new();
        let mut chunks = rows.chunks(ROWS);
        update.put = chunks.next().unwrap_or_default().to_vec();
        frames.push_str(&event("update", &update));
        for chunk in chunks {
            frames.push_str(&event("update", &json!({ "put": chunk })));
        }
        if self.runs.has_changed().unwrap_or(false) || self.run == 0 {
            self.runs.mark_unchanged();
            let (runs, queue, last) = self.app.runs.since(self.run);
            self.run = last;
            frames.push_str(&event("runs", &json!({ "runs": runs, "queue": queue })));
        }
        frames
    }
}

fn event(name: &str, data: &impl serde::Serialize) -> String {
    // JSON has no line ends of its own, so it is one line of data.
    let data = serde_json::to_string(data).unwrap_or_else(|_| "{}".into());
    format!("event: {name}\ndata: {data}\n\n")
}
