//! All operators in one process, or those that are chosen: what the image runs.

use std::process::ExitCode;

use windlass::Operator;
use windlass_operators::{catalogue, manifests::shipped};

#[derive(Debug, clap::Args)]
struct Args {
    /// Run these operators only, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',', value_parser = names())]
    only: Vec<String>,
}

fn names() -> clap::builder::PossibleValuesParser {
    catalogue().iter().map(|entry| entry.name).into()
}

fn main() -> ExitCode {
    Operator::main_with(|args: Args| shipped(&args.only))
}
