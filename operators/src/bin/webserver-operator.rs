//! The WebServer operator on its own.

use std::process::ExitCode;

use windlass_operators::{catalogue, operator};

fn main() -> ExitCode {
    let webserver = catalogue().iter().filter(|entry| entry.name == "webserver");
    operator("webserver-operator", webserver).main()
}
