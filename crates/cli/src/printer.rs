//! Everything that a person reads. Results go to stdout, errors to stderr; colours only where a terminal shows them.
//!
//! On a terminal, facts are broken into its width; in a pipe, a line is a line. What may be copied (a path, a URL, a
//! command) is never broken. Our own words are ASCII, so that any locale and any code page shows them.

mod width;

use std::{
    error::Error as StdError,
    fmt::{Display, Write as _},
    io::Write,
};

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use crate::{args::Format, diverted, error::Error};

const LABEL: Style = AnsiColor::Cyan.on_default();
const GOOD: Style = AnsiColor::Green.on_default().bold();
const SO_SO: Style = AnsiColor::Yellow.on_default().bold();
const BAD: Style = AnsiColor::Red.on_default().bold();
const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();
const FAINT: Style = Style::new().dimmed();

/// The width of the labels, so that what follows them lines up.
const WIDTH: usize = 10;

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Level {
    Ok,
    Warn,
    Fail,
}

/// Writes to the terminal.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printer {
    quiet: bool,
    /// The columns of the terminal, if there is one.
    columns: Option<usize>,
}

impl Printer {
    pub(crate) fn new(quiet: bool) -> Self {
        Self { quiet, columns: width::columns() }
    }

    /// Whether nothing but errors is wanted.
    pub(crate) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// A fact under a label: `kubeconfig  .windlass/kubeconfig`.
    pub(crate) fn fact(self, label: &str, text: impl Display) -> Result<(), Error> {
        self.line(fact(label, &text.to_string(), self.columns))
    }

    /// A fact with a remark behind it, or below it where there is no room.
    pub(crate) fn remark(self, label: &str, text: impl Display, remark: impl Display) -> Result<(), Error> {
        self.line(remarked(label, &text.to_string(), &remark.to_string(), self.columns))
    }

    /// What can be typed next.
    pub(crate) fn command(self, command: impl Display) -> Result<(), Error> {
        self.line(format_args!("  {command}"))
    }

    /// Something in passing.
    pub(crate) fn aside(self, text: impl Display) -> Result<(), Error> {
        let text = width::wrapped(&text.to_string(), 0, self.columns);
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

    /// What was found by looking, and what to do about it.
    pub(crate) fn verdict(
        self,
        level: Level,
        name: &str,
        text: &str,
        fix: Option<&str>,
    ) -> Result<(), Error> {
        const INDENT: usize = 19;
        let (style, word) = match level {
            Level::Ok => (GOOD, "ok"),
            Level::Warn => (SO_SO, "warn"),
            Level::Fail => (BAD, "fail"),
        };
        let text = width::wrapped(text, INDENT, self.columns);
        self.line(format_args!("{style}{word:4}{style:#}  {name:11}  {text}"))?;
        let Some(fix) = fix else { return Ok(()) };
        let fix = width::wrapped(fix, INDENT + "fix: ".len(), self.columns);
        self.line(format_args!("{:INDENT$}{LABEL}fix{LABEL:#}: {fix}", ""))
    }

    /// A difference, with what is new and what is gone in colours.
    pub(crate) fn diff(self, diff: &str) -> Result<(), Error> {
        for line in diff.lines() {
            let style = match line.as_bytes().first() {
                Some(b'+') => ADDED,
                Some(b'-') => REMOVED,
                Some(b'@') => FAINT,
                _ => Style::new(),
            };
            self.line(format_args!("  {style}{line}{style:#}"))?;
        }
        Ok(())
    }

    /// A line, or an empty one.
    pub(crate) fn line(self, line: impl Display) -> Result<(), Error> {
        if self.quiet {
            return Ok(());
        }
        if diverted::is_on() && diverted::say(&line.to_string()) {
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

    /// An answer as data, printed even when quiet.
    pub(crate) fn data(self, format: Format, answer: &impl Serialize) -> Result<(), Error> {
        let text = match format {
            Format::Json => {
                serde_json::to_string_pretty(answer).map_err(|error| Error::Encode(error.into()))? + "\n"
            }
            Format::Yaml => serde_saphyr::to_string(answer).map_err(|error| Error::Encode(error.into()))?,
        };
        self.answer(text.as_bytes())
    }

    /// Something that did not work, and stops nothing.
    #[expect(clippy::unused_self, reason = "all printing goes through the printer")]
    pub(crate) fn warning(self, text: &str) -> Result<(), Error> {
        let line = format!("{BAD}warning{BAD:#}: {text}\n");
        diverted::Stderr.write_all(line.as_bytes()).map_err(Error::Print)
    }

    /// One line for what went wrong with all its causes, one for what to do.
    #[expect(clippy::unused_self, reason = "all printing goes through the printer")]
    pub(crate) fn error(self, error: &Error) {
        // Whoever closed stdout, as `| head` does, has seen enough.
        if matches!(error, Error::Print(cause) if cause.kind() == std::io::ErrorKind::BrokenPipe) {
            return;
        }
        if matches!(error, Error::Passed(_)) {
            return;
        }
        let mut text = format!("{BAD}error{BAD:#}: {}\n", chain(error));
        if let Some(hint) = error.hint() {
            let _ = writeln!(text, "{LABEL}hint{LABEL:#}: {hint}");
        }
        // Nothing is left to tell when stderr is closed too.
        let _ = diverted::Stderr.write_all(text.as_bytes());
    }
}

fn fact(label: &str, text: &str, columns: Option<usize>) -> String {
    format!("{LABEL}{label:WIDTH$}{LABEL:#}  {}", width::wrapped(text, WIDTH + 2, columns))
}

fn remarked(label: &str, text: &str, remark: &str, columns: Option<usize>) -> String {
    let indent = WIDTH + 2;
    let whole = indent + text.chars().count() + 2 + remark.chars().count();
    let fact = fact(label, text, columns);
    if columns.is_none_or(|columns| whole <= columns) {
        return format!("{fact}  {FAINT}{remark}{FAINT:#}");
    }
    format!("{fact}\n{:indent$}{FAINT}{}{FAINT:#}", "", width::wrapped(remark, indent, columns))
}

/// An error and its causes in one line, without repeating a cause that its error tells already.
pub(crate) fn chain(error: &dyn StdError) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(line: &str) -> String {
        anstream::adapter::strip_str(line).to_string()
    }

    #[test]
    fn a_wide_terminal_and_a_pipe_show_a_fact_and_its_remark_in_one_line() {
        let line = "cluster     https://127.0.0.1:6443  ready in 80 ms, kept in memory";
        for columns in [None, Some(100), Some(line.len())] {
            let shown =
                remarked("cluster", "https://127.0.0.1:6443", "ready in 80 ms, kept in memory", columns);
            assert_eq!(plain(&shown), line, "{columns:?}");
        }
    }

    #[test]
    fn a_terminal_of_60_columns_shows_a_remark_below_its_fact() {
        let shown = remarked("cluster", "https://127.0.0.1:6443", "ready in 80 ms, kept in memory", Some(60));
        assert_eq!(
            plain(&shown),
            "cluster     https://127.0.0.1:6443\n            ready in 80 ms, kept in memory"
        );
    }

    #[test]
    fn a_list_is_broken_between_its_words() {
        let shown = plain(&fact("operators", "podmanager, webserver, memcached, database, webapp", Some(40)));
        let expected = ["operators   podmanager, webserver,", "            memcached, database, webapp"];
        assert_eq!(shown.lines().collect::<Vec<_>>(), expected);
    }

    /// A locale or a code page that has no arrows shows something else in their place.
    #[test]
    fn our_own_words_are_ascii() {
        let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut seen = 0;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                // Writes a page of docs/, which is read on the web.
                if path.ends_with("src/reference.rs") {
                    continue;
                }
                for line in std::fs::read_to_string(&path).unwrap().lines() {
                    let code = line.split("// ").next().unwrap_or_default();
                    let comment = line.trim_start().starts_with("//");
                    assert!(comment || code.is_ascii(), "{}: {line}", path.display());
                    seen += 1;
                }
            }
        }
        assert!(seen > 1000, "only {seen} lines were read");
    }
}
