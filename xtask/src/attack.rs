//! `cargo xtask attack`: what somebody might do to the control plane, done to the built binary on loopback.
//!
//! Every attack has a server of its own: `windlass cluster up` with a data directory, on a free port, ended by its
//! process id. While it runs, a bystander asks for an object that has nothing to do with it. What enters is a program;
//! what leaves is a table (what held, memory, processor time, the bystander's worst answer) and an exit code.
//!
//! Times are printed always and judged only in an optimised build: a machine that is busy must not fail the attack. What
//! is judged everywhere is that the server lives, stays within its memory, refuses what it must refuse, and that the
//! bystander is answered.

mod bystander;
mod client;
mod objects;
mod rows;
mod server;
mod table;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use serde_json::json;

use self::{
    bystander::Bystander,
    client::{Api, Connection},
    rows::Row,
    server::{Place, Server},
    table::{Line, Outcome},
};
use crate::kubernetes;

/// How long one attack may take, the start of its server aside.
const TIMEOUT: Duration = Duration::from_mins(2);

/// How long the bystander is watched before the attack begins.
const CALM: Duration = Duration::from_millis(500);

/// The p99 of a bystander's GET that is aimed at in an optimised build.
const GOAL: Duration = Duration::from_millis(50);

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// A part of the attacks with less of everything, in less than two minutes
    #[arg(long)]
    quick: bool,
    /// The profile that windlass is built with
    #[arg(long, default_value = "dev")]
    profile: String,
    /// Attack this program in place of the one of this checkout; times are judged unless it lies in a folder `debug`
    #[arg(long, alias = "program", value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Only the attacks whose name contains this
    #[arg(value_name = "NAME")]
    only: Option<String>,
}

/// The account of an attacker: it may do everything that can be granted, and is no member of `system:masters`.
const ATTACKER: &str = "mallory";

/// Somebody else with an ordinary account.
const BYSTANDER: &str = "bob";

/// What an attack has to work with.
struct Stage {
    server: Server,
    /// Less of everything.
    quick: bool,
    /// Megabytes in memory before the attack; what was stored for it is not counted.
    before: f64,
}

impl Stage {
    /// `full`, or `quick` where there is little time.
    fn scale(&self, quick: usize, full: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// A connection of the attacker.
    async fn attacker(&self) -> Result<Connection> {
        self.server.api().user(ATTACKER).await
    }

    /// What is in memory from here on is above what is stored.
    fn stored(&mut self) -> Result<()> {
        self.server.forget_peak()?;
        self.before = self.server.resident()?;
        Ok(())
    }
}

/// Makes the two accounts.
async fn enrol(api: &Api) -> Result<()> {
    let mut admin = api.admin().await?;
    let everything = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
    let little = json!([{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]}]);
    for (user, rules) in [(ATTACKER, everything), (BYSTANDER, little)] {
        let role = format!("attack-{user}");
        let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
        admin.post(roles, &objects::cluster_role(&role, &rules)).await?.succeed()?;
        let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
        admin.post(bindings, &objects::binding(&role, user)).await?.succeed()?;
    }
    Ok(())
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let program = match &args.binary {
        Some(program) => fs_err::canonicalize(program)?,
        None => build(&args.profile)?,
    };
    server::raise_file_limit()?;
    let wanted = |row: &&Row| {
        (row.quick || !args.quick || args.only.is_some())
            && args.only.as_ref().is_none_or(|part| row.name.contains(part.as_str()))
    };
    let rows: Vec<&Row> = rows::ALL.iter().filter(wanted).collect();
    if rows.is_empty() {
        bail!("no attack has such a name; there are: {}", rows::names());
    }
    let optimised = program.parent().and_then(Path::file_name).is_none_or(|folder| folder != "debug");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let begin = Instant::now();
    let mut lines = Vec::new();
    for row in rows {
        anstream::println!("{} …", row.name);
        let line = runtime.block_on(attack(row, &program, args.quick, optimised));
        if let Outcome::Failed(why) = &line.outcome {
            anstream::println!("  failed: {why}");
        }
        lines.push(line);
    }
    // Connections that an attack left behind must not keep the process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    table::print(&lines);
    let failed = lines.iter().filter(|line| matches!(line.outcome, Outcome::Failed(_))).count();
    let seconds = begin.elapsed().as_secs();
    anstream::println!("\nattack: {} held, {failed} failed, in {seconds} s", lines.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn build(profile: &str) -> Result<PathBuf> {
    let built =
        kubernetes::cargo().args(["build", "--package", "windlass-cli", "--profile", profile]).status();
    if !built.context("failed to start `cargo build`")?.success() {
        bail!("failed to build windlass");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask must lie in the workspace")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(target.join(if profile == "dev" { "debug" } else { profile }).join("windlass"))
}

/// Plays one attack on a server of its own.
async fn attack(row: &Row, program: &Path, quick: bool, optimised: bool) -> Line {
    let place = if row.small_disk { Place::SmallDisk } else { Place::Disk };
    let mut line = Line::new(row.name);
    let server = match Server::start(program, place) {
        Ok(server) => server,
        Err(error) => return line.failed(format!("{error:#}")),
    };
    let mut stage = Stage { server, quick, before: 0.0 };
    match play(row, &mut stage, &mut line, optimised).await {
        Ok(held) => line.held(held),
        Err(error) => {
            let log = stage.server.last_words();
            line.failed(format!("{error:#}{log}"))
        }
    }
}

async fn play(row: &Row, stage: &mut Stage, line: &mut Line, optimised: bool) -> Result<String> {
    enrol(stage.server.api()).await?;
    let bystander = Bystander::start(stage.server.api().clone());
    tokio::time::sleep(CALM).await;
    let calm = bystander.turn();
    stage.stored()?;
    let processor = stage.server.processor_seconds()?;
    let pid = stage.server.pid();
    let played = tokio::time::timeout(TIMEOUT, (row.play)(stage)).await;
    let attacked = bystander.stop();
    line.calm = calm.p99();
    line.bystander = attacked.p99();
    line.worst = attacked.worst();
    line.memory_before = stage.before;
    // A server that was started anew has figures of its own.
    if stage.server.pid() == pid && stage.server.is_alive() {
        line.memory_peak = stage.server.peak()?;
        line.processor = stage.server.processor_seconds()? - processor;
    }
    let held = match played {
        Ok(outcome) => outcome?,
        Err(_) => bail!("it did not end within {} s", TIMEOUT.as_secs()),
    };
    if !stage.server.is_alive() && !row.ends_server {
        bail!("the server has ended");
    }
    if stage.server.has_panicked()? {
        bail!("something panicked");
    }
    let grown = line.memory_peak - stage.before;
    if grown > row.megabytes {
        bail!("it grew by {grown:.0} MB, more than {:.0} MB", row.megabytes);
    }
    if attacked.unanswered() > 0 && !row.ends_server {
        bail!(
            "{} requests of a bystander were not answered within {} s",
            attacked.unanswered(),
            bystander::TIMEOUT.as_secs()
        );
    }
    let generous = GOAL.max(line.calm * 10);
    if optimised && line.bystander > generous && !row.ends_server {
        bail!("a bystander's p99 was {} ms", line.bystander.as_millis());
    }
    Ok(held)
}
