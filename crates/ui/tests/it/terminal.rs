//! The terminal is given back when something panics, on a real pseudo-terminal.

use std::{fs::File, io::Read, os::fd::OwnedFd, process::Command, time::Duration};

use rustix::{
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, tcgetattr},
};
use windlass_cluster::Cluster;
use windlass_ui::top::{self, Abilities, Options};

/// What is seen of a terminal on which a test of this program runs.
fn on_a_terminal(test: &str) -> (String, LocalModes) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let path = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
    let slave: OwnedFd = File::options().read(true).write(true).open(path).unwrap().into();
    let end = || slave.try_clone().unwrap();
    let mut command = Command::new("setsid");
    command.arg("--ctty").arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    let mut child = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    let mut reader = File::from(master);
    let (sender, chunks) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(length @ 1..) = reader.read(&mut buffer) {
            if sender.send(buffer[..length].to_vec()).is_err() {
                return;
            }
        }
    });
    child.wait().unwrap();
    let mut seen = Vec::new();
    while let Ok(chunk) = chunks.recv_timeout(Duration::from_millis(500)) {
        seen.extend(chunk);
    }
    (String::from_utf8_lossy(&seen).into_owned(), tcgetattr(&slave).unwrap().local_modes)
}

#[test]
fn a_panic_is_read_on_the_terminal_as_it_was() {
    let (seen, modes) = on_a_terminal("terminal::panics_while_it_shows");
    let left =
        seen.rfind("\u{1b}[?1049l").unwrap_or_else(|| panic!("the screen was not given back: {seen:?}"));
    let told = seen.find("the panic of this test").unwrap_or_else(|| panic!("nothing was told: {seen:?}"));
    assert!(seen.contains("\u{1b}[?1049h") && left < told, "{seen:?}");
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO), "lines and echo: {modes:?}");
}

#[tokio::test]
#[ignore = "another test runs it, on a terminal of its own"]
async fn panics_while_it_shows() {
    let cluster = Cluster::start().await.unwrap();
    let stop = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        panic!("the panic of this test");
    };
    let abilities = Abilities { unicode: true, colour: true };
    top::show(cluster.client(), Options::default(), abilities, stop).await.unwrap();
}
