//! Operators as processes: what they say when something is wrong, how they hand over to each other, and what the
//! API server sees of their webhooks.
//!
//! This binary is both: started with `operator` as its first argument it is the operator, otherwise the tests,
//! which start it. The tests of a real cluster are ignored unless asked for, as everywhere:
//! `#[ignore = "needs a real cluster"]`.

#![expect(clippy::unwrap_used, unreachable_pub, reason = "all of this is test code")]

mod child;
mod configuration;
mod death;
mod election;
mod operator;
mod setting;
#[cfg(feature = "otlp")]
mod traces;
mod webhooks;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};

fn main() -> ExitCode {
    let mut args: Vec<std::ffi::OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|arg| arg == "operator") {
        args.remove(1);
        return operator::operator().main_from(args);
    }
    let real = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
        .with_ignored_flag(true)
    };
    let plain = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    // These end a process by a signal, which only Unix has a command for.
    let signals = |name: &str, test: fn()| plain(name, test).with_ignored_flag(cfg!(not(unix)));
    let trials = vec![
        plain("mistakes_in_the_configuration_end_in_one_clear_line", configuration::mistakes),
        plain("namespaces_and_a_dry_run_are_chosen_by_flags", configuration::flags),
        plain("a_cluster_that_refuses_ends_the_process_with_advice", configuration::refusals),
        plain("uninstalling_keeps_the_kinds_unless_told_otherwise", configuration::installation),
        plain("an_operator_ends_with_its_stdin_if_it_is_told_to", configuration::orphan),
        signals("an_outage_longer_than_the_lease_ends_no_process", election::outage),
        signals("an_api_server_and_a_kind_that_are_away_are_waited_for", election::waiting),
        signals("webhooks_serve_the_embedded_cluster", webhooks::embedded),
        #[cfg(feature = "otlp")]
        signals("a_collector_receives_the_spans_of_reconciles", traces::embedded),
        real("real::webhooks_reject_default_warn_and_convert", webhooks::real),
        real("real::a_standby_follows_a_release_a_death_and_a_partition", election::real),
        real("real::a_watch_recovers_when_the_api_server_was_away", election::recovery),
        real("real::an_outage_longer_than_the_lease_ends_no_process", election::long_outage),
        real("real::nothing_is_lost_when_the_api_server_dies_and_returns", death::real),
    ];
    let arguments = Arguments::from_args();
    libtest_mimic::run(&arguments, trials).exit_code()
}
