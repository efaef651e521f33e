//! `bench cluster`: the embedded cluster with its controllers and its simulated node, beside a real control plane.
//!
//! The real one has no node here, so its Pods are made and never run: it is followed as far as that.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use fs_err as fs;
use serde_json::{Value, json};

use super::program::{self, Load, Running, processor_seconds, resident};
use super::table::{self, Spread};
use crate::kubernetes::ApiServer;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// How many Deployments of three replicas
    #[arg(long, default_value_t = 1000)]
    deployments: usize,
    /// How long to watch the settled cluster do nothing, in seconds
    #[arg(long, default_value_t = 20)]
    idle: u64,
    /// How often
    #[arg(long, default_value_t = 1)]
    rounds: usize,
    /// Keep everything in a data directory
    #[arg(long)]
    disk: bool,
    /// Only Windlass, without the real control plane
    #[arg(long)]
    alone: bool,
}

const ROWS: [(&str, &str); 9] = [
    ("ready", "ready, ms"),
    ("empty", "resident, no objects, MB"),
    ("created", "Deployments created, s"),
    ("made", "all Pods made, s"),
    ("available", "all available, s"),
    ("settled", "resident, settled, MB"),
    ("processor", "processor time until then, s"),
    ("idle", "idle, % of a core"),
    ("writes", "idle, writes a minute"),
];

pub(super) fn run(args: &Args, built: Option<&Path>) -> Result<()> {
    if args.deployments == 0 || args.idle == 0 || args.rounds == 0 {
        bail!("--deployments, --idle and --rounds must be at least 1");
    }
    let programs = program::build(built, &["--package", "windlass-bench", "--package", "windlass-cli"])?;
    let (mut ours, mut real) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        anstream::println!("round {round} of {}", args.rounds);
        let report = measure_ours(args, &programs)?;
        anstream::println!("  windlass cluster up: {report}");
        ours.push(report);
        if !args.alone {
            let report = measure_real(args, &programs)?;
            anstream::println!("  real control plane: {report}");
            real.push(report);
        }
    }
    print(args, &ours, &real);
    Ok(())
}

fn print(args: &Args, ours: &[Value], real: &[Value]) {
    let spread = |reports: &[Value], field: &str| {
        Spread::of(reports.iter().filter_map(|report| report[field].as_f64()).collect())
    };
    let row = |&(field, title)| (title, vec![spread(ours, field), spread(real, field)]);
    let rows: Vec<_> = ROWS.iter().map(row).collect();
    anstream::println!("\n{} Deployments of 3 replicas, median of {}", args.deployments, args.rounds);
    table::print(&["windlass cluster up", "etcd, kube-apiserver, controllers, scheduler"], &rows);
}

fn measure_ours(args: &Args, programs: &Path) -> Result<Value> {
    let folder = std::env::temp_dir().join(format!("windlass-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let load = Load { programs: programs.into(), kubeconfig: folder.join("kubeconfig") };
    let mut command = Command::new(programs.join("windlass"));
    command.args(["cluster", "up", "--kubeconfig"]).arg(&load.kubeconfig).stdout(Stdio::null());
    if args.disk {
        command.arg("--data-dir").arg(folder.join("data"));
    }
    let outcome = (|| {
        let waiting = load.await_ready()?;
        let begin = Instant::now();
        let cluster = Running::start(&mut command)?;
        let ready = waiting.milliseconds(begin)?;
        measure(args, &load, ready, "deploy", &[cluster.pid()])
    })();
    fs::remove_dir_all(folder)?;
    outcome
}

fn measure_real(args: &Args, programs: &Path) -> Result<Value> {
    let begin = Instant::now();
    let server = ApiServer::start_with_controllers("bench-cluster")?;
    let ready = begin.elapsed().as_secs_f64() * 1000.0;
    let load = Load { programs: programs.into(), kubeconfig: server.kubeconfig()? };
    measure(args, &load, ready, "pods", &server.processes()?)
}

fn measure(args: &Args, load: &Load, ready: f64, phase: &str, processes: &[i32]) -> Result<Value> {
    let used = || processes.iter().map(|pid| processor_seconds(*pid)).sum::<Result<f64>>();
    std::thread::sleep(Duration::from_secs(2));
    let (empty, start) = (resident(processes)?, used()?);
    let deploy = load.run(&[&format!("{phase}={}", args.deployments)])?;
    let processor = used()? - start;
    // The last events and endpoints still come after the last Deployment is through.
    std::thread::sleep(Duration::from_secs(10));
    let settled = resident(processes)?;
    let revision =
        || -> Result<f64> { load.run(&["revision"])?[0]["revision"].as_f64().context("no revision") };
    let (before, at) = (used()?, revision()?);
    std::thread::sleep(Duration::from_secs(args.idle));
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = args.idle as f64;
    let idle = 100.0 * (used()? - before) / seconds;
    Ok(json!({
        "ready": ready, "empty": empty, "created": deploy[0]["created_seconds"], "made": deploy[0]["made_seconds"],
        "available": deploy[0]["available_seconds"], "settled": settled, "processor": processor, "idle": idle,
        "writes": (revision()? - at) * 60.0 / seconds,
    }))
}
