//! An account beside a recorded one.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};

use super::{
    account::{self, Account},
    scenario::{self, Scenario},
};

/// Stands for any value: two plays on Kubernetes were not alike.
const ANY: &str = "*";

/// What differs in many scenarios, by a part of the line, and why.
pub(crate) const EVERYWHERE: &[(&str, &str)] = &[
    (
        "annotations endpoints.kubernetes.io/last-change-trigger-time",
        "a time for kube-proxy's own measurements; nobody measures how rules are programmed here",
    ),
    (
        "annotations node.alpha.kubernetes.io/ttl",
        "how long a kubelet may keep Secrets; simulated nodes keep none",
    ),
    (
        "conditions PodScheduled: True",
        "of a Pod that came with its node the kubelet says so, which the simulated node does and KWOK does not",
    ),
];

fn file(name: &str) -> PathBuf {
    scenario::directory().join("recorded").join(format!("{name}.txt"))
}

/// The names of what was recorded.
pub(crate) fn recorded() -> Vec<String> {
    let files = std::fs::read_dir(scenario::directory().join("recorded")).unwrap();
    let mut names: Vec<String> = files
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// The lines of a text by what they are about.
fn parsed(text: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut lines: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for line in text.lines() {
        lines.entry(line.split_once(": ").map_or(line, |(about, _)| about)).or_default().insert(line);
    }
    lines
}

/// Writes what several plays on Kubernetes have in common. With `again` the recording that is there is one of them.
pub(crate) fn write(name: &str, plays: &[Account], again: bool) {
    let mut texts: Vec<String> = plays.iter().map(account::text_of).collect();
    if again {
        texts.extend(std::fs::read_to_string(file(name)));
    }
    let plays: Vec<_> = texts.iter().map(|text| parsed(text)).collect();
    let abouts: BTreeSet<&&str> = plays.iter().flat_map(BTreeMap::keys).collect();
    let mut common = String::new();
    for about in abouts {
        let first = plays[0].get(about);
        match first.filter(|_| plays.iter().all(|play| play.get(about) == first)) {
            Some(lines) => common.extend(lines.iter().flat_map(|line| [line, "\n"])),
            None => common.extend([about, ": ", ANY, "\n"]),
        }
    }
    std::fs::write(file(name), common).unwrap();
}

/// The lines of a recording that ours does not have, and those that only ours has.
pub(crate) fn differences(scenario: &Scenario, ours: &Account) -> Vec<String> {
    let Ok(text) = std::fs::read_to_string(file(&scenario.name)) else {
        return vec!["there is no recording: cargo xtask scenarios record".into()];
    };
    let real: BTreeSet<&str> = text.lines().collect();
    let any: BTreeSet<&str> = real.iter().filter_map(|line| line.strip_suffix(&format!(": {ANY}"))).collect();
    let told = account::text_of(ours);
    let ours: BTreeSet<&str> = told.lines().collect();
    let is_any = |line: &&&str| {
        any.iter().any(|about| line.strip_prefix(about).is_some_and(|rest| rest.starts_with(": ")))
    };
    let gone = real.difference(&ours).filter(|line| !is_any(line)).map(|line| format!("-{line}"));
    let come = ours.difference(&real).filter(|line| !is_any(line)).map(|line| format!("+{line}"));
    let mut all: Vec<String> = gone.chain(come).collect();
    all.sort_by_key(|line| line[1..].to_owned());
    all
}

/// Whether a line is explained.
fn is_explained(scenario: &Scenario, line: &str) -> bool {
    scenario.explained.keys().any(|start| line.starts_with(start.as_str()))
        || EVERYWHERE.iter().any(|(part, _)| line.contains(part))
}

/// How many lines a recording has, how many of them are not compared, and how many are explained.
pub(crate) fn counted(scenario: &Scenario) -> (usize, usize, usize) {
    let text = std::fs::read_to_string(file(&scenario.name)).unwrap_or_default();
    let is_open = |line: &&str| line.ends_with(&format!(": {ANY}"));
    let open = text.lines().filter(is_open).count();
    let explained = text.lines().filter(|line| !is_open(line) && is_explained(scenario, line)).count();
    (text.lines().count(), open, explained)
}

/// The differences that nobody has explained, and explanations of what does not differ.
pub(crate) fn with_recording(scenario: &Scenario, ours: &Account) -> Vec<String> {
    let differences = differences(scenario, ours);
    let idle = scenario
        .explained
        .keys()
        .filter(|start| !differences.iter().any(|line| line[1..].starts_with(start.as_str())));
    let idle: Vec<String> = idle.map(|start| format!("!{start}: explained, and does not differ")).collect();
    let open = differences.into_iter().filter(|line| !is_explained(scenario, &line[1..]));
    open.chain(idle).collect()
}
