//! `windlass dev` in a project: an embedded cluster, and the project's operator on it, built and started anew whenever
//! the project changes. What is in the cluster stays.
//!
//! What cannot be built or applied is told, and whatever ran before goes on running: nothing that an author types into
//! a file ends this command.

mod session;

use self::session::{Quit, Session};
use crate::{
    args::DevArgs,
    commands::{
        cluster::Running,
        top::{self, Beside},
    },
    error::Error,
    operator::debugger::Debugger,
    printer::Printer,
    project::{self, Project},
    signals::Signals,
};

pub(super) async fn run(
    args: &DevArgs,
    project: Project,
    verbose: u8,
    printer: Printer,
) -> Result<(), Error> {
    if !args.only.is_empty() {
        return Err(project::Error::Only { name: project.name }.into());
    }
    let debugger = args.debugger.debugger.map(Debugger::find).transpose()?;
    let signals = Signals::new()?;
    let mut cluster = args.cluster.clone();
    cluster.kubeconfig.get_or_insert_with(|| project.root.join(".windlass").join("kubeconfig"));
    let mut running = tokio::select! {
        running = Running::start(&cluster, printer) => running?,
        () = signals.received() => return Ok(()),
    };
    let quit = top::is_wanted(args.plain, printer).then(|| signals.ask());
    let mut session = Session::new(args, project, running.reach(), debugger, verbose, printer);
    session.show_when_ready(quit.map(|quit| Box::new(quit) as Quit));
    let result = tokio::select! {
        result = session.work() => result,
        error = running.failed() => Err(error),
        () = signals.received() => Ok(()),
    };
    let result = Beside::ended(session.shown(), result).await;
    // First the operator, while the API server still answers it.
    let stopped = signals.stopping(async {
        session.stop().await;
        running.stop().await
    });
    result.and(stopped.await)?;
    printer.aside("stopped")
}
