//! What runs: containerd and runc, with a root and a socket of their own, start what was loaded and what was pushed.

use std::{
    fs,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use crate::{
    author::{Author, succeeds},
    registry::{Kind, PASSWORD, Registry, USER},
};

/// A containerd that ends with the value.
struct Containerd {
    folder: tempfile::TempDir,
    process: Child,
}

impl Drop for Containerd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Containerd {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().display();
        let config = format!(
            "version = 2\nroot = \"{place}/root\"\nstate = \"{place}/state\"\n\
             disabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n\
             [grpc]\naddress = \"{place}/socket\"\n[ttrpc]\naddress = \"{place}/socket.ttrpc\"\n"
        );
        fs::write(folder.path().join("config.toml"), config).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("containerd");
        command.arg("--config").arg(folder.path().join("config.toml")).stdin(Stdio::null());
        let process = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let containerd = Self { folder, process };
        let begin = Instant::now();
        while !containerd.ctr(&["version"]).output().unwrap().status.success() {
            let log = fs::read_to_string(containerd.folder.path().join("log")).unwrap();
            assert!(begin.elapsed() < Duration::from_secs(30), "{log}");
            std::thread::sleep(Duration::from_millis(100));
        }
        containerd
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    fn ctr(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(self.socket()).args(["--namespace", "k8s.io"]).args(arguments);
        command
    }

    /// Runs an image with a root that cannot be written, and returns what it prints. Files are copied rather than
    /// mounted over each other: that works in any sandbox.
    fn run(&self, image: &str) -> String {
        let arguments = ["run", "--rm", "--read-only", "--snapshotter", "native", image, "hello"];
        succeeds(self.ctr(&arguments))
    }
}

const AS_NOBODY: &str =
    "Uid: 65532 65532 65532 65532\nGid: 65532 65532 65532 65532\nwrite Err(ReadOnlyFilesystem)\n";

#[test]
fn what_is_loaded_runs_as_65532_with_a_read_only_root() {
    let (author, containerd) = (Author::with_image(), Containerd::start());
    let load = format!("image load --into containerd --address {}", containerd.socket().display());
    let said = author.succeeds(&load);
    assert!(said.contains("docker.io/library/hello:0.3.0  into containerd"), "{said}");
    assert_eq!(containerd.run("docker.io/library/hello:0.3.0"), AS_NOBODY);
    author.succeeds(&format!("{load} --image example.com/other:2"));
    assert_eq!(containerd.run("example.com/other:2"), AS_NOBODY);
}

#[test]
fn what_is_pushed_is_pulled_by_containerd_and_runs() {
    let (author, containerd) = (Author::with_image(), Containerd::start());
    let registry = Registry::start(Kind { password: true, tls: false });
    let login =
        format!(r#"{{"auths":{{"{}":{{"username":"{USER}","password":"{PASSWORD}"}}}}}}"#, registry.address);
    author.write(".docker/config.json", &login);
    let image = format!("{}/team/hello:1", registry.address);
    author.succeeds(&format!("image push {image} --insecure"));
    let user = format!("{USER}:{PASSWORD}");
    let pull = ["images", "pull", "--plain-http", "--snapshotter", "native", "--user", &user, &image];
    succeeds(containerd.ctr(&pull));
    assert_eq!(containerd.run(&image), AS_NOBODY);
}

#[test]
fn an_engine_that_does_not_answer_is_said_to_be_so() {
    let author = Author::with_image();
    let error =
        author.fails(&format!("image load --into containerd --address {}", author.path("nothing").display()));
    assert!(error.starts_with("error: `ctr --address ") && error.contains("` failed: "), "{error}");
}
