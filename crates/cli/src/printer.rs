//! Everything that a person reads. Results go to stdout, errors to stderr; colours only where a terminal shows them.

use std::{error::Error as StdError, fmt::Display, io::Write};

use anstyle::{AnsiColor, Style};

use crate::error::Error;

const LABEL: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const FAINT: Style = Style::new().dimmed();

/// The width of the labels, so that what follows them lines up.
const WIDTH: usize = 10;

/// Writes to the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    quiet: bool,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    /// A fact under a label: `kubeconfig  .windlass/kubeconfig`.
    pub(crate) fn fact(self, label: &str, text: impl Display) -> Result<(), Error> {
        self.line(format_args!("{LABEL}{label:WIDTH$}{LABEL:#}  {text}"))
    }

    /// A fact with a remark behind it.
    pub(crate) fn remark(self, label: &str, text: impl Display, remark: impl Display) -> Result<(), Error> {
        self.fact(label, format_args!("{text}  {FAINT}{remark}{FAINT:#}"))
    }

    /// What can be typed next.
    pub(crate) fn command(self, command: impl Display) -> Result<(), Error> {
        self.line(format_args!("  {command}"))
    }

    /// Something in passing.
    pub(crate) fn aside(self, text: impl Display) -> Result<(), Error> {
        self.line(format_args!("{FAINT}{text}{FAINT:#}"))
    }

    /// How an object is, as it changes.
    pub(crate) fn state(self, name: &str, good: bool, state: &str, rest: &str) -> Result<(), Error> {
        let style = if good { GOOD } else { BAD };
        self.line(format_args!(
            "{name}  {style}{state}{style:#}{}{rest}",
            if rest.is_empty() { "" } else { " " }
        ))
    }

    /// A line, or an empty one.
    pub(crate) fn line(self, line: impl Display) -> Result<(), Error> {
        if self.quiet {
            return Ok(());
        }
        let mut stdout = anstream::stdout().lock();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush()).map_err(Error::Print)
    }

    /// Text that is a command's whole answer, printed even when quiet.
    #[expect(clippy::unused_self, reason = "all printing goes through the printer")]
    pub(crate) fn answer(self, text: &[u8]) -> Result<(), Error> {
        std::io::stdout().lock().write_all(text).map_err(Error::Print)
    }

    /// One line for what went wrong with all its causes, one for what to do.
    #[expect(clippy::unused_self, reason = "all printing goes through the printer")]
    pub(crate) fn error(self, error: &Error) {
        // Whoever closed stdout, as `| head` does, has seen enough.
        if matches!(error, Error::Print(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe) {
            return;
        }
        let mut stderr = anstream::stderr().lock();
        // Nothing is left to tell when stderr is closed too.
        let _ = writeln!(stderr, "{BAD}error{BAD:#}: {}", chain(error));
        if let Some(hint) = error.hint() {
            let _ = writeln!(stderr, "{LABEL}hint{LABEL:#}: {hint}");
        }
    }
}

/// An error and its causes in one line, without repeating a cause that its error tells already.
fn chain(error: &dyn StdError) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    line
}
