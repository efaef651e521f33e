//! `bench operator`: what the same operator costs on Windlass, on kube's `Controller` and on controller-runtime.
//!
//! Every measurement gets a fresh etcd and API server without controllers, so that all writes are the operator's
//! and no round inherits another's objects. Rounds are interleaved: a noisy minute hits all contenders.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::{Args as ClapArgs, ValueEnum};
use serde_json::Value;

use super::program;
use super::table::{self, Spread};
use crate::kubernetes::ApiServer;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How many WebServers
    #[arg(long, default_value_t = 1000)]
    objects: usize,
    /// How many of them are changed, one after the other
    #[arg(long, default_value_t = 200)]
    changes: usize,
    /// How often each contender is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only these contenders
    #[arg(long, value_delimiter = ',', value_enum)]
    only: Vec<Contender>,
    /// Also fill Windlass's cache with this many objects (100000 takes some minutes to create)
    #[arg(long, value_name = "OBJECTS")]
    cache: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Contender {
    Windlass,
    Kube,
    ControllerRuntime,
}

const ALL: [Contender; 3] = [Contender::ControllerRuntime, Contender::Kube, Contender::Windlass];

impl Contender {
    const fn title(self) -> &'static str {
        match self {
            Self::Windlass => "Windlass",
            Self::Kube => "kube-rs, apply always",
            Self::ControllerRuntime => "controller-runtime",
        }
    }

    fn program(self, programs: &Path) -> PathBuf {
        programs.join(match self {
            Self::Windlass => "bench-windlass",
            Self::Kube => "bench-kube",
            Self::ControllerRuntime => "bench-controller-runtime",
        })
    }
}

/// What a report calls a figure, and what a reader does.
const ROWS: [(&str, &str); 12] = [
    ("converge_writes", "writes to converge, per object"),
    ("restart_writes", "writes after a restart, per object"),
    ("change_writes", "writes per change of one spec"),
    ("change_conflicts", "  of these answered 409"),
    ("converge_displacement", "order of first reconciles (0 in order, 0.33 random)"),
    ("restart_displacement", "  after a restart"),
    ("converge_seconds", "converge, s"),
    ("restart_seconds", "restart until all are reconciled, s"),
    ("converge_cpu_seconds", "operator CPU to converge, s"),
    ("settled_megabytes", "resident, settled, MB"),
    ("latency_p50_milliseconds", "write to child, p50 ms"),
    ("latency_p99_milliseconds", "  p99 ms"),
];

pub(super) fn run(args: &Args, built: Option<&Path>) -> Result<()> {
    if args.objects == 0 || args.changes == 0 || args.rounds == 0 {
        bail!("--objects, --changes and --rounds must be at least 1");
    }
    let contenders: Vec<_> =
        ALL.into_iter().filter(|one| args.only.is_empty() || args.only.contains(one)).collect();
    let programs = build(&contenders, built)?;
    let mut reports: Vec<(Contender, Value)> = Vec::new();
    let mut floors = Vec::new();
    for round in 1..=args.rounds {
        anstream::println!("round {round} of {}", args.rounds);
        let floor = measured(&programs, &["bare", "--objects", &args.objects.to_string()], None)?;
        floors.extend(floor.as_f64());
        for &contender in &contenders {
            let options =
                ["operator", "--objects", &args.objects.to_string(), "--changes", &args.changes.to_string()];
            let report = measured(&programs, &options, Some(&[contender.program(&programs)]))?;
            anstream::println!("  {}: {report}", contender.title());
            reports.push((contender, report));
        }
    }
    print(args, &contenders, &reports, floors);
    if let Some(objects) = args.cache {
        let command = [Contender::Windlass.program(&programs), "--read-only".into()];
        let report = measured(&programs, &["cache", "--objects", &objects.to_string()], Some(&command))?;
        print_cache(objects, &report);
    }
    Ok(())
}

fn print(args: &Args, contenders: &[Contender], reports: &[(Contender, Value)], floors: Vec<f64>) {
    let titles: Vec<_> = contenders.iter().map(|one| one.title()).collect();
    let rows: Vec<_> = ROWS
        .iter()
        .map(|&(field, title)| {
            let cells = contenders.iter().map(|contender| {
                let of = reports.iter().filter(|(one, _)| one == contender);
                Spread::of(of.filter_map(|(_, report)| report[field].as_f64()).collect())
            });
            (title, cells.collect())
        })
        .collect();
    anstream::println!("\n{} WebServers, median of {} (lowest–highest)", args.objects, args.rounds);
    table::print(&titles, &rows);
    if let Some(floor) = Spread::of(floors) {
        anstream::println!(
            "the same writes without an operator: {:.1} s ({:.1}–{:.1})",
            floor.median,
            floor.low,
            floor.high
        );
    }
}

fn print_cache(objects: usize, report: &Value) {
    let figure = |name: &str| report[name].as_f64().unwrap_or_default();
    anstream::println!(
        "a cache of {objects} objects: {:.2} s to fill with every object reconciled once, {:.2} s of CPU, {:.0} bytes \
         an object, {:.0} MB resident in all",
        figure("sync_seconds"),
        figure("cpu_seconds"),
        figure("bytes_per_object"),
        figure("megabytes"),
    );
}

/// Runs the measurer on a fresh API server.
fn measured(programs: &Path, options: &[&str], command: Option<&[PathBuf]>) -> Result<Value> {
    let server = ApiServer::start("bench-operator")?;
    let mut measurer = Command::new(programs.join("bench-measure"));
    measurer
        .args(options)
        .env("KUBECONFIG", server.kubeconfig()?)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    if let Some(command) = command {
        measurer.arg("--").args(command);
    }
    let output = measurer.output().context("failed to start the measurer")?;
    if !output.status.success() {
        bail!("the measurer ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("failed to read the measurer's report")
}

/// Builds what is measured, optimised, and returns where it lies.
fn build(contenders: &[Contender], built: Option<&Path>) -> Result<PathBuf> {
    let programs = program::build(built, &["--package", "windlass-bench"])?;
    if contenders.contains(&Contender::ControllerRuntime) {
        let mut go = Command::new("go");
        go.current_dir(program::root().join("bench/controller-runtime"))
            .env("CGO_ENABLED", "0")
            .args(["build", "-mod=readonly", "-trimpath", "-o"])
            .arg(Contender::ControllerRuntime.program(&programs))
            .arg(".");
        program::succeed(go, "go build")?;
    }
    Ok(programs)
}
