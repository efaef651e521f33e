//! What systems do differently: how a command is asked to stop, and how a person's shell sets a variable.

use std::{io, path::Path};

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

/// The process that started this one, where the system tells.
#[cfg(unix)]
pub(crate) fn parent() -> Option<u32> {
    rustix::process::getppid().map(|parent| parent.as_raw_nonzero().get().cast_unsigned())
}

/// The same: Windows does not say whether that process is still there.
#[cfg(windows)]
pub(crate) fn parent() -> Option<u32> {
    None
}

/// Puts a program under another name: a link, which is that of the next version as well.
#[cfg(unix)]
pub(crate) fn link_program(program: &Path, name: &Path) -> io::Result<()> {
    // Made beside it and moved: whoever starts it meanwhile finds the old one or the new one.
    let beside = name.with_extension(format!("{}.new", std::process::id()));
    std::os::unix::fs::symlink(program, &beside)?;
    std::fs::rename(&beside, name).inspect_err(|_| {
        let _ = std::fs::remove_file(&beside);
    })
}

/// The same: a link would need rights that few users of Windows have.
#[cfg(windows)]
pub(crate) fn link_program(program: &Path, name: &Path) -> io::Result<()> {
    std::fs::copy(program, name).map(|_| ())
}

/// Writes a file that its owner alone can read.
pub(crate) fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    io::Write::write_all(&mut options.open(path)?, text.as_bytes())
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
