//! What the tutorial is executed in: an empty home, the `windlass` of this build, terminals, and what runs in the
//! background. Everything that was started is ended with it.

use std::{
    collections::BTreeMap,
    env, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::{
    expected,
    terminal::{Terminal, commands},
};

/// How long a program in the background may take to get ready: it may have to be compiled first.
const COMPILED: Duration = Duration::from_mins(30);
/// How long a cluster may take to become what a page shows, and a program to end.
const SETTLED: Duration = Duration::from_mins(2);

pub(crate) struct World {
    root: TempDir,
    environment: Vec<(String, String)>,
    terminals: BTreeMap<String, Terminal>,
    background: BTreeMap<String, Child>,
    /// What the last block printed.
    output: String,
}

impl World {
    pub(crate) fn new(repository: &Path) -> Self {
        let root = tempfile::Builder::new().prefix("windlass-tutorial-").tempdir().unwrap();
        for folder in ["bin", "home", "work", "state"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let bin = root.path().join("bin");
        symlink(env!("CARGO_BIN_EXE_windlass"), bin.join("windlass")).unwrap();
        if let Some(kubectl) = kubectl() {
            symlink(kubectl, bin.join("kubectl")).unwrap();
        }
        let environment = environment(repository, root.path());
        let world = Self {
            root,
            environment,
            terminals: BTreeMap::new(),
            background: BTreeMap::new(),
            output: String::new(),
        };
        eprintln!("in {}", world.root.path().display());
        world
    }

    /// Where a terminal is.
    pub(crate) fn folder(&mut self, terminal: &str) -> PathBuf {
        self.terminal(terminal).folder()
    }

    fn terminal(&mut self, name: &str) -> &Terminal {
        let root = self.root.path();
        // A new terminal opens where the first one is.
        let folder = self.terminals.get("first").map_or_else(|| root.join("work"), Terminal::folder);
        let open = || Terminal::open(root.join("state").join(name), &folder, &self.environment);
        self.terminals.entry(name.to_owned()).or_insert_with(open)
    }

    /// Runs one command; whether it succeeded, with its output added to that of the block.
    fn command(&mut self, place: &str, terminal: &str, command: &str) -> bool {
        let log = self.root.path().join("state/output");
        let _ = fs::remove_file(&log);
        let begin = Instant::now();
        let status = self.terminal(terminal).run(command, &log);
        eprintln!("{place}: [{:6.1} s] $ {command}", begin.elapsed().as_secs_f64());
        let printed = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        self.output.push_str(&self.shown(&printed));
        status.success()
    }

    /// What was printed, with this world's folder under the name that the pages have for it.
    fn shown(&self, printed: &str) -> String {
        printed.replace(&*self.root.path().join("work").to_string_lossy(), "/home/you")
    }

    pub(crate) fn run(&mut self, place: &str, terminal: &str, text: &str) {
        self.output.clear();
        for command in commands(text) {
            let succeeded = self.command(place, terminal, &command);
            assert!(succeeded, "{place}: failed: {command}\n{}", self.output);
        }
    }

    pub(crate) fn fails(&mut self, place: &str, terminal: &str, text: &str) {
        self.output.clear();
        for command in commands(text) {
            let succeeded = self.command(place, terminal, &command);
            assert!(!succeeded, "{place}: should have failed: {command}\n{}", self.output);
        }
    }

    pub(crate) fn until(&mut self, place: &str, terminal: &str, text: &str, shown: &str) {
        let begin = Instant::now();
        loop {
            self.output.clear();
            let all = commands(text);
            let succeeded = all.iter().all(|command| self.command(place, terminal, command));
            if succeeded && expected::mismatch(shown, &self.output).is_none() {
                return;
            }
            if begin.elapsed() > SETTLED {
                return self.expect(place, shown);
            }
            sleep(Duration::from_secs(1));
        }
    }

    pub(crate) fn expect(&self, place: &str, shown: &str) {
        if let Some(line) = expected::mismatch(shown, &self.output) {
            panic!("{place}: {line:?} is not where it is shown; printed:\n{}", self.output);
        }
    }

    pub(crate) fn start(&mut self, place: &str, name: &str, terminal: &str, text: &str, awaited: &str) {
        let log = self.log(name);
        let mut commands = commands(text);
        let last = commands.pop().expect("a background block must have a command");
        self.output.clear();
        for command in commands {
            assert!(self.command(place, terminal, &command), "{place}: failed: {command}\n{}", self.output);
        }
        let begin = Instant::now();
        let child = self.terminal(terminal).start(&last, &log);
        self.background.insert(name.to_owned(), child);
        loop {
            let printed = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
            self.output = self.shown(&printed);
            if self.output.contains(awaited) {
                break;
            }
            let child = self.background.get_mut(name).unwrap();
            let ended = child.try_wait().unwrap();
            let late = begin.elapsed() > COMPILED;
            assert!(ended.is_none() && !late, "{place}: {awaited:?} never came from {last}\n{printed}");
            sleep(Duration::from_millis(200));
        }
        eprintln!("{place}: [{:6.1} s] $ {last} &", begin.elapsed().as_secs_f64());
    }

    fn log(&self, name: &str) -> PathBuf {
        self.root.path().join("state").join(format!("{name}.log"))
    }

    /// Ctrl-C, which reaches everything that the terminal runs.
    pub(crate) fn interrupt(&mut self, place: &str, name: &str) {
        let mut child =
            self.background.remove(name).unwrap_or_else(|| panic!("{place}: {name} does not run"));
        kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
        let begin = Instant::now();
        while child.try_wait().unwrap().is_none() {
            let printed = || fs::read_to_string(self.log(name)).unwrap_or_default();
            if begin.elapsed() > SETTLED {
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                panic!("{place}: {name} did not end:\n{}", printed());
            }
            sleep(Duration::from_millis(100));
        }
        eprintln!("{place}: interrupted {name}");
    }

    /// The end of the pages: a reader must have been told how to end what they started.
    pub(crate) fn end(self) {
        let running: Vec<&String> = self.background.keys().collect();
        assert!(running.is_empty(), "the pages start what they never end: {running:?}");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for child in self.background.values_mut() {
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
        }
        // A cluster in the background is nobody's child. Most often there is none any more, which it says.
        let mut down = Command::new(env!("CARGO_BIN_EXE_windlass"));
        let down =
            down.args(["cluster", "down"]).envs(self.environment.iter().map(|(key, value)| (key, value)));
        let _ = down.stderr(Stdio::null()).status();
    }
}

/// The kubectl of this machine, or the one that the testbed has built.
fn kubectl() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    if env::split_paths(&path).any(|folder| folder.join("kubectl").is_file()) {
        return None;
    }
    let home = PathBuf::from(env::var_os("HOME").expect("HOME must be set"));
    let cache = env::var_os("XDG_CACHE_HOME").map_or_else(|| home.join(".cache"), PathBuf::from);
    let built = newest(&cache.join("windlass/kubernetes"));
    Some(built.expect("kubectl must be in PATH, or built by `cargo xtask kubernetes build`"))
}

/// A `kubectl` below a folder.
fn newest(folder: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries
        .filter_map(
            |path| {
                if path.is_dir() { newest(&path) } else { path.ends_with("kubectl").then_some(path) }
            },
        )
        .collect();
    found.sort();
    found.pop()
}

/// The home is empty, so that no cluster of the person who runs the test is met; cargo keeps what it has.
fn environment(repository: &Path, root: &Path) -> Vec<(String, String)> {
    let home = PathBuf::from(env::var_os("HOME").expect("HOME must be set"));
    let kept =
        |key: &str, folder: &str| env::var(key).unwrap_or_else(|_| home.join(folder).display().to_string());
    // The target folder of this workspace: what the project and the workspace build the same way is there already.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let path = env::var("PATH").unwrap_or_default();
    let pairs = [
        ("CARGO_HOME", kept("CARGO_HOME", ".cargo")),
        ("RUSTUP_HOME", kept("RUSTUP_HOME", ".rustup")),
        ("HOME", root.join("home").display().to_string()),
        ("WINDLASS_HOME", root.join("home/windlass").display().to_string()),
        ("KUBECONFIG", root.join("home/.kube/config").display().to_string()),
        ("PATH", format!("{}:{path}", root.join("bin").display())),
        ("WINDLASS_SDK", repository.display().to_string()),
        ("CARGO_TARGET_DIR", target.display().to_string()),
        ("CARGO_NET_OFFLINE", "true".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("CARGO_TERM_COLOR", "never".to_owned()),
    ];
    pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}
