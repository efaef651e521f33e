//! Ctrl-C: the first asks to stop, the second does not ask, and neither waits for ever.
//!
//! Signals and the time that a stop may take are watched on a thread with a runtime of its own. The runtime that does
//! the work cannot be relied on for that: when something blocks its threads, it hears no signal and no timer.

use std::{io::Write, time::Duration};

use tokio_util::sync::CancellationToken;

use crate::{error::Error, platform::StopRequests};

/// How long a stop may take. One takes milliseconds, and what was acknowledged is kept already.
const GRACE: Duration = Duration::from_secs(10);

/// How long a command may take to let go of what it holds once its grace is over.
const LAST: Duration = Duration::from_secs(2);

/// What a shell reports for a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

/// SIGINT and SIGTERM, or what the system has in their place. From here on they no longer end the process by themselves.
pub(crate) struct Signals {
    /// Somebody wants the command to stop.
    asked: CancellationToken,
    /// It did not stop in time.
    overdue: CancellationToken,
}

impl Signals {
    pub(crate) fn new() -> Result<Self, Error> {
        let (asked, overdue) = (CancellationToken::new(), CancellationToken::new());
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Signals)?;
        let entered = runtime.enter();
        let requests = StopRequests::listen().map_err(Error::Signals)?;
        drop(entered);
        let watched = watch(requests, asked.clone(), overdue.clone());
        let thread = std::thread::Builder::new().name("signals".into());
        thread.spawn(move || runtime.block_on(watched)).map_err(Error::Signals)?;
        Ok(Self { asked, overdue })
    }

    /// Asks the command to stop, for whoever wants that without a signal.
    pub(crate) fn ask(&self) -> impl FnOnce() + Send + 'static {
        let asked = self.asked.clone();
        move || asked.cancel()
    }

    /// Whether somebody wants the command to stop.
    pub(crate) fn is_received(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Waits until somebody wants the command to stop.
    pub(crate) async fn received(&self) {
        self.asked.cancelled().await;
    }

    /// Stops: from now on the next signal ends the process at once, and so does time.
    pub(crate) async fn stopping(&self, stop: impl Future<Output = Result<(), Error>>) -> Result<(), Error> {
        self.asked.cancel();
        tokio::select! {
            biased;
            stopped = stop => stopped,
            () = self.overdue.cancelled() => Err(Error::NotStopped(GRACE)),
        }
    }
}

async fn watch(mut requests: StopRequests, asked: CancellationToken, overdue: CancellationToken) {
    tokio::select! {
        () = requests.next() => asked.cancel(),
        () = asked.cancelled() => {}
    }
    let (what, code) = tokio::select! {
        () = requests.next() => ("stopped without waiting", INTERRUPTED),
        () = async {
            tokio::time::sleep(GRACE).await;
            // The command is told first, so that it can still remove what it has written.
            overdue.cancel();
            tokio::time::sleep(LAST).await;
        } => ("did not stop in time, ended without waiting", 2),
    };
    let _ = writeln!(anstream::stderr(), "{what}");
    std::process::exit(code);
}
