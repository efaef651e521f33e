//! An operator process that ends with its test, and what it wrote.

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

pub struct Operator {
    child: Child,
    lines: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Operator {
    /// Starts the operator with these arguments, in an otherwise empty environment.
    pub fn start(kubeconfig: &Path, worker: &str, args: &[&str]) -> Self {
        Self::start_with(kubeconfig, worker, args, &[])
    }

    /// The same, with these variables in it.
    pub fn start_with(kubeconfig: &Path, worker: &str, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .arg("operator")
            .args(args)
            .env_clear()
            .envs(variables.iter().copied())
            .env("KUBECONFIG", kubeconfig)
            .env("WORKER", worker)
            .env("POD_NAME", worker)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (lines, output) = (Arc::new(Mutex::new(Vec::new())), child.stderr.take().unwrap());
        let seen = Arc::clone(&lines);
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                seen.lock().unwrap().push((Instant::now(), line));
            }
        });
        Self { child, lines }
    }

    /// Runs the operator to its end, which must come by itself.
    pub fn run(kubeconfig: &Path, args: &[&str]) -> (ExitStatus, String) {
        let mut operator = Self::start(kubeconfig, "", args);
        let status = operator.ended(Duration::from_mins(1));
        (status, operator.output())
    }

    pub fn output(&self) -> String {
        let lines: Vec<String> = self.lines.lock().unwrap().iter().map(|(_, line)| line.clone()).collect();
        lines.join("\n")
    }

    /// How many lines have this text.
    pub fn count(&self, text: &str) -> usize {
        self.lines.lock().unwrap().iter().filter(|(_, line)| line.contains(text)).count()
    }

    /// When a line with this text was written, once it was.
    pub fn wrote(&self, text: &str, within: Duration) -> Instant {
        self.found(text, within).0
    }

    /// The first line with this text, once it was written.
    pub fn line(&self, text: &str, within: Duration) -> String {
        self.found(text, within).1
    }

    fn found(&self, text: &str, within: Duration) -> (Instant, String) {
        let deadline = Instant::now() + within;
        loop {
            let found = self.lines.lock().unwrap().iter().find(|(_, line)| line.contains(text)).cloned();
            match found {
                Some(at) => return at,
                None if Instant::now() > deadline => panic!("{text:?} was not written:\n{}", self.output()),
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Waits for the end of the process.
    pub fn ended(&mut self, within: Duration) -> ExitStatus {
        let deadline = Instant::now() + within;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The reader is a moment behind.
                std::thread::sleep(Duration::from_millis(50));
                return status;
            }
            assert!(Instant::now() < deadline, "still running:\n{}", self.output());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Ends it without asking.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
