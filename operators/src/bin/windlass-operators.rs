//! All operators in one process: what the image runs.

use std::process::ExitCode;

use windlass_operators::{catalogue, operator};

fn main() -> ExitCode {
    operator("windlass-operators", catalogue()).main()
}
