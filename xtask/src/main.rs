//! `cargo xtask`, or a word about where it runs: the rest of the workspace builds and is tested everywhere.

use std::process::ExitCode;

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    xtask::main()
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    anstream::eprintln!("error: cargo xtask needs Linux, whose kernel runs its Kubernetes");
    ExitCode::FAILURE
}
