//! The simulation on an operator of its own: what is well lives through its days, what is broken is caught, and the same seed
//! gives the same day.

mod bugs;
mod fleet;
mod guide;
mod repeated;

use fleet::{Bug, simulation};

#[test]
fn a_sound_operator_lives_through_its_days() {
    simulation(None).days(10).run();
}

#[test]
fn a_sound_operator_lives_through_its_days_with_an_election() {
    simulation(None).with_leader_election().days(3).run();
}

#[test]
fn an_invariant_is_checked_after_every_change() {
    let found = simulation(None)
        .invariant("there is never a second Pod", |objects| match objects.of("Pod").count() {
            0 | 1 => Ok(()),
            count => Err(format!("there are {count}")),
        })
        .days(5)
        .search();
    let found = found.unwrap();
    assert_eq!((found.oracle, found.after), ("invariant", 0), "{found}");
    assert!(found.story.contains("broken: there is never a second Pod: there are 2"), "{found}");
}

#[test]
fn a_bad_day_is_made_as_short_as_it_can_be_and_can_be_replayed() {
    let found = simulation(Some(Bug::NoWatch)).days(1000).search().unwrap();
    // It takes one Pod that goes behind the operator's back, and no fault at all.
    let parts: Vec<&str> = found.day.split(':').collect();
    assert!(
        parts.len() == 3 && parts[1].split(',').count() == 1 && parts[2].is_empty(),
        "{found}\n{}",
        found.day
    );
    let again = simulation(Some(Bug::NoWatch)).replay(&found.day);
    assert_eq!(again.unwrap_err().oracle, found.oracle);
}
