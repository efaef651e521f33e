//! `windlass cluster up --detach`: this program once more, as a process that outlives its terminal.

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use fs_err as fs;

use super::tell;
use crate::{
    args::UpArgs,
    clusters::{ClusterDirectory, Error as ClustersError, Facts, State, last_words},
    error::Error,
    platform,
    printer::Printer,
    signals::Signals,
};

/// How long a cluster may take to be ready. It takes milliseconds; its own limits are shorter.
const TIMEOUT: Duration = Duration::from_mins(1);

/// How often it is asked whether it is.
const ASK: Duration = Duration::from_millis(20);

/// Starts a cluster in the background, and returns when it is ready.
pub(super) async fn start(
    place: &ClusterDirectory,
    args: &UpArgs,
    verbose: u8,
    printer: Printer,
) -> Result<(), Error> {
    if matches!(place.state()?, State::Running(_) | State::Starting) {
        return Err(place.taken().into());
    }
    let signals = Signals::new()?;
    let begin = Instant::now();
    place.make()?;
    let mut child = spawn(place, args, verbose).map_err(ClustersError::Spawn)?;
    let facts = tokio::select! {
        facts = ready(place, &mut child) => facts,
        () = signals.received() => {
            // It is a child of this process still, and has told nobody that it is there.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(());
        }
    }?;
    announce(place, &facts, begin.elapsed(), printer)
}

fn spawn(place: &ClusterDirectory, args: &UpArgs, verbose: u8) -> std::io::Result<Child> {
    let log = fs::File::create(place.log())?.into_parts().0;
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["cluster", "up", "--background", "--name", place.name()]);
    command.args((0..verbose).map(|_| "-v"));
    let cluster = &args.cluster;
    command.args(["--port", &cluster.port.to_string(), "--nodes", &cluster.nodes.to_string()]);
    let absolute = |path: &Path| std::path::absolute(path);
    if let Some(path) = &cluster.kubeconfig {
        command.arg("--kubeconfig").arg(absolute(path)?);
    }
    if let Some(path) = &cluster.data_dir {
        command.arg("--data-dir").arg(absolute(path)?);
    }
    command.args(args.server.absolute()?.flags());
    if cluster.page.page_port != 0 {
        command.args(["--page-port", &cluster.page.page_port.to_string()]);
    }
    let switches = [
        ("--unsafe-no-fsync", cluster.unsafe_no_fsync),
        ("--in-memory", args.in_memory),
        ("--no-page", cluster.page.no_page),
    ];
    command.args(switches.iter().filter(|(_, on)| *on).map(|(flag, _)| flag));
    // Its own folder, so that it keeps nobody from removing the one it was started in.
    command.current_dir(place.folder());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    #[cfg(windows)]
    {
        use std::os::windows::process::CommandExt;
        /// `DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP`: no console, and no Ctrl-C of somebody else's.
        const DETACHED: u32 = 0x0000_0008 | 0x0000_0200;
        command.creation_flags(DETACHED);
    }
    command.spawn()
}

/// Leaves the session of the terminal, which takes its processes with it when it closes.
pub(super) fn own_session() {
    #[cfg(unix)]
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "this process leads a session already");
    }
}

/// Waits until the process has said that its cluster is ready.
async fn ready(place: &ClusterDirectory, child: &mut Child) -> Result<Facts, Error> {
    let begin = Instant::now();
    loop {
        match place.state()? {
            State::Running(facts) if facts.pid == child.id() => return Ok(facts),
            _ => {}
        }
        if child.try_wait().map_err(ClustersError::Spawn)?.is_some() || begin.elapsed() > TIMEOUT {
            let _ = child.kill();
            let (why, hint) = last_words(&place.log());
            let name = place.name().to_owned();
            return Err(ClustersError::NotStarted { name, why, hint }.into());
        }
        tokio::time::sleep(ASK).await;
    }
}

fn announce(place: &ClusterDirectory, facts: &Facts, time: Duration, printer: Printer) -> Result<(), Error> {
    let kept = match &facts.data_dir {
        Some(path) => format!("in {}", path.display()),
        None => "in memory".into(),
    };
    tell(
        printer,
        &facts.url,
        format_args!("ready in {} ms, kept {kept}", time.as_millis()),
        &facts.kubeconfig,
    )?;
    if let Some(page) = &facts.page {
        printer.fact("page", page)?;
    }
    printer.remark("name", place.name(), format_args!("pid {}", facts.pid))?;
    printer.fact("log", place.log().display())?;
    let flag = if place.name() == crate::clusters::DEFAULT {
        String::new()
    } else {
        format!(" --name {}", place.name())
    };
    printer.line("")?;
    printer.command(platform::set_variable_to_output(
        "KUBECONFIG",
        &format!("windlass cluster kubeconfig{flag}"),
    ))?;
    printer.command("kubectl get nodes")?;
    printer.command(format_args!("windlass cluster down{flag}"))
}
