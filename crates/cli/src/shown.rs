//! Every `windlass …` that a page of the repository shows is a command that there is. It exists for a test alone: the
//! pages come in, what clap does not understand leaves.

use std::{fs, path::Path};

use clap::{Parser, error::ErrorKind};

use crate::args::Cli;

const PAGES: [&str; 16] = [
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "README.zh-CN.md",
    "docs/README.md",
    "docs/coming-from-kubebuilder.md",
    "docs/coming-from-kubebuilder.zh-CN.md",
    "docs/page.md",
    "docs/page.zh-CN.md",
    "docs/shipping.md",
    "docs/shipping.zh-CN.md",
    "docs/testing.md",
    "docs/testing.zh-CN.md",
    "docs/tutorial.md",
    "docs/tutorial.zh-CN.md",
    "operators/README.md",
];

/// The command lines of a page: lines of blocks, and code in the text.
fn commands(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_block = false;
    for line in page.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if in_block {
            let line = line.trim_start_matches("$ ");
            let line =
                line.strip_prefix("cargo run -- ").map_or(line.to_owned(), |rest| format!("windlass {rest}"));
            found.push(line.split(" #").next().unwrap_or_default().to_owned());
        } else {
            found.extend(line.split('`').skip(1).step_by(2).map(str::to_owned));
        }
    }
    // `…` stands for flags that are shown elsewhere.
    found.retain(|command| command.starts_with("windlass ") && !command.starts_with("windlass 0"));
    found.iter().map(|command| command.replace('\u{2026}', "").trim_end().to_owned()).collect()
}

/// What clap says against a command. A page may leave out what a command needs, but name nothing that it does not know.
fn problem(command: &str) -> Option<String> {
    let error = Cli::try_parse_from(command.split_whitespace()).err()?;
    let incomplete = matches!(
        error.kind(),
        ErrorKind::MissingRequiredArgument
            | ErrorKind::MissingSubcommand
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    (!incomplete).then(|| error.to_string())
}

#[test]
fn every_command_on_a_page_is_one_that_there_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut problems = Vec::new();
    let mut count = 0;
    for page in PAGES {
        for command in commands(&fs::read_to_string(root.join(page)).unwrap()) {
            count += 1;
            problems.extend(problem(&command).map(|problem| format!("{page}: {command}\n{problem}")));
        }
    }
    assert!(count > 50, "the commands must be found: {count}");
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn a_flag_that_there_is_not_is_found() {
    assert_eq!(problem("windlass dev --no-samples"), None);
    assert_eq!(problem("windlass cluster"), None);
    assert!(problem("windlass dev --nothing").unwrap().contains("--nothing"));
    assert_eq!(
        commands("`windlass dev \u{2026}` and `ls`\n```sh\ncargo run -- dev  # all\n```\n"),
        ["windlass dev", "windlass dev"]
    );
}
