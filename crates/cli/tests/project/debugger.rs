//! `--debugger`, with a real gdb that stops in a reconciler (needs gdb and gdbserver).

use std::{net::TcpListener, process::Command};

use crate::author::{Author, Running, text};

#[test]
fn a_breakpoint_in_a_reconciler_holds_for_longer_than_its_timeout_and_the_operator_goes_on() {
    let author = Author::new();
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let mut dev = author.start(&["dev", "--plain", "--debugger", &address]);
    dev.wait_for(&format!("debugger    {address}"));
    let attach = dev.wait_for("target remote");
    let program = attach.split_whitespace().nth(1).unwrap().to_owned();

    // The reconcile may take two seconds; it is held for five.
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-ex", "set pagination off", "-ex", "set debuginfod enabled off"]);
    gdb.args(["-ex", &format!("target remote {address}"), "-ex", "handle SIGTERM nostop pass"]);
    gdb.args(["-ex", "break greeting::polished", "-ex", "continue", "-ex", "backtrace 3"]);
    gdb.args(["-ex", "shell sleep 5", "-ex", "delete", "-ex", "continue", &program]);
    let mut gdb = Running::start(gdb);
    dev.wait_for("operator    greeting");
    gdb.wait_for("greeting::polished");
    dev.wait_for("hello  Ready");
    let failed = dev.seen.iter().find(|line| line.contains("timed out") || line.contains("timeout"));
    assert_eq!(failed, None, "{:#?}", dev.seen);

    dev.interrupt();
    dev.wait_for("stopped");
    assert_eq!(dev.ended(), Some(0));
    gdb.ended();
}

#[test]
fn without_a_debug_server_it_says_what_to_install() {
    let author = Author::new();
    let output =
        author.command(&["dev", "--debugger", ":2345"]).env("PATH", "/nonexistent").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("neither lldb-server nor gdbserver is in the PATH"), "{said}");
    assert!(said.contains("hint: "), "{said}");
}
