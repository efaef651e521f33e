//! The same seed gives the same day, byte by byte: twice in this process, and in another one.

use std::process::Command;

use crate::fleet::simulation;

/// Says which days a child process is to print.
const CHILD: &str = "SIM_TEST_RECORD";

fn days() -> u64 {
    std::env::var("SIM_DAYS").ok().and_then(|days| days.parse().ok()).unwrap_or(6)
}

fn records(days: u64) -> String {
    let simulation = simulation(None).with_leader_election();
    let records = simulation.record(0..days);
    let named = |(seed, record): (usize, &String)| format!("=== {seed}\n{record}\n");
    records.iter().enumerate().map(named).collect::<Vec<_>>().concat()
}

#[test]
fn the_same_seed_gives_the_same_day() {
    if let Ok(days) = std::env::var(CHILD) {
        std::fs::write(std::env::var("SIM_TEST_FILE").unwrap(), records(days.parse().unwrap())).unwrap();
        return;
    }
    let (days, file) = (days(), std::env::temp_dir().join(format!("windlass-sim-{}", std::process::id())));
    let once = records(days);
    same(&once, &records(days), "in one process");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "repeated::the_same_seed_gives_the_same_day"])
        .env(CHILD, days.to_string())
        .env("SIM_TEST_FILE", &file)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    let other = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    same(&once, &other, "in another process");
    assert!(once.contains("crash-after") || once.contains("answer-lost"), "the days are bad ones");
}

/// Compares two records, and says where they part.
pub(crate) fn same(one: &str, other: &str, when: &str) {
    if one == other {
        return;
    }
    let (mut day, mut before) = ("", Vec::new());
    for (a, b) in one.lines().zip(other.lines()) {
        if a.starts_with("=== ") {
            day = a;
            before.clear();
        }
        let from = before.len().saturating_sub(5);
        assert_eq!(a, b, "{when}, day {day}, after\n{}", before[from..].join("\n"));
        before.push(a);
    }
    panic!("{when}: one record is longer");
}
