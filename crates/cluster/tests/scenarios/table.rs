//! The table of all scenarios: how many lines Kubernetes gave, how many of them are compared, and why some differ.
//!
//! That the others are equal is what the tests of each file say: an unexplained difference fails them, and so does an
//! explanation of what does not differ.

use std::fmt::Write;

use super::{compare, scenario};

const HEAD: &str = "\
# Scenarios

Each scenario is a list of steps (`*.yaml`). It was played on kube-apiserver, kube-controller-manager and kube-scheduler
of the testbed's version, with nodes that KWOK plays (`xtask/kwok/stages.yaml`); what became of the objects is in
`recorded/`. `cargo test` plays it on the embedded cluster and compares line by line.

- *real*: how many lines Kubernetes gave.
- *open*: how many of them were not alike when Kubernetes was asked again, and are not compared.
- *equal*: how many of the others are the same on the embedded cluster.
- *explained*: what differs, and why. A difference without an explanation fails the test, and so does an explanation of
  what does not differ.

`cargo xtask scenarios record` makes the recordings anew, `cargo xtask scenarios table` writes this page.
";

/// The page.
fn page() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\nEverywhere:\n\n");
    for (part, why) in compare::EVERYWHERE {
        writeln!(text, "- `{part}`: {why}").unwrap();
    }
    for file in scenario::files() {
        let title = file.replace('_', " ");
        writeln!(
            text,
            "\n## {title}\n\n| scenario | real | open | equal | explained |\n|---|---|---|---|---|"
        )
        .unwrap();
        for scenario in scenario::read(&file) {
            let (lines, open, explained) = compare::counted(&scenario);
            let why: Vec<String> =
                scenario.explained.iter().map(|(start, why)| format!("`{start}`: {why}")).collect();
            let about =
                if scenario.about.is_empty() { String::new() } else { format!(": {}", scenario.about) };
            let (name, equal) = (&scenario.name, lines - open - explained);
            writeln!(text, "| {name}{about} | {lines} | {open} | {equal} | {} |", why.join("; ")).unwrap();
        }
    }
    text
}

#[test]
fn the_table_is_of_today() {
    let file = scenario::directory().join("README.md");
    let page = page();
    if std::env::var_os("WINDLASS_SCENARIOS_TABLE").is_some() {
        std::fs::write(&file, &page).unwrap();
    }
    let there = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(there == page, "README.md is not of today: cargo xtask scenarios table");
}
