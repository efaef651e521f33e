//! An author at work: a project, its files, and commands that run in it.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Mutex, MutexGuard, PoisonError, mpsc},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use windlass::kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

/// A build takes minutes on a machine that has built nothing yet.
pub(crate) const TIMEOUT: Duration = Duration::from_mins(4);

/// One author at a time.
static DESK: Mutex<()> = Mutex::new(());

const LIBRARY: &str = include_str!("greeting/lib.rs");
const MAIN: &str = include_str!("greeting/main.rs");
const SAMPLE: &str =
    "apiVersion: example.com/v1\nkind: Greeting\nmetadata:\n  name: hello\nspec:\n  text: hello\n";
const PROJECT: &str = "version: \"3\"\nlayout:\n- windlass.dev/v1\nprojectName: greeting\ndomain: example.com\ncliVersion: 0.1.0\n";

pub(crate) struct Author {
    pub(crate) root: PathBuf,
    home: tempfile::TempDir,
    _desk: MutexGuard<'static, ()>,
}

impl Author {
    /// The project as it was in the beginning.
    pub(crate) fn new() -> Self {
        let desk = DESK.lock().unwrap_or_else(PoisonError::into_inner);
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("project");
        let author = Self { root, home: tempfile::tempdir().unwrap(), _desk: desk };
        let sdk = workspace.join("crates/windlass");
        author.write("PROJECT", PROJECT);
        author.write("Cargo.toml", &manifest(&sdk));
        author.write("src/main.rs", MAIN);
        author.write("src/lib.rs", LIBRARY);
        author.write("config/samples/kustomization.yaml", "resources:\n- greeting.yaml\n");
        author.write("config/samples/greeting.yaml", SAMPLE);
        // The versions of the workspace: nothing is downloaded.
        for file in ["Cargo.lock", "rust-toolchain.toml"] {
            fs::copy(workspace.join(file), author.root.join(file)).unwrap();
        }
        // Not `cargo metadata`, which asks for the crates of every system.
        let mut tree = Command::new(env!("CARGO"));
        tree.args(["tree", "--offline", "--quiet"]).current_dir(&author.root);
        assert!(tree.stdout(Stdio::null()).status().unwrap().success(), "the lock file must fit");
        author
    }

    /// Writes a file, unless it has that content: cargo goes by the time of files.
    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        if fs::read_to_string(&path).is_ok_and(|found| found == content) {
            return;
        }
        fs::write(path, content).unwrap();
    }

    /// Replaces something in a file.
    pub(crate) fn edit(&self, file: &str, old: &str, new: &str) {
        let content = fs::read_to_string(self.root.join(file)).unwrap();
        assert!(content.contains(old), "{old:?} must be in {file}");
        self.write(file, &content.replace(old, new));
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(arguments).current_dir(self.root.join("src")).env_remove("RUST_LOG");
        command.env("CARGO", env!("CARGO")).env("CARGO_NET_OFFLINE", "true");
        command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap());
        command.env("WINDLASS_HOME", self.home.path()).env("KUBECONFIG", "/nonexistent");
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Starts a command that goes on.
    pub(crate) fn start(&self, arguments: &[&str]) -> Running {
        Running::start(self.command(arguments))
    }
}

fn manifest(sdk: &Path) -> String {
    format!(
        "[package]\nname = \"greeting\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
         schemars = \"1\"\nserde = {{ version = \"1\", features = [\"derive\"] }}\n\
         windlass = {{ path = \"{}\" }}\n\n\
         [profile.dev]\ndebug = \"line-tables-only\"\n\n[profile.dev.package.\"*\"]\ndebug = false\n",
        sdk.display()
    )
}

/// A command that runs, killed if a test fails.
pub(crate) struct Running {
    pub(crate) child: Child,
    lines: mpsc::Receiver<String>,
    pub(crate) seen: Vec<String>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = mpsc::channel();
        let outputs: [Box<dyn Read + Send>; 2] =
            [Box::new(child.stdout.take().unwrap()), Box::new(child.stderr.take().unwrap())];
        for output in outputs {
            let sender = sender.clone();
            std::thread::spawn(move || {
                BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
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

    pub(crate) fn interrupt(&self) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
    }

    /// Waits for its end, and returns its exit code.
    pub(crate) fn ended(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The process that a line names as `pid N`.
pub(crate) fn pid(line: &str) -> Pid {
    let number = line.split("pid ").nth(1).unwrap();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

/// Waits until a process is gone.
pub(crate) fn await_gone(pid: Pid) {
    let begin = Instant::now();
    while test_kill_process(pid).is_ok() {
        assert!(begin.elapsed() < Duration::from_mins(1), "{pid:?} is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A client of whoever a kubeconfig is for.
pub(crate) async fn client(kubeconfig: &Path) -> Client {
    let kubeconfig = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    Client::try_from(config).unwrap()
}
