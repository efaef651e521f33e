//! `windlass top`: the cluster in a terminal; and the same beside `windlass dev`, which goes on meanwhile.

use std::io::IsTerminal;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass::kube::Client;
use windlass_ui::top::{self, Abilities, Options, Output};

use super::{cluster::Reach, page};
use crate::{
    args::TopArgs, connection, diverted::Diverted, error::Error, printer::Printer, signals::Signals,
};

/// Whether somebody sits before a terminal that can show more than lines.
fn is_possible() -> bool {
    let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    std::io::stdout().is_terminal() && std::io::stdin().is_terminal() && !dumb
}

/// Whether a command that goes on shows its cluster in the terminal.
pub(super) fn is_wanted(plain: bool, printer: Printer) -> bool {
    !plain && !printer.is_quiet() && is_possible()
}

fn abilities() -> Abilities {
    Abilities::of(|name| std::env::var(name).ok())
}

/// `windlass top`.
pub(super) async fn run(args: &TopArgs, printer: Printer) -> Result<(), Error> {
    let signals = Signals::new()?;
    let (kubeconfig, context) = (args.connection.kubeconfig.as_ref(), args.connection.context.as_deref());
    let config = connection::config(kubeconfig, context).await?;
    let cluster = connection::context(kubeconfig, context).unwrap_or_default();
    let operators = page::operators(&config, args.runs.as_ref())?;
    let client = Client::try_from(config).map_err(|error| Error::Client(error.into()))?;
    operators.find(client.clone());
    client.apiserver_version().await.map_err(|error| Error::Reach(error.into()))?;
    let mut options = Options { cluster, filter: args.filter(), operators, output: None };
    if !is_possible() {
        let lines = tokio::select! {
            lines = top::lines(client, options, abilities()) => lines,
            () = signals.received() => return Ok(()),
        };
        let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
        return printer.answer(text.as_bytes());
    }
    let output = Output::default();
    options.output = Some(output.clone());
    let diverted = Diverted::begin(output);
    let shown = top::show(client, options, abilities(), signals.received()).await;
    drop(diverted);
    shown.map_err(Error::Terminal)
}

/// A terminal view beside a command that goes on.
#[derive(Debug)]
pub(super) struct Beside {
    stop: CancellationToken,
    task: JoinHandle<Result<(), Error>>,
}

impl Beside {
    /// Shows a cluster of ours; `quit` is called when somebody has seen enough.
    pub(super) fn start(reach: &Reach, quit: impl FnOnce() + Send + 'static) -> Self {
        let stop = CancellationToken::new();
        let (client, operators, stopped) =
            (reach.client.clone(), reach.operators.clone(), stop.clone().cancelled_owned());
        let task = tokio::spawn(async move {
            let output = Output::default();
            let options = Options {
                cluster: "windlass".into(),
                operators,
                output: Some(output.clone()),
                ..Options::default()
            };
            let diverted = Diverted::begin(output);
            let shown = top::show(client, options, abilities(), stopped).await;
            drop(diverted);
            quit();
            shown.map_err(Error::Terminal)
        });
        Self { stop, task }
    }

    /// Gives the terminal back, before anything else is said of what came of the command.
    pub(super) async fn ended(beside: Option<Self>, result: Result<(), Error>) -> Result<(), Error> {
        let Some(Self { stop, task }) = beside else { return result };
        stop.cancel();
        let ended = task.await.unwrap_or(Ok(()));
        result.and(ended)
    }
}
