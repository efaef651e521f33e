//! What systems do differently: how a command is asked to stop, and how a person's shell sets a variable.

use std::io;

/// Being asked to stop: SIGINT and SIGTERM, or what Windows has in their place.
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
        Ok(Self { signals: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.signals;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
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

/// The line that sets a variable in the shell that people of this system have.
pub(crate) fn set_variable(name: &str, value: &str) -> String {
    if cfg!(windows) { power_shell(name, value) } else { posix(name, value) }
}

/// The line that sets a variable to what a command prints.
pub(crate) fn set_variable_to_output(name: &str, command: &str) -> String {
    if cfg!(windows) { format!("$env:{name} = {command}") } else { format!("export {name}=$({command})") }
}

fn posix(name: &str, value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@:,".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        format!("export {name}={value}")
    } else {
        format!("export {name}='{}'", value.replace('\'', r"'\''"))
    }
}

fn power_shell(name: &str, value: &str) -> String {
    format!("$env:{name} = '{}'", value.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posix_shell_reads_back_what_was_written() {
        assert_eq!(posix("KUBECONFIG", "/tmp/a-b/kubeconfig"), "export KUBECONFIG=/tmp/a-b/kubeconfig");
        assert_eq!(posix("KUBECONFIG", "/tmp/my work/it's"), r"export KUBECONFIG='/tmp/my work/it'\''s'");
        assert_eq!(posix("KUBECONFIG", ""), "export KUBECONFIG=''");
    }

    #[test]
    fn power_shell_reads_back_what_was_written() {
        let line = power_shell("KUBECONFIG", r"C:\Users\it's me\kubeconfig");
        assert_eq!(line, r"$env:KUBECONFIG = 'C:\Users\it''s me\kubeconfig'");
    }
}
