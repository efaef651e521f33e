//! A command that is told to stop while something does not let it.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use clap::Parser;
use rustix::process::{Pid, Signal, kill_process};
use tokio::runtime::Handle;

use super::{block_on, cluster};
use crate::{
    args::{Cli, ClusterCommand, ClusterGroup, Command as Parsed},
    printer::Printer,
};

/// Where the process that a test starts of itself finds its kubeconfig.
const STUCK: &str = "WINDLASS_TEST_STUCK";

/// As long as anybody would wait.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A cluster, all of whose threads are taken by work that never ends, as a request can be that spins.
fn stuck(kubeconfig: &Path) -> ! {
    let arguments = ["windlass", "cluster", "up", "--kubeconfig", kubeconfig.to_str().unwrap()];
    let cli = Cli::parse_from(arguments);
    let Parsed::Cluster(ClusterGroup { command: ClusterCommand::Up(args) }) = cli.command else {
        panic!("{arguments:?}")
    };
    let result = block_on(async {
        let (runtime, written) = (Handle::current(), kubeconfig.to_owned());
        std::thread::spawn(move || {
            until(|| written.exists());
            take_all_threads(&runtime);
        });
        cluster::up(&args, 0, Printer::new(true)).await
    });
    std::process::exit(result.err().map_or(0, |error| {
        println!("{error}");
        2
    }))
}

/// One after the other, so that each takes a thread of its own.
fn take_all_threads(runtime: &Handle) {
    let taken = Arc::new(AtomicUsize::new(0));
    for count in 1..=runtime.metrics().num_workers() {
        let taking = Arc::clone(&taken);
        runtime.spawn(async move {
            taking.fetch_add(1, Ordering::SeqCst);
            loop {
                std::thread::sleep(TIMEOUT);
            }
        });
        until(|| taken.load(Ordering::SeqCst) == count);
    }
    println!("all threads are taken");
}

fn until(reached: impl Fn() -> bool) {
    while !reached() {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Killed if a test fails.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Process {
    fn ended(&mut self) -> Option<i32> {
        let begin = Instant::now();
        while begin.elapsed() < TIMEOUT {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it never ended");
    }
}

#[test]
fn a_cluster_whose_requests_never_end_ends_when_it_is_told_to() {
    if let Some(kubeconfig) = std::env::var_os(STUCK) {
        stuck(Path::new(&kubeconfig));
    }
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("kubeconfig");
    let name = "commands::tests::a_cluster_whose_requests_never_end_ends_when_it_is_told_to";
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(STUCK, &kubeconfig).stdout(Stdio::piped());
    let mut process = Process(command.spawn().unwrap());
    let mut lines = BufReader::new(process.0.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("all threads are taken")), "it must come to be stuck");
    assert!(kubeconfig.exists());

    kill_process(Pid::from_child(&process.0), Signal::TERM).unwrap();
    assert_eq!(process.ended(), Some(2));
    assert!(lines.any(|line| line.contains("failed to stop within 10 s")), "it must say so");
    assert!(!kubeconfig.exists(), "the kubeconfig goes with its cluster");
}
