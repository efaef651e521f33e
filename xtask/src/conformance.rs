//! `conformance`: Kubernetes' own end-to-end suite against the embedded cluster.
//!
//! Enters a choice of specs; leave a summary and an exit code that says whether every spec that is known to pass
//! (`xtask/conformance/passing.txt`) still does. That list only grows: `--record` adds what passes now. Specs that
//! need real containers are not on it; they are run and fail, like any other, unless a choice leaves them out. The
//! rooms: `suite` (the program and its specs), `lists` (what is known), `cluster` (what is tested), `spec` (one
//! spec's run), `schedule` (all of them), `summary` (what a person reads).

mod cluster;
mod lists;
mod schedule;
mod spec;
mod suite;
mod summary;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args as ClapArgs;
use regex::Regex;

use cluster::Cluster;
use lists::Lists;
use suite::Suite;

#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Only specs whose name matches
    #[arg(long, value_name = "REGEX")]
    focus: Option<Regex>,
    /// Only specs of this special interest group, such as api-machinery
    #[arg(long, value_name = "NAME")]
    sig: Option<String>,
    /// Only specs that are known to pass
    #[arg(long, conflicts_with_all = ["ci", "failing"])]
    passing: bool,
    /// Only specs that are not known to pass
    #[arg(long, conflicts_with = "ci")]
    failing: bool,
    /// Only the part of the known ones that CI runs
    #[arg(long)]
    ci: bool,
    /// Print the chosen specs, those that are known to pass with a mark, and run none
    #[arg(long)]
    list: bool,
    /// Go on after a spec has failed that is known to pass
    #[arg(long)]
    keep_going: bool,
    /// Add what passes now to the list of what is known to pass
    #[arg(long)]
    record: bool,
    /// Run on the cluster of this kubeconfig, in place of an embedded one
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// How many specs run at the same time; those that change the whole cluster run alone
    #[arg(long, value_name = "COUNT", default_value_t = 6)]
    jobs: usize,
    /// How long a spec may take, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 420)]
    spec_limit: u64,
    /// How long all of it may take, in minutes
    #[arg(long, value_name = "MINUTES", default_value_t = 120)]
    limit: u64,
}

impl Args {
    fn wants(&self, lists: &Lists, spec: &str) -> bool {
        let known = lists.passing.contains(spec);
        self.focus.as_ref().is_none_or(|focus| focus.is_match(spec))
            && self.sig.as_ref().is_none_or(|sig| suite::sig(spec) == sig.trim_start_matches("sig-"))
            && (!self.passing || known)
            && (!self.failing || !known)
            && (!self.ci || lists.ci.contains(spec))
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    ensure!(args.jobs > 0 && args.spec_limit > 0 && args.limit > 0, "a limit must be at least 1");
    let suite = Suite::build()?;
    let mut lists = Lists::read()?;
    let specs = suite.specs()?;
    lists.check(&specs)?;
    let chosen: Vec<String> = specs.into_iter().filter(|spec| args.wants(&lists, spec)).collect();
    ensure!(!chosen.is_empty(), "no conformance spec matches: `cargo xtask conformance --list` shows all");
    if args.list {
        summary::list(&chosen, &lists);
        return Ok(ExitCode::SUCCESS);
    }
    let cluster = match &args.kubeconfig {
        Some(file) => Cluster::at(file)?,
        None => Cluster::start()?,
    };
    let plan = schedule::Plan {
        jobs: args.jobs,
        spec_limit: Duration::from_secs(args.spec_limit),
        limit: Duration::from_secs(args.limit * 60),
        keep_going: args.keep_going,
    };
    let results = schedule::run(&suite, &cluster, &lists, chosen, &plan);
    drop(cluster);
    let fine = summary::print(&results, &lists);
    if args.record {
        let added = lists.record(&results)?;
        anstream::println!("added {added} to {}", lists::PASSING);
    }
    Ok(if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
