//! `bench cluster`: the embedded cluster with its controllers and its simulated node.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use fs_err as fs;
use serde_json::{Value, json};

use super::program::{self, Load, Running, processor_seconds, resident};
use super::table::{self, Spread};

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
}

const ROWS: [(&str, &str); 8] = [
    ("ready", "ready, ms"),
    ("empty", "resident, no objects, MB"),
    ("created", "Deployments created, s"),
    ("available", "all available, s"),
    ("settled", "resident, settled, MB"),
    ("processor", "processor time until then, s"),
    ("idle", "idle, % of a core"),
    ("writes", "idle, writes a minute"),
];

pub(super) fn run(args: &Args) -> Result<()> {
    if args.deployments == 0 || args.idle == 0 || args.rounds == 0 {
        bail!("--deployments, --idle and --rounds must be at least 1");
    }
    let programs = program::build(&["--package", "windlass-bench", "--package", "windlass-cli"])?;
    let mut reports = Vec::new();
    for _ in 0..args.rounds {
        let folder = std::env::temp_dir().join(format!("windlass-bench-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let load = Load { programs: programs.clone(), kubeconfig: folder.join("kubeconfig") };
        let mut command = Command::new(programs.join("windlass"));
        command.args(["cluster", "up", "--kubeconfig"]).arg(&load.kubeconfig).stdout(Stdio::null());
        if args.disk {
            command.arg("--data-dir").arg(folder.join("data"));
        }
        let report = measure(args, &load, &mut command);
        fs::remove_dir_all(folder)?;
        let report = report?;
        anstream::println!("{report}");
        reports.push(report);
    }
    let rows: Vec<_> = ROWS
        .iter()
        .map(|&(field, title)| {
            let figures = reports.iter().filter_map(|report| report[field].as_f64()).collect();
            (title, vec![Spread::of(figures)])
        })
        .collect();
    anstream::println!("\n{} Deployments of 3 replicas, median of {}", args.deployments, args.rounds);
    table::print(&["windlass cluster up"], &rows);
    Ok(())
}

fn measure(args: &Args, load: &Load, command: &mut Command) -> Result<Value> {
    let waiting = load.await_ready()?;
    let begin = Instant::now();
    let cluster = Running::start(command)?;
    let ready = waiting.milliseconds(begin)?;
    std::thread::sleep(Duration::from_secs(2));
    let empty = resident(&[cluster.pid()])?;
    let deploy = load.run(&[&format!("deploy={}", args.deployments)])?;
    let processor = processor_seconds(cluster.pid())?;
    // The last events and endpoints still come after the last Deployment is available.
    std::thread::sleep(Duration::from_secs(10));
    let settled = resident(&[cluster.pid()])?;
    let revision =
        || -> Result<f64> { load.run(&["revision"])?[0]["revision"].as_f64().context("no revision") };
    let (before, at) = (processor_seconds(cluster.pid())?, revision()?);
    std::thread::sleep(Duration::from_secs(args.idle));
    let used = processor_seconds(cluster.pid())? - before;
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = args.idle as f64;
    Ok(json!({
        "ready": ready, "empty": empty, "created": deploy[0]["created_seconds"], "available": deploy[0]["available_seconds"],
        "settled": settled, "processor": processor, "idle": 100.0 * used / seconds,
        "writes": (revision()? - at) * 60.0 / seconds,
    }))
}
