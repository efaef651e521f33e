//! `windlass dev`.

use std::{ffi::OsString, net::SocketAddr};

use clap::Args;

use super::{cluster::ClusterArgs, operators::operator_names};

const EXAMPLES: &str = "\
Examples:
  windlass dev                           in a project, or not
  windlass dev --data-dir .windlass/data
  windlass dev --debugger 127.0.0.1:2345
  windlass dev -- --log-level debug      for the operator
  windlass dev --only webserver          not in a project";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct DevArgs {
    #[command(flatten)]
    pub(crate) cluster: ClusterArgs,

    /// Do not apply the samples
    #[arg(long)]
    pub(crate) no_samples: bool,

    /// Run these operators only; not in a project, which has its own
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = operator_names())]
    pub(crate) only: Vec<String>,

    /// Lines without colours, as for a pipe, and no view of the cluster in the terminal
    #[arg(long)]
    pub(crate) plain: bool,

    #[command(flatten)]
    pub(crate) debugger: DebuggerArgs,

    /// Restart the operator on a change although a debugger may be attached
    #[arg(long, requires = "debugger")]
    pub(crate) restart: bool,

    /// Arguments for the `run` of the project's operator
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) arguments: Vec<OsString>,
}

/// `--debugger`, wherever the operator of a project is started.
#[derive(Debug, Args)]
pub(crate) struct DebuggerArgs {
    /// Start the project's operator under lldb-server or gdbserver, and let debuggers attach at HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) debugger: Option<SocketAddr>,
}

/// `127.0.0.1:2345`, `localhost:2345` or `:2345`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let full = match text.rsplit_once(':') {
        Some(("" | "localhost", port)) => format!("127.0.0.1:{port}"),
        _ => text.to_owned(),
    };
    full.parse().map_err(|_| "write HOST:PORT, such as 127.0.0.1:2345".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_debuggers_address_may_leave_the_host_out() {
        let expected: SocketAddr = "127.0.0.1:2345".parse().unwrap();
        for text in ["127.0.0.1:2345", "localhost:2345", ":2345"] {
            assert_eq!(address(text), Ok(expected), "{text}");
        }
        assert!(address("2345").is_err() && address("somewhere").is_err());
    }
}
