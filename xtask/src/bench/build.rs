//! `bench build`: how long somebody waits who has just cloned this, and how long after an edit.
//!
//! Enters which builds; leaves their seconds, in all and crate by crate. They happen in a copy of the checkout, with a
//! target folder of its own, so that nothing is built and nothing here is changed; what must be downloaded is downloaded
//! before. Quiet machine, quiet figures.

mod checkout;
mod timings;

use std::{path::Path, process::Command, time::Instant};

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;

use super::program::{self, processor_seconds_of_children, succeed};
use checkout::Checkout;
use timings::Unit;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// With the optimised profile, in place of the one that tests use too
    #[arg(long)]
    release: bool,
    /// The tests of the whole workspace as well, after that
    #[arg(long)]
    test: bool,
    /// How many crates of others' to name
    #[arg(long, default_value_t = 10)]
    slowest: usize,
}

/// What a build took.
struct Build {
    wall: f64,
    /// Where the system tells.
    cores: Option<f64>,
    units: Vec<Unit>,
}

pub(super) fn run(args: &Args) -> Result<()> {
    succeed(cargo(program::root(), &["fetch", "--locked", "--quiet"]), "cargo fetch")?;
    let checkout = Checkout::copy(program::root())?;
    let release: &[&str] = if args.release { &["--release"] } else { &[] };
    let first = build(checkout.root(), &[&["build"], release].concat())?;
    print("cargo build", release, &first, args.slowest);
    if args.test {
        let tests = build(checkout.root(), &[&["test", "--workspace", "--no-run"], release].concat())?;
        print("cargo test --workspace --no-run, after it", release, &tests, args.slowest);
        let twice = compiled_twice(&first, &tests);
        ensure!(twice.is_empty(), "compiled a second time: {}", twice.join(", "));
    }
    checkout.edit()?;
    let edited = build(checkout.root(), &[&["build"], release].concat())?;
    print("cargo build, after an edit of a reconciler", release, &edited, 0);
    Ok(())
}

fn cargo(folder: &Path, args: &[&str]) -> Command {
    let mut cargo = program::cargo();
    cargo.current_dir(folder).args(args);
    cargo
}

fn build(folder: &Path, args: &[&str]) -> Result<Build> {
    let mut command = cargo(folder, args);
    command
        .args(["--offline", "--locked", "--quiet", "--timings"])
        .env("CARGO_TARGET_DIR", folder.join("target"));
    let (began, used) = (Instant::now(), processor_seconds_of_children());
    succeed(command, &format!("cargo {}", args.join(" ")))?;
    let wall = began.elapsed().as_secs_f64();
    let cores = used.ok().zip(processor_seconds_of_children().ok()).map(|(before, after)| after - before);
    Ok(Build { wall, cores, units: timings::read(&folder.join("target"))? })
}

fn print(what: &str, profile: &[&str], build: &Build, slowest: usize) {
    let cores = build.cores.map(|cores| format!(", {cores:.0} core-seconds")).unwrap_or_default();
    anstream::println!("{what} {}: {:.1} s{cores}", profile.join(" "), build.wall);
    let (own, others): (Vec<_>, Vec<_>) =
        build.units.iter().filter(|unit| unit.duration > 0.0).partition(|unit| unit.is_ours());
    for unit in own {
        anstream::println!("  {:6.1} s  {}", unit.duration, unit.title());
    }
    let seconds: f64 = others.iter().map(|unit| unit.duration).sum();
    if !others.is_empty() {
        anstream::println!("  {seconds:6.1} s  {} crates of others', of them", others.len());
    }
    for unit in others.iter().take(slowest) {
        anstream::println!("    {:6.1} s  {}", unit.duration, unit.title());
    }
    anstream::println!();
}

/// The crates of others' that the second build did not take over from the first.
fn compiled_twice(first: &Build, second: &Build) -> Vec<String> {
    let of_others = |unit: &&Unit| !unit.is_ours() && unit.duration > 0.0;
    let known: Vec<String> = first.units.iter().filter(of_others).map(Unit::title).collect();
    second.units.iter().filter(of_others).map(Unit::title).filter(|title| known.contains(title)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(units: &[(&str, f64)]) -> Build {
        let unit = |&(name, duration): &(&str, f64)| Unit {
            name: name.to_owned(),
            version: "1.0.0".to_owned(),
            target: String::new(),
            duration,
        };
        Build { wall: 1.0, cores: None, units: units.iter().map(unit).collect() }
    }

    #[test]
    fn what_others_wrote_and_both_builds_compile_is_compiled_twice() {
        let first = built(&[("tokio", 4.0), ("windlass", 20.0), ("serde", 1.0)]);
        let second = built(&[("tokio", 4.1), ("windlass", 30.0), ("serde", 0.0), ("proptest", 2.0)]);
        assert_eq!(compiled_twice(&first, &second), ["tokio 1.0.0"]);
    }
}
