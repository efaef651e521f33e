//! The page of `windlass cluster up`, and what was, in the terminal.

use std::{
    io::{Read, Write},
    net::TcpStream,
    path::Path,
};

use crate::{command::windlass, dev::Running};

fn status(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

fn output(kubeconfig: &Path, arguments: &[&str]) -> (bool, String) {
    let output = windlass().args(arguments).arg("--kubeconfig").arg(kubeconfig).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

#[test]
fn the_ready_lines_have_the_link_of_a_page_and_the_past_is_told_in_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(folder.path(), &["cluster", "up"]);
    let line = running.wait_for("/?token=");
    let link = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let (host, path) = link.strip_prefix("http://").unwrap().split_once('/').unwrap();
    assert!(host.starts_with("127.0.0.1:"), "{link}");
    assert_eq!(status(host, &format!("/{path}")), "HTTP/1.1 200 OK");
    assert_eq!(status(host, "/"), "HTTP/1.1 401 Unauthorized");

    let kubeconfig = folder.path().join(".windlass/kubeconfig");
    let (fine, text) = output(&kubeconfig, &["history", "node/windlass-1", "--patch"]);
    assert!(fine && text.contains("created") && text.contains("+kind: Node"), "{text}");
    let (fine, text) = output(&kubeconfig, &["history", "node/windlass-1", "--field", "metadata.name"]);
    assert!(fine && text.contains("metadata.name\n") && text.contains("\"windlass-1\""), "{text}");
    let (fine, text) = output(&kubeconfig, &["diff", "--since", "1h", "--kind", "nodes"]);
    assert!(fine && text.contains("nodes/windlass-1 created") && text.contains("+kind: Node"), "{text}");
    for (arguments, wanted) in
        [(["history", "thing/one"], "serves no kind"), (["history", "pod/nothing"], "there is no Pod")]
    {
        let (fine, text) = output(&kubeconfig, &arguments);
        assert!(!fine && text.contains(wanted) && text.contains("hint: "), "{text}");
    }
    running.kill();
}

#[test]
fn no_page_is_served_when_none_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::start(folder.path(), &["cluster", "up", "--no-page"]);
    running.wait_for("kubectl get nodes");
    assert!(!running.seen().iter().any(|line| line.contains("token=")));
    running.kill();
}
