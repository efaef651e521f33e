use std::process::ExitCode;

fn main() -> ExitCode {
    greeting::operator().main()
}
