//! What cargo's `--timings` says of each crate.
//!
//! Enters a target folder; leaves how long each unit took, the longest first. The figures stand in the report for people
//! (an HTML page with a line of JSON): the report for programs is not stable yet.

use std::path::Path;

use anyhow::{Context, Result};
use fs_err as fs;
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) version: String,
    /// What of the package, unless it is its library.
    pub(super) target: String,
    /// Seconds; none if it was built before.
    pub(super) duration: f64,
}

impl Unit {
    pub(super) fn is_ours(&self) -> bool {
        self.name.starts_with("windlass") || self.name == "xtask"
    }

    /// `tokio 1.54.1`, `windlass-cli "bin" windlass`; of our own crates there is one version.
    pub(super) fn title(&self) -> String {
        let version = if self.is_ours() { "" } else { &self.version };
        [&self.name, version, self.target.trim()]
            .into_iter()
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

pub(super) fn read(target: &Path) -> Result<Vec<Unit>> {
    parse(&fs::read_to_string(target.join("cargo-timings/cargo-timing.html"))?)
}

fn parse(page: &str) -> Result<Vec<Unit>> {
    let (_, data) =
        page.split_once("const UNIT_DATA = ").context("cargo's report of timings has no UNIT_DATA")?;
    let mut units: serde_json::StreamDeserializer<'_, _, Vec<Unit>> =
        serde_json::Deserializer::from_str(data).into_iter();
    let mut units = units.next().context("cargo's report of timings ends early")??;
    units.sort_by(|one, other| other.duration.total_cmp(&one.duration));
    Ok(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<script>
const CONCURRENCY_DATA = [];
const UNIT_DATA = [
  {"i": 0, "name": "serde", "version": "1.0.229", "mode": "todo", "target": "", "features": [], "duration": 0.4},
  {"i": 1, "name": "windlass-cli", "version": "0.1.0", "mode": "todo", "target": " windlass \"bin\"", "duration": 4.28}
];
const OTHER = {};
</script>"#;

    #[test]
    fn the_report_is_read_the_longest_first() {
        let titles: Vec<String> = parse(PAGE).unwrap().iter().map(Unit::title).collect();
        assert_eq!(titles, ["windlass-cli windlass \"bin\"", "serde 1.0.229"]);
    }

    #[test]
    fn another_report_is_refused() {
        assert!(parse("<html></html>").is_err());
    }
}
