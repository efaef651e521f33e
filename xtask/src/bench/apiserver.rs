//! `bench apiserver`: our API server, in memory and on disk, beside etcd + kube-apiserver, in one run.
//!
//! The real pair runs without fsync and without priority and fairness, as fast as it can. Every measurement gets a
//! fresh server; rounds are interleaved, so that a noisy minute hits all contenders; a ratio is taken within a round.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Args as ClapArgs;
use fs_err as fs;
use serde_json::Value;

use super::program::{self, Load, Running, resident};
use super::table::{self, Spread};
use crate::kubernetes::ApiServer;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How many ConfigMaps of about one kilobyte
    #[arg(long, default_value_t = 10_000)]
    objects: usize,
    /// How long to read and how long to patch, in seconds
    #[arg(long, default_value_t = 4)]
    seconds: usize,
    /// How many changes a hundred watchers follow
    #[arg(long, default_value_t = 1000)]
    changes: usize,
    /// How often each contender is measured
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Only Windlass, without the real server
    #[arg(long)]
    alone: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Contender {
    Real,
    Memory,
    Disk,
    /// As the real one is run: what is written is with the system, not on the disk.
    Unsynced,
}

impl Contender {
    const fn title(self) -> &'static str {
        match self {
            Self::Real => "etcd + kube-apiserver",
            Self::Memory => "Windlass, in memory",
            Self::Disk => "Windlass, on disk",
            Self::Unsynced => "Windlass, on disk without fsync",
        }
    }
}

/// A figure: its field, its name, and whether more is better.
const ROWS: [(&str, &str, bool); 10] = [
    ("ready", "ready, ms", false),
    ("idle", "resident, idle, MB", false),
    ("full", "resident, with the objects, MB", false),
    ("create", "creates a second", true),
    ("get", "gets a second", true),
    ("token", "gets a second, with a token", true),
    ("patch", "merge patches a second", true),
    ("watch", "watch events a second, 100 watchers", true),
    ("list", "list of all, ms", false),
    ("loaded", "resident, at the end, MB", false),
];

pub(super) fn run(args: &Args, built: Option<&Path>) -> Result<()> {
    if args.objects < 100 || args.seconds == 0 || args.changes == 0 || args.rounds == 0 {
        bail!("--objects must be at least 100; --seconds, --changes and --rounds at least 1");
    }
    let programs = program::build(built, &["--package", "windlass-bench"])?;
    let all = [Contender::Real, Contender::Memory, Contender::Disk, Contender::Unsynced];
    let contenders = if args.alone { &all[1..] } else { &all[..] };
    let mut reports = Vec::new();
    for round in 1..=args.rounds {
        anstream::println!("round {round} of {}", args.rounds);
        for &contender in contenders {
            let report = measure(args, contender, &programs)?;
            anstream::println!("  {}: {report}", contender.title());
            reports.push((contender, report));
        }
    }
    print(args, contenders, &reports);
    Ok(())
}

fn measure(args: &Args, contender: Contender, programs: &Path) -> Result<Value> {
    let folder = std::env::temp_dir().join(format!("windlass-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let outcome = match contender {
        Contender::Real => measure_real(args, programs),
        Contender::Memory => measure_ours(args, programs, &folder, &[]),
        Contender::Disk => measure_ours(args, programs, &folder, &[&folder.join("data")]),
        Contender::Unsynced => {
            measure_ours(args, programs, &folder, &[&folder.join("data"), Path::new("no-fsync")])
        }
    };
    fs::remove_dir_all(folder)?;
    outcome
}

fn measure_real(args: &Args, programs: &Path) -> Result<Value> {
    // The kubeconfig exists before the server does, so the generator can only be started after it was written.
    let (server, begin) = ApiServer::launch("bench-apiserver")?;
    let load = Load { programs: programs.into(), kubeconfig: server.kubeconfig()? };
    let ready = load.await_ready()?.milliseconds(begin)?;
    measure_loaded(args, &load, ready, &server.processes()?)
}

fn measure_ours(args: &Args, programs: &Path, folder: &Path, store: &[&Path]) -> Result<Value> {
    let load = Load { programs: programs.into(), kubeconfig: folder.join("kubeconfig") };
    let waiting = load.await_ready()?;
    let mut command = Command::new(programs.join("bench-apiserver"));
    command.arg(&load.kubeconfig).args(store).stdout(Stdio::null());
    let begin = Instant::now();
    let server = Running::start(&mut command)?;
    let ready = waiting.milliseconds(begin)?;
    measure_loaded(args, &load, ready, &[server.pid()])
}

fn measure_loaded(args: &Args, load: &Load, ready: f64, processes: &[i32]) -> Result<Value> {
    // The real server goes on working for a moment after it says that it is ready.
    std::thread::sleep(Duration::from_secs(2));
    let idle = resident(processes)?;
    let create = load.run(&[&format!("create={}", args.objects)])?;
    let full = resident(processes)?;
    let seconds = args.seconds;
    let phases = [
        format!("get={seconds}"),
        format!("token={seconds}"),
        format!("patch={seconds}"),
        format!("watch={}", args.changes),
        "list=5".into(),
    ];
    let figures = load.run(&phases.each_ref().map(String::as_str))?;
    Ok(serde_json::json!({
        "ready": ready, "idle": idle, "full": full, "loaded": resident(processes)?,
        "create": create[0]["per_second"], "get": figures[0]["per_second"], "token": figures[1]["per_second"],
        "patch": figures[2]["per_second"], "watch": figures[3]["per_second"],
        "list": figures[4]["milliseconds"], "list_bytes": figures[4]["bytes"],
    }))
}

fn figures(reports: &[(Contender, Value)], contender: Contender, field: &str) -> Vec<f64> {
    let of = reports.iter().filter(|(one, _)| *one == contender);
    of.filter_map(|(_, report)| report[field].as_f64()).collect()
}

fn print(args: &Args, contenders: &[Contender], reports: &[(Contender, Value)]) {
    let titles: Vec<_> = contenders.iter().map(|one| one.title()).collect();
    let rows: Vec<_> = ROWS
        .iter()
        .map(|&(field, title, _)| {
            let cells = contenders.iter().map(|one| Spread::of(figures(reports, *one, field)));
            (title, cells.collect())
        })
        .collect();
    anstream::println!("\n{} objects, median of {} (lowest–highest)", args.objects, args.rounds);
    table::print(&titles, &rows);
    if contenders.contains(&Contender::Real) {
        print_ratios(reports);
    }
}

/// How many times better ours is, round by round.
fn print_ratios(reports: &[(Contender, Value)]) {
    let ours = [Contender::Memory, Contender::Disk, Contender::Unsynced];
    let rows: Vec<_> = ROWS
        .iter()
        .map(|&(field, title, more)| {
            let real = figures(reports, Contender::Real, field);
            let cells = ours.map(|one| {
                let pairs = figures(reports, one, field).into_iter().zip(real.iter().copied());
                Spread::of(pairs.map(|(ours, real)| if more { ours / real } else { real / ours }).collect())
            });
            (title, cells.to_vec())
        })
        .collect();
    anstream::println!("\ntimes better than etcd + kube-apiserver, in the same round");
    table::print(&ours.map(Contender::title), &rows);
}
