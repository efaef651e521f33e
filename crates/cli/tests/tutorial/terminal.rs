//! A terminal: commands run one after the other in bash, and what `cd` and `export` did stays.

use std::{
    fs::{self, File, OpenOptions},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
};

/// Where the state of a terminal is kept between commands, and what every command starts with.
pub(crate) struct Terminal {
    state: PathBuf,
    folder: PathBuf,
    environment: Vec<(String, String)>,
}

impl Terminal {
    pub(crate) fn open(state: PathBuf, folder: &Path, environment: &[(String, String)]) -> Self {
        Self { state, folder: folder.to_owned(), environment: environment.to_vec() }
    }

    /// Where the terminal is.
    pub(crate) fn folder(&self) -> PathBuf {
        let place = fs::read_to_string(self.state.with_extension("folder"));
        place.map_or_else(|_| self.folder.clone(), |text| PathBuf::from(text.trim_end()))
    }

    /// Runs one command to its end, with all that it prints added to a file.
    pub(crate) fn run(&self, command: &str, output: &Path) -> ExitStatus {
        let state = self.state.display();
        let script = format!(
            "set -euo pipefail\n[ ! -f '{state}' ] || . '{state}'\n{command}\nexport -p > '{state}'\n\
             pwd > '{}'\n",
            self.state.with_extension("folder").display()
        );
        self.bash(&script, output).status().unwrap()
    }

    /// Starts a command in a process group of its own.
    pub(crate) fn start(&self, command: &str, output: &Path) -> Child {
        let state = self.state.display();
        let script = format!("set -euo pipefail\n[ ! -f '{state}' ] || . '{state}'\n{command}\n");
        self.bash(&script, output).process_group(0).spawn().unwrap()
    }

    fn bash(&self, script: &str, output: &Path) -> Command {
        let mut bash = Command::new("bash");
        bash.args(["-c", script]).current_dir(self.folder());
        // A reader's shell knows nothing of the package whose test this is; build scripts that watch it would run again.
        for (name, _) in std::env::vars() {
            if name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_") {
                bash.env_remove(name);
            }
        }
        bash.envs(self.environment.iter().map(|(key, value)| (key, value)));
        // Nobody is there to answer a question.
        bash.stdin(Stdio::null()).stdout(append(output)).stderr(append(output));
        bash
    }
}

fn append(path: &Path) -> File {
    OpenOptions::new().create(true).append(true).open(path).unwrap()
}

/// The commands of a block: a line each, unless it ends with a backslash. Comments are left out.
pub(crate) fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut command = String::new();
    for line in text.lines() {
        if command.is_empty() && (line.trim().is_empty() || line.trim_start().starts_with('#')) {
            continue;
        }
        command.push_str(line);
        if command.ends_with('\\') {
            command.push('\n');
        } else {
            commands.push(std::mem::take(&mut command));
        }
    }
    commands
}

#[test]
fn a_block_is_a_list_of_commands() {
    assert_eq!(commands("# first\nls  # here\n\ncargo \\\n  test\n"), ["ls  # here", "cargo \\\n  test"]);
}
