//! `restart`: the death of an API server, for whoever wants to see what its clients make of it.
//!
//! Enters a testbed that is up; leaves the same testbed with another API server process. Nothing is asked of the
//! old one: it is killed, and the supervisor starts it again as it does after any death.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use fs_err as fs;

use super::process::{self, Identity};
use super::{client, state};

const PROGRAM: &str = "kube-apiserver";
/// How long the new process may take; a machine that compiles at the same time is slow.
const TIMEOUT: Duration = Duration::from_mins(2);

/// Kills the API server of a testbed, and returns when the next one is ready.
pub(super) fn api_server(name: &str) -> Result<()> {
    let (_, state) = state::require_ready(name)?;
    let outer = state.outer.context("the testbed has no processes")?;
    let servers: Vec<i32> =
        process::descendants(outer.pid)?.into_iter().filter(|pid| runs(*pid, PROGRAM)).collect();
    let [server] = servers[..] else {
        bail!("testbed `{name}` has {} API servers, where one is expected", servers.len());
    };
    let server = Identity::of(server)?;
    let begin = Instant::now();
    server.kill();
    let (client, deadline) = (client(name)?, begin + TIMEOUT);
    // While the old process lives, an answer may be its last.
    while server.alive() || client.output(&["get", "--raw", "/readyz", "--request-timeout=5s"]).is_err() {
        if Instant::now() > deadline {
            bail!("the API server was not back within {} s", TIMEOUT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    anstream::println!("the API server of `{name}` was away for {:.1} s", begin.elapsed().as_secs_f64());
    Ok(())
}

/// Whether the process runs this program, by the first word of its command line.
fn runs(pid: i32, program: &str) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let first = line.split(|byte| *byte == 0).next().unwrap_or_default();
    first.rsplit(|byte| *byte == b'/').next() == Some(program.as_bytes())
}
