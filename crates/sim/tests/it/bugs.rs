//! What the programs got wrong that the operators of this repository started from, one at a time: each is caught.

use crate::fleet::{Bug, simulation};

/// How many days each may take.
const DAYS: u64 = 1000;

fn caught(bug: Bug, oracles: &[&str]) {
    let Some(found) = simulation(Some(bug)).days(DAYS).search() else { panic!("{bug:?} was not caught") };
    eprintln!("{bug:?}: caught after {} days ({}), SIM_SEED={}", found.after, found.oracle, found.day);
    assert!(oracles.contains(&found.oracle), "{bug:?} is not what was caught:\n{found}");
}

#[test]
fn an_index_that_is_the_number_of_pods() {
    caught(Bug::IndexIsLength, &["end"]);
}

#[test]
fn an_image_that_is_never_changed() {
    caught(Bug::IgnoresImage, &["end"]);
}

#[test]
fn a_condition_that_is_appended_in_every_pass() {
    caught(Bug::AppendsConditions, &["writes-at-rest", "rest", "end", "hot-loop"]);
}

#[test]
fn a_requeue_without_a_pause() {
    caught(Bug::RequeuesAtOnce, &["hot-loop"]);
}

#[test]
fn a_kind_that_is_not_watched() {
    caught(Bug::NoWatch, &["end"]);
}

#[test]
fn a_permission_that_is_missing() {
    caught(Bug::NoPermission, &["forbidden"]);
}

#[test]
fn a_status_of_the_generation_before() {
    caught(Bug::StaleGeneration, &["observed-generation", "end"]);
}
