//! What systems do differently: how a process is asked to end, and the units in which a kernel counts.

use std::io;

/// Being asked to end: SIGTERM and SIGINT, or what Windows has in their place.
pub(crate) struct StopRequests {
    #[cfg(unix)]
    signals: [tokio::signal::unix::Signal; 2],
    #[cfg(windows)]
    events: (
        tokio::signal::windows::CtrlC,
        tokio::signal::windows::CtrlBreak,
        tokio::signal::windows::CtrlClose,
        tokio::signal::windows::CtrlShutdown,
    ),
}

#[cfg(unix)]
impl StopRequests {
    /// Listens. From here on they no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { signals: [signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?] })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let [terminate, interrupt] = &mut self.signals;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
}

#[cfg(windows)]
impl StopRequests {
    /// Listens: to the keys, to the console that is closed, and to the machine that shuts down, of which Windows waits
    /// some seconds for the last two.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::windows::{ctrl_break, ctrl_c, ctrl_close, ctrl_shutdown};
        Ok(Self { events: (ctrl_c()?, ctrl_break()?, ctrl_close()?, ctrl_shutdown()?) })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let (interrupt, broken, close, shutdown) = &mut self.events;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = broken.recv() => {}
            _ = close.recv() => {}
            _ = shutdown.recv() => {}
        }
    }
}

/// How many ticks of `/proc` make a second. Systems without `/proc` have nothing to count in them.
pub(crate) fn ticks_per_second() -> f64 {
    #[cfg(unix)]
    return rustix::param::clock_ticks_per_second() as f64;
    #[cfg(not(unix))]
    return 100.0;
}

/// How many bytes a page of `/proc` has. As above.
pub(crate) fn page_size() -> f64 {
    #[cfg(unix)]
    return rustix::param::page_size() as f64;
    #[cfg(not(unix))]
    return 4096.0;
}
