//! Ctrl-C: the first asks to stop, the second does not ask.

use std::io::Write;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::Error;

/// SIGINT and SIGTERM. From here on they no longer end the process by themselves.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Error> {
        let listen = |kind| signal(kind).map_err(Error::Signals);
        Ok(Self { interrupt: listen(SignalKind::interrupt())?, terminate: listen(SignalKind::terminate())? })
    }

    /// Waits for a signal.
    pub(crate) async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }

    /// From now on the next signal ends the process at once.
    pub(crate) fn lose_patience(mut self) {
        tokio::spawn(async move {
            self.received().await;
            let _ = writeln!(anstream::stderr(), "stopped without waiting");
            // What a shell reports for a process that SIGINT ended.
            std::process::exit(130);
        });
    }
}
