//! `windlass dev`, from the first line to Ctrl-C.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Stdio},
    sync::mpsc,
    time::Duration,
};

use crate::command::windlass;

const TIMEOUT: Duration = Duration::from_mins(1);

/// A running `windlass`, killed if a test fails.
pub(crate) struct Running {
    child: Child,
    lines: mpsc::Receiver<String>,
    seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_with(folder, arguments, &[])
    }

    pub(crate) fn start_with(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = windlass();
        command.envs(environment.iter().copied());
        command.args(arguments).current_dir(folder).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || stdout.lines().try_for_each(|line| sender.send(line.unwrap())));
        Self { child, lines, seen: Vec::new() }
    }

    /// Reads until a line contains some text.
    pub(crate) fn wait_for(&mut self, text: &str) -> String {
        loop {
            let Ok(line) = self.lines.recv_timeout(TIMEOUT) else {
                panic!("{text:?} never came; seen: {:#?}", self.seen);
            };
            self.seen.push(line.clone());
            if line.contains(text) {
                return line;
            }
        }
    }

    /// What was read so far.
    pub(crate) fn seen(&self) -> &[String] {
        &self.seen
    }

    /// As `kill -9` does.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn ended(mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }

    /// As Ctrl-C does. Windows has no way to send it to another process alone.
    #[cfg(unix)]
    pub(crate) fn interrupt(&self) {
        use rustix::process::{Pid, Signal, kill_process};
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn dev_brings_the_sample_to_ready_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join(".windlass/kubeconfig");
    let mut dev = Running::start(folder.path(), &["dev"]);
    dev.wait_for("https://127.0.0.1:");
    dev.wait_for("crds");
    let export = dev.wait_for("export KUBECONFIG=");
    assert!(export.ends_with(".windlass/kubeconfig"), "{export}");
    let permissions = std::fs::metadata(&kubeconfig).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&permissions) & 0o777, 0o600, "it holds a key");
    dev.wait_for("webserver-sample  Ready 3/3");
    assert!(dev.seen.iter().all(|line| !line.contains('\u{1b}')), "no colours in a pipe: {:#?}", dev.seen);

    dev.interrupt();
    dev.wait_for("stopped");
    assert_eq!(dev.child.wait().unwrap().code(), Some(0));
    assert!(!kubeconfig.exists(), "the kubeconfig goes with its cluster");
}

#[cfg(unix)]
#[test]
fn a_cluster_alone_has_a_node_and_ends_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(folder.path(), &["cluster", "up", "--kubeconfig", "here"]);
    cluster.wait_for("https://127.0.0.1:");
    cluster.wait_for("kubectl get nodes");
    assert!(folder.path().join("here").exists());
    cluster.interrupt();
    cluster.wait_for("stopped");
    assert_eq!(cluster.child.wait().unwrap().code(), Some(0));
}

#[cfg(unix)]
#[test]
fn operators_run_on_a_cluster_that_somebody_else_started() {
    let folder = tempfile::tempdir().unwrap();
    let mut cluster = Running::start(folder.path(), &["cluster", "up", "--kubeconfig", "here"]);
    cluster.wait_for("kubectl get nodes");
    let arguments =
        ["operators", "run", "--kubeconfig", "here", "--only", "podmanager,webserver", "--samples"];
    let mut operators = Running::start(folder.path(), &arguments);
    operators.wait_for("podmanagers.apps.mycompany.com");
    operators.wait_for("Ready 3/3");
    operators.wait_for("Ready 3/3");
    operators.interrupt();
    operators.wait_for("stopped");
    assert_eq!(operators.child.wait().unwrap().code(), Some(0));
    cluster.interrupt();
    cluster.wait_for("stopped");
}
