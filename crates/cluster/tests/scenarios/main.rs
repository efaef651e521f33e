//! Every controller beside the one of Kubernetes: the same steps, and what became of the objects.
//!
//! A scenario is data (`*.yaml`). What kube-controller-manager and kube-scheduler made of it, on nodes that KWOK plays,
//! is in `recorded/`; here it is played on the embedded cluster, whose clock stands still, and compared line by line.
//! `cargo xtask scenarios record` plays all of them on a testbed and writes the recordings anew.

#![allow(clippy::print_stdout, reason = "whoever records wants to see how far it is")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on, and runs once")]

mod account;
mod compare;
mod death;
mod kinds;
mod objects;
mod ours;
mod play;
mod real;
mod scenario;
mod table;
mod witness;

use scenario::Scenario;

/// The files of scenarios: a controller each.
macro_rules! files {
    ($($file:ident),* $(,)?) => {
        $(
            mod $file {
                #[test]
                fn does_what_kubernetes_does() {
                    super::compared(stringify!($file));
                }

                #[test]
                fn ends_alike_after_a_death() {
                    super::killed(stringify!($file));
                }
            }
        )*

        #[test]
        fn every_file_is_played() {
            let mut named = vec![$(stringify!($file).to_owned()),*];
            named.sort();
            assert_eq!(named, scenario::files());
        }
    };
}

files!(
    autoscaler,
    cron_job,
    daemon_set,
    deployment,
    disruption,
    garbage,
    job,
    namespace,
    node,
    quota,
    replica_set,
    replication_controller,
    scheduler,
    service,
    stateful_set,
    volume,
);

fn chosen(file: &str) -> Vec<Scenario> {
    let only = std::env::var("WINDLASS_SCENARIOS_ONLY").unwrap_or_default();
    scenario::read(file).into_iter().filter(|scenario| scenario.name.contains(&only)).collect()
}

/// Plays the scenarios of a file on ours, and compares each with its recording.
fn compared(file: &str) {
    let mut wrong = Vec::new();
    for scenario in chosen(file) {
        let ours = ours::play(&scenario);
        if std::env::var_os("WINDLASS_SCENARIOS_PRINT").is_some() {
            println!("--- {}\n{}", scenario.name, account::text_of(&ours));
        }
        let differences = compare::with_recording(&scenario, &ours);
        if !differences.is_empty() {
            wrong.push(format!(
                "{} differs from Kubernetes (-) here (+):\n{}",
                scenario.name,
                differences.join("\n")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

/// Plays the scenarios of a file on ours, with controllers that die at a write, and compares the ends.
fn killed(file: &str) {
    for scenario in chosen(file) {
        death::check(&scenario);
    }
}

/// Plays every scenario on the cluster of a kubeconfig, when one is named.
#[test]
fn recordings_are_of_these_scenarios() {
    let real =
        [("WINDLASS_SCENARIOS_RECORD", real::Then::Write), ("WINDLASS_SCENARIOS_REAL", real::Then::Compare)];
    for (variable, then) in real {
        if let Some(kubeconfig) = std::env::var_os(variable) {
            let scenarios = scenario::files().iter().flat_map(|file| chosen(file)).collect();
            real::play(kubeconfig.as_ref(), scenarios, then);
        }
    }
    let mut names: Vec<String> = scenario::all().into_iter().map(|scenario| scenario.name).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "two scenarios have one name: {names:?}");
    assert_eq!(names, compare::recorded(), "record what is new, and delete what is gone");
}
