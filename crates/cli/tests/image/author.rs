//! A project that is small enough to be compiled in a second, and whoever works on it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

/// Tells who runs it, and whether it can write.
const MAIN: &str = r#"fn main() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ids = status.lines().filter(|line| line.starts_with("Uid") || line.starts_with("Gid"));
    for line in ids {
        println!("{}", line.split_whitespace().collect::<Vec<_>>().join(" "));
    }
    println!("write {:?}", std::fs::write("/file", "").map_err(|error| error.kind()));
}
"#;
const MANIFEST: &str = "[package]\nname = \"hello\"\nversion = \"0.3.0\"\nedition = \"2024\"\nlicense = \"MIT\"\n\
                        description = \"Says who runs it\"\n\n[workspace]\n\n[profile.release]\nstrip = \"debuginfo\"\n";
const PROJECT: &str = "version: \"3\"\nlayout:\n- windlass.dev/v1\nprojectName: hello\ndomain: example.com\ncliVersion: 0.1.0\n";

pub(crate) struct Author {
    pub(crate) folder: tempfile::TempDir,
}

impl Author {
    /// A project in a folder of its own, which nothing is known of but its files.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let author = Self { folder };
        author.write("PROJECT", PROJECT);
        author.write("Cargo.toml", MANIFEST);
        author.write("src/main.rs", MAIN);
        author
    }

    /// One with an image for both platforms.
    pub(crate) fn with_image() -> Self {
        let author = Self::new();
        author.succeeds("image build --platform linux/amd64,linux/arm64");
        author
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.path("dist/image")
    }

    pub(crate) fn write(&self, file: &str, content: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A command line in the project, without any login of whoever runs the test.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command.args(line.split(' ')).current_dir(self.folder.path()).stdin(Stdio::null());
        command.env("CARGO", env!("CARGO")).env_remove("CARGO_TARGET_DIR").env_remove("RUST_LOG");
        command
            .env_remove("REGISTRY_AUTH_FILE")
            .env_remove("XDG_RUNTIME_DIR")
            .env_remove("SOURCE_DATE_EPOCH");
        command.env("DOCKER_CONFIG", self.path(".docker")).env("XDG_CONFIG_HOME", self.path(".config"));
        command
    }

    pub(crate) fn succeeds(&self, line: &str) -> String {
        succeeds(self.command(line))
    }

    /// What a command that fails says to people.
    pub(crate) fn fails(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "windlass {line}: {}", said(&output));
        String::from_utf8(output.stderr).unwrap()
    }

    /// The answer of a push, as data.
    pub(crate) fn pushes(&self, line: &str) -> Value {
        serde_json::from_str(&self.succeeds(&format!("image push -o json {line}"))).unwrap()
    }
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Runs a command that must succeed, and returns what it prints.
pub(crate) fn succeeds(mut command: Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", said(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Every file below a folder.
pub(crate) fn files(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut folders, mut found) = (vec![folder.to_owned()], Vec::new());
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = fs::read(&path).unwrap();
                found.push((path.strip_prefix(folder).unwrap().to_owned(), content));
            }
        }
    }
    found.sort();
    found
}
