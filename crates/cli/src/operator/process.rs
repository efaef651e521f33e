//! The process of an operator outside the cluster: how it is started, known to be ready, and stopped.
//!
//! It hears of its end in three ways: a signal, where the system has them; the end of its stdin, which is a pipe from
//! this process, so that it ends even if this one is killed; and, if it hears neither, it is killed.

use std::{
    ffi::{OsStr, OsString},
    io::{self, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, ChildStdin, Command},
};

use super::debugger::Debugger;
use crate::{
    diverted,
    project::{Error, Project, build},
};

/// How long a reconcile may take to finish once the operator is to stop, and how long the process may take in all.
const DRAIN: &str = "3s";
const TIMEOUT: Duration = Duration::from_secs(6);

/// How often an operator is asked whether it is ready, and after how long that is worth a word.
const ASK: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// How an operator is to run.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) program: PathBuf,
    /// Where it reads how to reach the cluster; as anybody does, if there is none.
    pub(crate) kubeconfig: Option<PathBuf>,
    pub(crate) context: Option<String>,
    /// The URL by which the API server reaches its webhooks, and where they listen.
    pub(crate) webhooks: Option<Webhooks>,
    /// Whether webhooks are served at all.
    pub(crate) serve_webhooks: bool,
    pub(crate) debugger: Option<Debugger>,
    /// No colours, wherever it is shown.
    pub(crate) plain: bool,
    /// Whether what it says is read here, line by line, rather than by the terminal.
    pub(crate) captured: bool,
    /// What is logged, unless the user has said so.
    pub(crate) log: String,
    /// Whether what the environment says is for somebody else: in a cluster of its own, not the user's.
    pub(crate) own_cluster: bool,
    /// The author's arguments.
    pub(crate) arguments: Vec<OsString>,
}

/// Where webhooks are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Webhooks {
    pub(crate) url: String,
    pub(crate) listen: SocketAddr,
}

impl Webhooks {
    /// On a free port, for an API server on this machine.
    pub(crate) fn here() -> Result<Self, Error> {
        let listen = free()?;
        Ok(Self { url: format!("https://{listen}"), listen })
    }
}

/// A running operator.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// Open for as long as the operator is to run.
    stdin: Option<ChildStdin>,
    probes: SocketAddr,
    pub(crate) metrics: SocketAddr,
    pub(crate) started: Instant,
}

impl Process {
    /// Starts an operator.
    pub(crate) async fn start(project: &Project, plan: &Plan) -> Result<Self, Error> {
        let (probes, metrics) = (free()?, free()?);
        let mut command = match &plan.debugger {
            Some(debugger) => {
                let mut command = Command::new(&debugger.program);
                command.args(debugger.arguments(&plan.program));
                command
            }
            None => Command::new(&plan.program),
        };
        command.arg("run").current_dir(&project.root);
        if let Some(path) = &plan.kubeconfig {
            command.arg("--kubeconfig").arg(path);
        }
        if let Some(context) = &plan.context {
            command.arg("--context").arg(context);
        }
        if plan.debugger.is_some() && knows_debugging(&plan.program, &project.root).await {
            command.arg("--debugging");
        }
        command.args(&plan.arguments);
        plan.environment(&mut command, probes, metrics);
        command.stdin(Stdio::piped()).kill_on_drop(true);
        if plan.captured {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        // Ctrl-C is for this process, which then tells the operator once.
        #[cfg(unix)]
        command.process_group(0);
        let failed = |source| Error::Run { program: plan.program.clone(), source };
        let mut child = command.spawn().map_err(failed)?;
        let stdin = child.stdin.take();
        forward(child.stdout.take());
        forward(child.stderr.take());
        Ok(Self { child, stdin, probes, metrics, started: Instant::now() })
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Waits until the operator ends. Cancel-safe.
    pub(crate) async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Waits until the operator says that it is ready, and gives up waiting after a while.
    pub(crate) fn ready(&self) -> BoxFuture<'static, bool> {
        let (address, begin) = (self.probes, Instant::now());
        async move {
            while begin.elapsed() < LONG {
                if is_ready(address).await.unwrap_or(false) {
                    return true;
                }
                tokio::time::sleep(ASK).await;
            }
            false
        }
        .boxed()
    }

    /// Stops the operator and waits for its end.
    pub(crate) async fn stop(mut self) {
        if self.child.id().is_none() {
            return;
        }
        self.ask();
        if tokio::time::timeout(TIMEOUT, self.child.wait()).await.is_err() {
            tracing::warn!("the operator did not stop in time, it was killed");
            let _ = self.child.kill().await;
        }
    }

    /// By one way only: a second signal means at once. Who stands behind a debug server gets it too.
    #[cfg(unix)]
    fn ask(&mut self) {
        use rustix::process::{Pid, Signal, kill_process_group};
        let pid = self.child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        if pid.is_none_or(|pid| kill_process_group(pid, Signal::TERM).is_err()) {
            self.stdin = None;
        }
    }

    #[cfg(not(unix))]
    fn ask(&mut self) {
        self.stdin = None;
    }
}

impl Plan {
    /// Settings go by the environment, so that the author's arguments win over them.
    fn environment(&self, command: &mut Command, probes: SocketAddr, metrics: SocketAddr) {
        let mut set = |name: &str, value: &OsStr| {
            // On a cluster of the user's, what the user has set stays.
            if self.own_cluster || std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        };
        set("LEADER_ELECT", "false".as_ref());
        set("HEALTH_PROBE_BIND_ADDRESS", probes.to_string().as_ref());
        set("METRICS_BIND_ADDRESS", metrics.to_string().as_ref());
        set("METRICS_SECURE", "false".as_ref());
        set("GRACEFUL_SHUTDOWN_TIMEOUT", DRAIN.as_ref());
        if let Some(webhooks) = &self.webhooks {
            set("WEBHOOK_URL", webhooks.url.as_ref());
            set("WEBHOOK_HOST", webhooks.listen.ip().to_string().as_ref());
            set("WEBHOOK_PORT", webhooks.listen.port().to_string().as_ref());
        }
        if !self.serve_webhooks {
            set("ENABLE_WEBHOOKS", "false".as_ref());
        }
        if self.own_cluster {
            for name in ["CONFIG_FILE", "KUBECONFIG", "POD_NAMESPACE", "WATCH_NAMESPACE", "DRY_RUN"] {
                command.env_remove(name);
            }
        }
        if std::env::var_os("RUST_LOG").is_none_or(|filter| filter.is_empty()) {
            command.env("RUST_LOG", &self.log);
        }
        if self.plain {
            command.env("NO_COLOR", "1");
        }
        command.env("WINDLASS_STOP_AT_STDIN_END", "true");
    }
}

/// What is logged for so many `-v`: at first what the author's own code says, and warnings of everybody else's.
pub(crate) fn log_filter(project: &Project, verbose: u8) -> String {
    match verbose {
        0 => format!("warn,{}=info", project.library()),
        1 => "info".into(),
        2 => "debug".into(),
        _ => "trace".into(),
    }
}

/// Passes on what the operator says, wherever words go now. Ends with the operator.
fn forward(said: Option<impl AsyncRead + Send + Unpin + 'static>) {
    let Some(said) = said else { return };
    tokio::spawn(async move {
        let mut lines = BufReader::new(said).split(b'\n');
        while let Ok(Some(line)) = lines.next_segment().await {
            let _ = diverted::Stderr.write_all(&[line.as_slice(), b"\n"].concat());
        }
    });
}

/// Whether the program's SDK can wait for a debugger.
async fn knows_debugging(program: &Path, root: &Path) -> bool {
    build::printed(program, root, &["run", "--help"]).await.is_ok_and(|help| help.contains("--debugging"))
}

/// A port of this machine that nobody has now.
fn free() -> Result<SocketAddr, Error> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr()).map_err(Error::Port)
}

async fn is_ready(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200"))
}

/// Waits for a future that may not be there, once.
pub(crate) async fn when<T>(future: &mut Option<BoxFuture<'static, T>>) -> T {
    let Some(waited) = future else { return std::future::pending().await };
    let result = waited.await;
    *future = None;
    result
}
