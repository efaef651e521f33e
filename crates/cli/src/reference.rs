//! The reference of every command, docs/commands.md: clap's tree comes in, Markdown leaves. It exists for a test alone,
//! which compares the page and, for `cargo xtask docs`, writes it.

use std::{fmt::Write, fs, path::Path};

use clap::{Command, CommandFactory};
use windlass::Operator;

use crate::args::Cli;

const HEADER: &str = "<!-- Written by `cargo xtask docs` from the help texts of the commands; a test compares. -->

# Commands

[Index](README.md) · [中文索引](README.zh-CN.md)

Every command, as `--help` prints it. Exit codes are 0 for success, 1 for what the user can change, and 2 for a command
line that is not understood or a failure of Windlass itself. The last part is the command line that the SDK gives to
every operator's own program, here called `operator`.
";

/// The width of help texts on the page, whatever the terminal of whoever writes it.
const WIDTH: usize = 100;

fn page() -> String {
    let (mut windlass, mut operator) =
        (commands(Cli::command()), commands(Operator::command_line().name("operator")));
    windlass.append(&mut operator);
    let mut page = format!("{HEADER}\n| | |\n|---|---|\n");
    for (name, command) in &windlass {
        let about = command.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(page, "| [`{name}`](#{}) | {} |", name.replace(' ', "-"), about.replace('|', "\\|"));
    }
    for (name, command) in &mut windlass {
        let _ = write!(page, "\n## {name}\n\n```text\n{}```\n", help(command));
    }
    page
}

/// A command and all below it, without what depends on whoever writes the page.
fn commands(command: Command) -> Vec<(String, Command)> {
    let mut command = without_values(command).term_width(WIDTH);
    // Global flags are known to the subcommands from here on.
    command.build();
    let mut all = Vec::new();
    collect(&command, "", &mut all);
    all
}

/// The variables of flags are shown, but not what they are set to just now.
fn without_values(command: Command) -> Command {
    command.mut_args(|arg| arg.hide_env_values(true)).mut_subcommands(without_values)
}

/// A command and all below it, in the order of the help, without what is hidden.
fn collect(command: &Command, before: &str, all: &mut Vec<(String, Command)>) {
    let name = format!("{before}{}", command.get_name());
    all.push((name.clone(), command.clone()));
    let shown = |sub: &&Command| !sub.is_hide_set() && sub.get_name() != "help";
    for sub in command.get_subcommands().filter(shown) {
        collect(sub, &format!("{name} "), all);
    }
}

fn help(command: &mut Command) -> String {
    let text = command.render_long_help().to_string();
    text.lines().flat_map(|line| [line.trim_end(), "\n"]).collect()
}

#[test]
fn the_reference_of_every_command_is_what_the_commands_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands.md");
    let page = page();
    if std::env::var_os("WINDLASS_WRITE_DOCS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
    let line = written.lines().zip(page.lines()).position(|(one, other)| one != other);
    assert!(
        written == page,
        "docs/commands.md differs from line {line:?} on; `cargo xtask docs` writes it anew"
    );
}
