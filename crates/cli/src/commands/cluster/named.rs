//! `windlass cluster down|status|kubeconfig|reset`: what is done with clusters that have a name.

use std::time::Duration;

use fs_err as fs;
use serde::Serialize;
use windlass::jiff::Timestamp;

use super::background;
use crate::{
    args::{KubeconfigArgs, NameArgs, StatusArgs, UpArgs},
    clusters::{ClusterDirectory, Error as ClustersError, Facts, Home, State},
    error::Error,
    printer::Printer,
};

/// How long a stop may take: a little more than the process gives itself.
const TIMEOUT: Duration = Duration::from_secs(15);

pub(in crate::commands) fn down(args: &NameArgs, printer: Printer) -> Result<(), Error> {
    let place = Home::find()?.known(&args.name)?;
    stop(&place)?;
    printer.aside(format_args!("stopped {}", place.name()))
}

fn stop(place: &ClusterDirectory) -> Result<(), Error> {
    if let State::Stopped | State::Dead(_) = place.state()? {
        return Err(ClustersError::NotRunning(place.name().to_owned()).into());
    }
    Ok(place.stop(TIMEOUT)?)
}

pub(in crate::commands) fn kubeconfig(args: &KubeconfigArgs, printer: Printer) -> Result<(), Error> {
    let facts = Home::find()?.known(&args.cluster.name)?.running()?;
    let path = &facts.kubeconfig;
    if args.print {
        let content = fs::read(path).map_err(|source| ClustersError::Io {
            action: "read",
            path: path.clone(),
            source,
        })?;
        return printer.answer(&content);
    }
    printer.answer(format!("{}\n", path.display()).as_bytes())
}

/// Throws the objects away. What ran runs again, as it was started.
pub(in crate::commands) async fn reset(args: &NameArgs, verbose: u8, printer: Printer) -> Result<(), Error> {
    let place = Home::find()?.known(&args.name)?;
    let name = place.name().to_owned();
    let facts = match place.state()? {
        State::Running(facts) => facts,
        State::Starting => return Err(ClustersError::Starting(name).into()),
        State::Stopped | State::Dead(_) => {
            place.remove()?;
            return printer.aside(format_args!("removed {name}"));
        }
    };
    if !facts.is_detached() {
        return Err(ClustersError::Foreground { name, pid: facts.pid }.into());
    }
    if let Some(path) = facts.data_dir.clone().filter(|path| *path != place.data()) {
        return Err(ClustersError::OwnDirectory { name, path }.into());
    }
    stop(&place)?;
    place.remove()?;
    background::start(&place, &UpArgs::again(&name, &facts), verbose, printer).await
}

/// A cluster in the answer of `status`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    name: String,
    state: &'static str,
    /// Why it does not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(flatten)]
    facts: Option<Facts>,
}

impl Entry {
    fn of(place: &ClusterDirectory) -> Result<Self, Error> {
        let (state, reason, facts) = match place.state()? {
            State::Running(facts) => ("running", None, Some(facts)),
            State::Starting => ("starting", None, None),
            State::Stopped => ("stopped", None, None),
            State::Dead(reason) => ("dead", Some(reason), None),
        };
        Ok(Self { name: place.name().to_owned(), state, reason, facts })
    }

    /// A line of the table, and what to say below it.
    fn row(&self, now: Timestamp) -> [String; 5] {
        let facts = self.facts.as_ref();
        let cell = |cell: Option<String>| cell.unwrap_or_else(|| "-".into());
        [
            self.name.clone(),
            self.state.into(),
            cell(facts.map(|facts| facts.url.clone())),
            cell(facts.map(|facts| facts.pid.to_string())),
            cell(facts.map(|facts| age(now, facts.started))),
        ]
    }
}

pub(in crate::commands) fn status(args: &StatusArgs, printer: Printer) -> Result<(), Error> {
    let home = Home::find()?;
    let places = match &args.name {
        Some(name) => vec![home.known(name)?],
        None => home.all()?,
    };
    let entries = places.iter().map(Entry::of).collect::<Result<Vec<_>, _>>()?;
    if let Some(format) = args.output.output {
        return printer.data(format, &entries);
    }
    if entries.is_empty() {
        return printer.aside("no clusters; `windlass cluster up --detach` starts one");
    }
    let now = Timestamp::now();
    let rows: Vec<[String; 5]> = entries.iter().map(|entry| entry.row(now)).collect();
    for line in table(["NAME", "STATE", "URL", "PID", "AGE"], &rows) {
        printer.line(line)?;
    }
    for (entry, reason) in entries.iter().filter_map(|entry| Some((entry, entry.reason.as_ref()?))) {
        printer.aside(format_args!("{}: {reason}", entry.name))?;
    }
    Ok(())
}

/// As kubectl prints it: `5s`, `12m`, `3h`, `9d`.
fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = now.as_second().saturating_sub(then.as_second()).max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Lines whose columns are as wide as they must be.
fn table<const N: usize>(head: [&str; N], rows: &[[String; N]]) -> Vec<String> {
    let head = head.map(ToOwned::to_owned);
    let all: Vec<&[String; N]> = std::iter::once(&head).chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..N).map(width).collect();
    let line = |row: &&[String; N]| {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_columns() {
        let rows = [["a", "running"], ["longer", "x"]].map(|row| row.map(ToOwned::to_owned));
        assert_eq!(table(["NAME", "STATE"], &rows), ["NAME    STATE", "a       running", "longer  x"]);
    }

    #[test]
    fn an_age_is_told_as_kubectl_does() {
        let after = |seconds| age(Timestamp::from_second(seconds).unwrap(), Timestamp::UNIX_EPOCH);
        assert_eq!([after(5), after(119), after(120)], ["5s", "119s", "2m"]);
        assert_eq!([after(7_200), after(200_000)], ["2h", "2d"]);
        assert_eq!(age(Timestamp::UNIX_EPOCH, Timestamp::from_second(5).unwrap()), "0s");
    }
}
