//! The order of a run: several specs at a time, then one by one those that must be alone.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::lists::Lists;
use super::spec::{self, Outcome, Run};
use super::suite::{self, Suite};
use super::summary;

/// How a run is to be done.
pub(super) struct Plan {
    pub(super) jobs: usize,
    pub(super) spec_limit: Duration,
    pub(super) limit: Duration,
    /// Whether a listed spec that fails ends the run.
    pub(super) keep_going: bool,
}

/// Runs the specs; what each came to, in the order of their names.
pub(super) fn run(
    suite: &Suite,
    cluster: &Cluster,
    lists: &Lists,
    specs: Vec<String>,
    plan: &Plan,
) -> Vec<Run> {
    let (alone, together): (Vec<_>, Vec<_>) = specs.into_iter().partition(|spec| suite::is_serial(spec));
    let turn = Turn {
        suite,
        cluster,
        lists,
        plan,
        end: Instant::now() + plan.limit,
        stopped: AtomicBool::new(false),
        total: alone.len() + together.len(),
        done: Mutex::new(Vec::new()),
    };
    turn.all(&together, plan.jobs);
    turn.all(&alone, 1);
    let mut runs = turn.done.into_inner().expect("no worker must have panicked");
    runs.sort_by(|one, other| one.spec.cmp(&other.spec));
    runs
}

/// What the workers share.
struct Turn<'a> {
    suite: &'a Suite,
    cluster: &'a Cluster,
    lists: &'a Lists,
    plan: &'a Plan,
    end: Instant,
    stopped: AtomicBool,
    total: usize,
    done: Mutex<Vec<Run>>,
}

impl Turn<'_> {
    fn all(&self, specs: &[String], jobs: usize) {
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..jobs.min(specs.len()) {
                scope.spawn(|| {
                    while let Some(spec) = specs.get(next.fetch_add(1, Ordering::Relaxed)) {
                        self.note(self.one(spec));
                    }
                });
            }
        });
    }

    fn one(&self, spec: &str) -> Run {
        let log = logs().join(file_name(spec));
        if self.stopped.load(Ordering::Relaxed) || Instant::now() >= self.end {
            return Run { spec: spec.to_owned(), outcome: Outcome::NotRun, time: Duration::ZERO, log };
        }
        let limit = self.plan.spec_limit;
        let command = self.suite.command(spec, self.cluster.kubeconfig(), limit);
        spec::run(spec, command, log, limit)
    }

    fn note(&self, run: Run) {
        let regressed = matches!(run.outcome, Outcome::Failed(_)) && self.lists.passing.contains(&run.spec);
        if regressed && !self.plan.keep_going {
            self.stopped.store(true, Ordering::Relaxed);
        }
        let mut done = self.done.lock().expect("no worker must have panicked");
        summary::progress(done.len() + 1, self.total, &run);
        done.push(run);
    }
}

/// Where the output of each spec is kept.
fn logs() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || {
            Path::new(env!("CARGO_MANIFEST_DIR"))
                .parent()
                .expect("xtask must lie in the workspace")
                .join("target")
        },
        PathBuf::from,
    );
    let folder = target.join("conformance");
    // A folder that is missing shows when the first file is created in it.
    let _ = fs_err::create_dir_all(&folder);
    folder
}

/// A spec's name as that of a file.
fn file_name(spec: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = spec.trim_end_matches(" [Conformance]").chars().map(plain).collect();
    let end = name.len().min(200);
    format!("{}.log", &name[..end])
}
