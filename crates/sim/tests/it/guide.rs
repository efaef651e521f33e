//! The code of the guide's chapter about bad days: below the line it is the guide's, word for word.

use crate::fleet::{SAMPLE, operator};

const GUIDE: &str = include_str!("../../../windlass/src/docs/guide.md");
const LINE: &str = "// ---- from here on it is the guide's code ----\n";

#[test]
fn the_guide_shows_the_simulation_that_runs_here() {
    let (_, code) = include_str!("guide.rs").rsplit_once(LINE).unwrap();
    assert!(GUIDE.contains(code.trim()), "the guide's chapter about tests must show this file's code");
}

// ---- from here on it is the guide's code ----
use windlass_sim::Simulation;

#[test]
fn a_fleet_lives_through_bad_days() {
    Simulation::new(operator)
        .objects(SAMPLE)
        .change("{spec: {replicas: 1}}")
        .change("{spec: {image: 'nginx:1.28'}}")
        .invariant("never more Pods than two fleets have", |objects| match objects.of("Pod").count() {
            0..=6 => Ok(()),
            count => Err(format!("there are {count}")),
        })
        .run();
}
