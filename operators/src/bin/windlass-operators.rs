//! All operators in one process: what the image runs.

use std::process::ExitCode;

use windlass_operators::{catalogue, manifests::ACCOUNT, operator};

fn main() -> ExitCode {
    operator(ACCOUNT, catalogue()).main()
}
