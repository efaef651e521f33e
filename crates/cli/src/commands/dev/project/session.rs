//! The loop of `windlass dev`: a change, a build, an operator, and what becomes of it.

use std::{
    path::PathBuf,
    process::ExitStatus,
    time::{Duration, Instant, SystemTime},
};

use futures::future::BoxFuture;
use tokio::task::JoinHandle;
use windlass::kube::{Config, core::ApiResource};

use super::super::progress;
use crate::{
    args::DevArgs,
    commands::{cluster::Reach, top::Beside},
    error::Error,
    kubeconfig::Kubeconfig,
    operator::{
        account, apply,
        debugger::Debugger,
        manifests::Manifests,
        process::{Plan, Process, Webhooks, log_filter, when},
        samples::Samples,
    },
    printer::Printer,
    project::{self, Project, build::Manner, watch::Watch},
};

/// How long an operator that ended by itself is left alone: longer each time, until one lives.
const SOON: Duration = Duration::from_secs(1);
const LATE: Duration = Duration::from_secs(30);

/// A build that can run.
#[derive(Debug)]
struct Built {
    program: PathBuf,
    stamp: Option<(SystemTime, u64)>,
    manifests: Manifests,
}

pub(super) struct Session {
    project: Project,
    reach: Reach,
    printer: Printer,
    manner: Manner,
    debugger: Option<Debugger>,
    /// Whether what the operator says is read here, as the terminal may show something else.
    captured: bool,
    restart: bool,
    log: String,
    arguments: Vec<std::ffi::OsString>,
    samples: Option<Samples>,
    built: Option<Built>,
    process: Option<Process>,
    /// Open until the operator is ready.
    waiting: Option<BoxFuture<'static, bool>>,
    /// When an operator that ended by itself starts again.
    again: Option<Instant>,
    falls: u32,
    account: Option<Kubeconfig>,
    progress: Option<(Vec<ApiResource>, JoinHandle<()>)>,
    told: bool,
    /// What ends the command from the terminal view, until that is shown.
    quit: Option<Quit>,
    beside: Option<Beside>,
}

/// Ends the command.
pub(super) type Quit = Box<dyn FnOnce() + Send>;

impl Session {
    pub(super) fn new(
        args: &DevArgs,
        project: Project,
        reach: Reach,
        debugger: Option<Debugger>,
        verbose: u8,
        printer: Printer,
    ) -> Self {
        Self {
            log: log_filter(&project, verbose),
            project,
            reach,
            printer,
            manner: Manner { quiet: false, plain: args.plain, debugger: debugger.is_some() },
            debugger,
            captured: false,
            restart: args.restart,
            arguments: args.arguments.clone(),
            samples: (!args.no_samples).then(Samples::default),
            built: None,
            process: None,
            waiting: None,
            again: None,
            falls: 0,
            account: None,
            progress: None,
            told: false,
            quit: None,
            beside: None,
        }
    }

    /// Shows the cluster in the terminal once the operator is ready for the first time: what was said until then stays
    /// on the terminal, and is there again afterwards.
    pub(super) fn show_when_ready(&mut self, quit: Option<Quit>) {
        self.captured = quit.is_some();
        self.quit = quit;
    }

    /// The terminal view, to be ended.
    pub(super) fn shown(&mut self) -> Option<Beside> {
        self.beside.take()
    }

    /// Builds, runs and shows. Returns only when something fails that no edit repairs.
    pub(super) async fn work(&mut self) -> Result<(), Error> {
        let mut watch = Watch::new(&self.project);
        self.rebuild().await?;
        loop {
            tokio::select! {
                changes = watch.changed() => {
                    if let Some(first) = changes.sources.first() {
                        let others = changes.sources.len() - 1;
                        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
                        self.printer.aside(format_args!("changed {}{more}", first.display()))?;
                        self.rebuild().await?;
                    }
                    if changes.samples && self.told {
                        self.apply_samples().await?;
                    }
                }
                status = ended(&mut self.process) => self.fell(status)?,
                () = until(self.again) => self.start().await?,
                ready = when(&mut self.waiting) => self.arrived(ready).await?,
            }
        }
    }

    /// Stops what this has started, apart from the cluster.
    pub(super) async fn stop(mut self) {
        if let Some((_, task)) = self.progress.take() {
            task.abort();
        }
        if let Some(process) = self.process.take() {
            process.stop().await;
        }
    }

    /// Builds the project, and lets the operator of the new build take the place of the old one.
    async fn rebuild(&mut self) -> Result<(), Error> {
        let begin = Instant::now();
        let program = match self.project.build(self.manner).await {
            Ok(program) => program,
            Err(error @ project::Error::NoCargo { .. }) => return Err(error.into()),
            Err(project::Error::Build { .. }) => return self.keep("does not compile"),
            Err(error) => return self.troubled(&error.into()),
        };
        // The first build may take minutes, and cargo tells what it does; later ones take seconds.
        self.manner.quiet = true;
        let stamp =
            std::fs::metadata(&program).ok().and_then(|data| Some((data.modified().ok()?, data.len())));
        let same = self.built.as_ref().is_some_and(|built| built.stamp == stamp && stamp.is_some());
        if same && self.process.is_some() {
            return self.printer.aside("nothing to build anew");
        }
        let manifests = match self.install(&program).await {
            Ok(manifests) => manifests,
            Err(error) => return self.troubled(&error),
        };
        let time = begin.elapsed().as_secs_f64();
        let name = self.project.name.clone();
        self.printer.remark("project", name, format_args!("built in {time:.1} s"))?;
        self.built = Some(Built { program, stamp, manifests });
        self.falls = 0;
        if self.debugger.is_some() && self.process.is_some() && !self.restart {
            return self
                .printer
                .aside("it runs when the debugger's session ends; --restart does not wait for that");
        }
        if let Some(process) = self.process.take() {
            self.waiting = None;
            process.stop().await;
        }
        self.start().await
    }

    /// Asks the program what it needs in the cluster, and applies that.
    async fn install(&mut self, program: &std::path::Path) -> Result<Manifests, Error> {
        let manifests = Manifests::of(&self.project, program).await?;
        apply::crds(&self.reach.client, manifests.crds()).await?;
        apply::all(&self.reach.client, manifests.others()).await?;
        Ok(manifests)
    }

    /// Starts the operator of the last good build.
    async fn start(&mut self) -> Result<(), Error> {
        self.again = None;
        let Some(built) = &self.built else { return Ok(()) };
        let admin = self.reach.kubeconfig();
        let mut own = admin.as_os_str().to_owned();
        own.push(".operator");
        let account = account::kubeconfig(&self.reach.client, &built.manifests, admin, own.as_ref()).await?;
        let webhooks = built.manifests.webhooks.then(Webhooks::here).transpose()?;
        let plan = Plan {
            program: runnable(&built.program),
            kubeconfig: Some(account.path().to_owned()),
            context: None,
            webhooks,
            serve_webhooks: true,
            debugger: self.debugger.clone(),
            plain: self.manner.plain,
            captured: self.captured,
            log: self.log.clone(),
            own_cluster: true,
            arguments: self.arguments.clone(),
        };
        self.account = Some(account);
        let process = match Process::start(&self.project, &plan).await {
            Ok(process) => process,
            Err(error) => return self.troubled(&error.into()),
        };
        if let Some(debugger) = &self.debugger {
            self.printer.remark("debugger", debugger.address, "the operator waits until one attaches")?;
            self.printer.command(debugger.attach(&plan.program))?;
        }
        // Its reconciles are on the page, wherever its metrics are this time.
        if let Ok(metrics) = format!("http://{}", process.metrics).parse() {
            let shown = self.reach.operators.replace(Config::new(metrics));
            shown.map_err(|error| Error::Client(error.into()))?;
        }
        self.waiting = Some(process.ready());
        self.process = Some(process);
        Ok(())
    }

    /// The operator is ready, or takes longer than it should.
    async fn arrived(&mut self, ready: bool) -> Result<(), Error> {
        let (Some(process), Some(built)) = (&self.process, &self.built) else { return Ok(()) };
        if !ready {
            self.waiting = Some(process.ready());
            if self.debugger.is_none() {
                self.printer.aside("the operator is not ready yet; what it logs says why, -v more of it")?;
            }
            return Ok(());
        }
        let time = process.started.elapsed().as_millis();
        let pid = process.pid().unwrap_or_default();
        let (name, namespace) = (&built.manifests.name, &built.manifests.namespace);
        self.printer.remark(
            "operator",
            name,
            format_args!("pid {pid}, ready in {time} ms, as {namespace}/{name}"),
        )?;
        if !self.told {
            self.printer.fact("crds", built.manifests.crd_names().join(", "))?;
            self.printer.fact("metrics", format_args!("http://{}/metrics", process.metrics))?;
        }
        self.show();
        self.apply_samples().await?;
        if !self.told {
            self.told = true;
            let kinds = self.progress.iter().flat_map(|(kinds, _)| kinds);
            let commands: Vec<String> =
                kinds.take(3).map(|kind| format!("kubectl get {} -A", kind.plural)).collect();
            self.reach.suggest(self.printer, &commands.iter().map(String::as_str).collect::<Vec<_>>())?;
            self.beside = self.quit.take().map(|quit| Beside::start(&self.reach, quit));
        }
        Ok(())
    }

    /// Shows the objects of the operator's kinds as they change.
    fn show(&mut self) {
        let Some(built) = &self.built else { return };
        let kinds = built.manifests.kinds();
        let key = |kind: &ApiResource| (kind.api_version.clone(), kind.plural.clone());
        let same = |known: &[ApiResource]| known.iter().map(key).eq(kinds.iter().map(key));
        if self.progress.as_ref().is_some_and(|(known, _)| same(known)) {
            return;
        }
        if let Some((_, task)) = self.progress.take() {
            task.abort();
        }
        let (client, shown, printer) = (self.reach.client.clone(), kinds.clone(), self.printer);
        let task = tokio::spawn(async move {
            // Whoever closed stdout is told by the next line of this command itself.
            let _ = progress::show(&client, &shown, Instant::now(), printer).await;
        });
        self.progress = Some((kinds, task));
    }

    async fn apply_samples(&mut self) -> Result<(), Error> {
        let Some(samples) = &mut self.samples else { return Ok(()) };
        let outcome = samples.apply(&self.reach.client, &self.project).await;
        if !outcome.applied.is_empty() {
            self.printer.fact("samples", outcome.applied.join(", "))?;
        }
        for error in outcome.failed {
            self.printer.error(&error.into());
        }
        Ok(())
    }

    /// The operator ended by itself.
    fn fell(&mut self, status: std::io::Result<ExitStatus>) -> Result<(), Error> {
        let lived = self.process.take().map(|process| process.started.elapsed()).unwrap_or_default();
        self.waiting = None;
        if lived > LATE {
            self.falls = 0;
        }
        let wait = LATE.min(SOON * 2_u32.saturating_pow(self.falls));
        self.falls += 1;
        self.again = Some(Instant::now() + wait);
        let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
        let what = if self.debugger.is_some() { "the debugger's session" } else { "operator" };
        self.printer.state(
            what,
            false,
            "ended",
            &format!("({status}); starts again in {} s, or when something changes", wait.as_secs()),
        )
    }

    /// Says that the last good build goes on, if there is one.
    fn keep(&self, what: &str) -> Result<(), Error> {
        let rest = match (&self.process, &self.built) {
            (Some(_), _) => "(the operator of the last build goes on)",
            (None, Some(_)) => "(nor did the operator of the last build go on)",
            (None, None) => "(waiting for a change)",
        };
        self.printer.state(&self.project.name, false, what, rest)
    }

    /// Says what is wrong, and goes on.
    fn troubled(&self, error: &Error) -> Result<(), Error> {
        self.printer.error(error);
        self.keep("not started anew")
    }
}

/// What is run: on Windows a copy, since a program that runs cannot be built anew there.
fn runnable(program: &std::path::Path) -> PathBuf {
    if cfg!(windows) {
        let copy = program.with_extension(format!("dev-{}.exe", std::process::id()));
        if std::fs::copy(program, &copy).is_ok() {
            return copy;
        }
    }
    program.to_owned()
}

async fn ended(process: &mut Option<Process>) -> std::io::Result<ExitStatus> {
    match process {
        Some(process) => process.ended().await,
        None => std::future::pending().await,
    }
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}
