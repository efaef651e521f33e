//! `windlass top` and the view of `windlass dev`, on a real pseudo-terminal.

use std::{
    fs::File,
    io::{Read, Write},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use rustix::{
    process::{Pid, Signal, kill_process},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use crate::{command::windlass, dev::Running};

const TIMEOUT: Duration = Duration::from_mins(2);
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

/// A program on a terminal of its own.
struct Terminal {
    child: Child,
    /// The side of the one who types and looks.
    master: OwnedFd,
    /// The side of the program, kept open: whoever looks at it afterwards sees how it was left.
    slave: OwnedFd,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    fn start(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave: OwnedFd = File::options().read(true).write(true).open(path).unwrap().into();
        let end = || slave.try_clone().unwrap();
        resize(&master, 24, 60);
        // It makes the terminal that of the program, which is told of a new size then.
        let mut command = Command::new("setsid");
        command.arg("--ctty").arg(env!("CARGO_BIN_EXE_windlass")).args(arguments).current_dir(folder);
        for name in ["NO_COLOR", "LC_ALL", "LC_CTYPE", "RUST_LOG", "KUBECONFIG"] {
            command.env_remove(name);
        }
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8").envs(environment.iter().copied());
        let child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let seen: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (all, mut reader) = (seen.clone(), File::from(master.try_clone().unwrap()));
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length @ 1..) = reader.read(&mut buffer) {
                all.lock().unwrap().extend_from_slice(&buffer[..length]);
            }
        });
        Self { child, master, slave, seen }
    }

    /// Everything that was written to the terminal.
    fn raw(&self) -> String {
        String::from_utf8_lossy(&self.seen.lock().unwrap()).into_owned()
    }

    /// The same without escapes: cells that did not change are not written again, so words may be missing.
    fn text(&self) -> String {
        anstream::adapter::strip_str(&self.raw()).to_string()
    }

    /// Waits until something was written.
    fn wait_for(&self, wanted: &str) {
        let begin = Instant::now();
        while !self.text().contains(wanted) && !self.raw().contains(wanted) {
            assert!(begin.elapsed() < TIMEOUT, "{wanted:?} is not in {:?}", self.raw());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until something is on the screen: with every new size all of it is drawn, and not only what has changed.
    fn drawn(&self, rows: u16, columns: u16, wanted: &str) {
        let begin = Instant::now();
        for more in [0, 1].into_iter().cycle() {
            let before = self.seen.lock().unwrap().len();
            resize(&self.master, rows, columns + more);
            std::thread::sleep(Duration::from_millis(300));
            let new = self.seen.lock().unwrap()[before..].to_vec();
            let text = anstream::adapter::strip_str(&String::from_utf8_lossy(&new)).to_string();
            if text.contains(wanted) {
                return;
            }
            assert!(begin.elapsed() < TIMEOUT, "{wanted:?} is not in {text:?}");
        }
    }

    fn press(&self, keys: &str) {
        File::from(self.master.try_clone().unwrap()).write_all(keys.as_bytes()).unwrap();
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end of the program; returns its exit code. The terminal must be as it was.
    fn ended(mut self) -> (Option<i32>, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            assert!(begin.elapsed() < TIMEOUT, "it does not end: {:?}", self.raw());
            std::thread::sleep(Duration::from_millis(20));
        };
        self.wait_for(LEAVE);
        let raw = self.raw();
        let (entered, left) = (raw.rfind(ENTER).unwrap(), raw.rfind(LEAVE).unwrap());
        assert!(entered < left, "the screen was not given back: {raw:?}");
        assert!(raw.rfind("\u{1b}[?25h") > raw.rfind("\u{1b}[?25l"), "the cursor is hidden: {raw:?}");
        let modes = tcgetattr(&self.slave).unwrap().local_modes;
        assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "lines and echo: {modes:?}");
        (status.code(), raw)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn resize(master: &OwnedFd, rows: u16, columns: u16) {
    let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(master, size).unwrap();
}

fn cluster(folder: &Path) -> Running {
    let mut cluster = Running::start(folder, &["cluster", "up", "--kubeconfig", "here", "--no-page"]);
    cluster.wait_for("kubectl get nodes");
    cluster
}

#[test]
fn top_shows_the_tree_and_obeys_keys_sizes_and_quit() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster(folder.path());
    let top = Terminal::start(folder.path(), &["top", "--kubeconfig", "here"], &[]);
    top.wait_for("Node windlass-1");
    top.wait_for("q quit");
    let first = top.raw();
    assert!(first.contains(ENTER) && first.contains("\u{1b}[38;5;"), "colours: {first:?}");
    top.drawn(40, 130, "Node windlass-1");
    top.drawn(6, 20, "windlass");
    // One kind, by a part of its name.
    top.press("tnodes\r");
    top.drawn(24, 80, "Node windlass-1");
    top.press("q");
    let (code, _) = top.ended();
    assert_eq!(code, Some(0));
    cluster.kill();
}

#[test]
fn top_needs_neither_colours_nor_unicode() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster(folder.path());
    let bare = [("NO_COLOR", "1"), ("LC_ALL", "C")];
    let top = Terminal::start(folder.path(), &["top", "--kubeconfig", "here"], &bare);
    top.wait_for("+ Node windlass-1");
    top.press("a");
    // One word: blanks without a style are jumped over, not written.
    top.wait_for("PriorityClass");
    top.press("\u{3}");
    let (code, raw) = top.ended();
    assert_eq!(code, Some(0));
    assert!(raw.is_ascii(), "{raw:?}");
    assert!(!raw.contains("\u{1b}[38;"), "{raw:?}");
    cluster.kill();
}

#[test]
fn in_a_pipe_top_prints_the_tree_once() {
    let folder = tempfile::tempdir().unwrap();
    let cluster = cluster(folder.path());
    let run = |arguments: &[&str]| {
        let mut command = windlass();
        command.args(["top", "--kubeconfig", "here"]).args(arguments).current_dir(folder.path());
        let output = command.env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let tree = run(&[]);
    assert!(tree.lines().any(|line| line.ends_with("+ Node windlass-1")), "{tree}");
    assert!(!tree.contains("ConfigMap") && !tree.contains('\u{1b}'), "{tree}");
    // Controllers are still at work in a cluster that has just begun.
    let begin = Instant::now();
    while !run(&["--all-kinds"]).contains("+ ConfigMap kube-root-ca.crt  default") {
        assert!(begin.elapsed() < TIMEOUT, "{}", run(&["--all-kinds"]));
    }
    let failed = run(&["--health", "failed"]);
    assert_eq!(failed, "");
    assert!(run(&["--kind", "configmaps", "-n", "default"]).lines().count() > 0);
    cluster.kill();
}

#[test]
fn dev_on_a_terminal_shows_its_operators_and_leaves_the_ready_lines() {
    for signal in [None, Some(Signal::TERM)] {
        let folder = tempfile::tempdir().unwrap();
        let dev = Terminal::start(folder.path(), &["dev", "--only", "webserver"], &[]);
        dev.wait_for("/?token=");
        dev.wait_for(ENTER);
        dev.drawn(24, 80, "Pod webserver-sample");
        // What it does, by the same record as on the page.
        dev.drawn(24, 80, "success");
        match signal {
            None => dev.press("\u{3}"),
            Some(signal) => dev.signal(signal),
        }
        let (code, raw) = dev.ended();
        assert_eq!(code, Some(0), "{raw:?}");
        let (ready, entered) = (raw.find("/?token=").unwrap(), raw.find(ENTER).unwrap());
        assert!(ready < entered, "the link is on the screen that comes back");
        let after = &raw[raw.rfind(LEAVE).unwrap()..];
        assert!(after.contains("stopped"), "{after:?}");
    }
}

#[test]
fn dev_prints_lines_on_a_terminal_when_they_are_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let dev = Terminal::start(folder.path(), &["dev", "--only", "webserver", "--plain"], &[]);
    dev.wait_for("webserver-sample  Ready 3/3");
    assert!(!dev.raw().contains('\u{1b}'), "{:?}", dev.text());
    dev.signal(Signal::INT);
    dev.wait_for("stopped");
}
