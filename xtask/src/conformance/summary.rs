//! What a person reads: a line for each spec as it ends, and the account at the end.

use std::collections::BTreeMap;

use super::lists::Lists;
use super::spec::{Outcome, Run};
use super::suite;

/// Prints names, those that are known to pass with a mark.
pub(super) fn list(specs: &[String], lists: &Lists) {
    for spec in specs {
        let mark = match (lists.ci.contains(spec), lists.passing.contains(spec)) {
            (true, _) => "ci  ",
            (_, true) => "pass",
            _ => "    ",
        };
        anstream::println!("{mark} {spec}");
    }
    let known = specs.iter().filter(|spec| lists.passing.contains(*spec)).count();
    anstream::println!("{} specs, {known} known to pass", specs.len());
}

/// Prints a line for a spec that has ended.
pub(super) fn progress(index: usize, total: usize, run: &Run) {
    let word = match &run.outcome {
        Outcome::Passed => "passed",
        Outcome::Failed(_) => "FAILED",
        Outcome::Skipped(_) => "skipped",
        Outcome::NotRun => return,
    };
    anstream::println!("[{index}/{total}] {word} {:4.0} s  {}", run.time.as_secs_f64(), run.spec);
}

/// Prints the account; whether no spec that is known to pass did otherwise.
pub(super) fn print(runs: &[Run], lists: &Lists) -> bool {
    let known = |run: &&Run| lists.passing.contains(&run.spec);
    let failed = |run: &&Run| matches!(run.outcome, Outcome::Failed(_));
    let passed = |run: &&Run| run.outcome == Outcome::Passed;
    section("failed", runs.iter().filter(failed), true);
    section("skipped", runs.iter().filter(|run| matches!(run.outcome, Outcome::Skipped(_))), true);
    section("newly passing", runs.iter().filter(passed).filter(|run| !known(run)), false);
    let regressed: Vec<&Run> = runs.iter().filter(known).filter(|run| !passed(run)).collect();
    section("newly failing", regressed.iter().copied(), true);
    table(runs);
    let count = |wanted: fn(&Outcome) -> bool| runs.iter().filter(|run| wanted(&run.outcome)).count();
    anstream::println!(
        "conformance: {} passed, {} failed, {} skipped, {} not run; {} newly failing",
        count(|outcome| *outcome == Outcome::Passed),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| matches!(outcome, Outcome::Skipped(_))),
        count(|outcome| *outcome == Outcome::NotRun),
        regressed.len()
    );
    regressed.is_empty()
}

fn section<'a>(title: &str, runs: impl Iterator<Item = &'a Run>, reasons: bool) {
    let runs: Vec<&Run> = runs.collect();
    if runs.is_empty() {
        return;
    }
    anstream::println!("\n{title}: {}", runs.len());
    for run in runs {
        anstream::println!("  {}", run.spec);
        match &run.outcome {
            Outcome::Failed(reason) if reasons => {
                anstream::println!("      {reason}\n      {}", run.log.display());
            }
            Outcome::Skipped(reason) if reasons => anstream::println!("      {reason}"),
            Outcome::NotRun if reasons => anstream::println!("      not run"),
            _ => {}
        }
    }
}

/// Passed and run, for each group.
fn table(runs: &[Run]) {
    let mut groups: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for run in runs {
        let (passed, all) = groups.entry(suite::sig(&run.spec)).or_default();
        *passed += usize::from(run.outcome == Outcome::Passed);
        *all += 1;
    }
    anstream::println!();
    for (group, (passed, all)) in groups {
        anstream::println!("{group:16} {passed:4} of {all}");
    }
}
