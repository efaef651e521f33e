//! What is in a cluster and what operators do, in a terminal: the tree, the runs, the events, the log.
//!
//! It sees what the page sees, through the same index, the same judgement and the same record of runs. Nothing that is
//! shown can move the cursor, change colours or turn the direction of the text, wherever it comes from.

mod draw;
mod key;
mod model;
mod output;
mod parts;
mod picker;
mod screen;
mod style;
#[cfg(test)]
mod tests;
mod text;

use std::{
    future::Future,
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crossterm::event::{self, Event};
use ratatui_core::terminal::Terminal;
use tokio::{sync::mpsc, task::JoinHandle};
use windlass::{jiff::Timestamp, kube::Client};

use self::{
    key::Key,
    model::{Asked, Loaded, Model, Part},
    screen::Screen,
};
pub use self::{output::Output, text::Abilities};
pub use crate::tree::Filter;
use crate::{
    index::{Cursor, Index, View},
    runs::{Gathered, Operators},
};

/// How long changes are collected before they are drawn.
const COLLECT: Duration = Duration::from_millis(50);
/// How often what is not watched is asked for again, and ages are drawn anew.
const AGAIN: Duration = Duration::from_secs(1);
/// How long a key may take to be noticed when this ends.
const POLL: Duration = Duration::from_millis(100);
/// How long a cluster may take to tell what is in it, where it is told once.
const LISTED: Duration = Duration::from_secs(30);

/// What a terminal shows.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What the cluster is called.
    pub cluster: String,
    /// Which objects are shown at first.
    pub filter: Filter,
    /// Operators whose reconciles are shown.
    pub operators: Operators,
    /// What the command says meanwhile that shows this, if it says anything.
    pub output: Option<Output>,
}

/// Shows a cluster until somebody quits or `stop` resolves; then the terminal is as it was.
pub async fn show(
    client: Client,
    options: Options,
    abilities: Abilities,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let index = Index::new(client.clone());
    let runs: Arc<Gathered> = Arc::default();
    let gathering = runs.clone().gather(options.operators.clone(), index.clone());
    let mut shown = Shown {
        view: index.view(),
        cursor: Cursor::default(),
        runs,
        model: Model {
            cluster: options.cluster,
            filter: options.filter,
            has_operators: !options.operators.is_empty(),
            has_output: options.output.is_some(),
            ..Model::default()
        },
        operators: options.operators,
        output: options.output,
        client,
        abilities,
        loading: None,
    };
    tokio::select! {
        ended = shown.work() => ended,
        () = gathering => Ok(()),
        () = stop => Ok(()),
    }
}

/// The tree as lines of text, once everything is listed.
pub async fn lines(client: Client, options: Options, abilities: Abilities) -> Vec<String> {
    let index = Index::new(client);
    let mut view = index.view();
    let (mut cursor, mut model) = (Cursor::default(), Model { filter: options.filter, ..Model::default() });
    let listed = async {
        loop {
            model.update(index.update(&mut cursor));
            if model.whole || view.sequence.changed().await.is_err() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(LISTED, listed).await;
    model.branches().iter().map(|branch| draw::branch(branch, abilities).plain(abilities)).collect()
}

struct Shown {
    client: Client,
    view: View,
    cursor: Cursor,
    runs: Arc<Gathered>,
    operators: Operators,
    output: Option<Output>,
    model: Model,
    abilities: Abilities,
    loading: Option<JoinHandle<Loaded>>,
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some(task) = &self.loading {
            task.abort();
        }
    }
}

impl Shown {
    async fn work(&mut self) -> io::Result<()> {
        let mut terminal = Terminal::new(Screen::take()?)?;
        let (mut keys, _reading) = keys();
        let mut runs = self.runs.changed();
        let output = self.output.clone().unwrap_or_default();
        let mut told = output.changed();
        let mut tick = tokio::time::interval(AGAIN);
        loop {
            self.refresh();
            if terminal.backend_mut().again()? {
                terminal.clear()?;
            }
            let (model, abilities) = (&mut self.model, self.abilities);
            terminal.draw(|frame| draw::draw(model, frame.buffer_mut(), abilities))?;
            tokio::select! {
                key = keys.recv() => match key {
                    Some(Some(key)) => if self.model.press(key) == Asked::Quit { return Ok(()) },
                    Some(None) => {}
                    None => return Ok(()),
                },
                _ = self.view.sequence.changed() => tokio::time::sleep(COLLECT).await,
                _ = runs.changed() => {}
                _ = told.changed() => tokio::time::sleep(COLLECT).await,
                loaded = loaded(&mut self.loading) => {
                    self.loading = None;
                    if let Some(loaded) = loaded {
                        self.model.loaded = Some(loaded);
                    }
                }
                _ = tick.tick() => self.load(true),
            }
        }
    }

    /// Takes in what is new everywhere.
    fn refresh(&mut self) {
        self.view.sequence.mark_unchanged();
        self.model.update(self.view.index.update(&mut self.cursor));
        self.model.now = Timestamp::now().as_second();
        self.model.has_operators = !self.operators.is_empty();
        if let Some(output) = &self.output {
            self.model.output = output.lines();
        }
        let target = self.model.target().map(|(_, target)| target);
        if let Some(target) = target {
            self.model.runs = self.runs.of(&target.resource(), &target.namespace, &target.name);
            self.model.queue = self.runs.since(u64::MAX).1;
        }
        self.load(false);
    }

    /// Asks for what is shown of the chosen object, if it is another one now, or once more.
    fn load(&mut self, again: bool) {
        let part = self.model.shown();
        let Some((row, target)) = self.model.target() else { return };
        if matches!(part, Part::Runs | Part::Output) {
            return;
        }
        let same = |loaded: &Loaded| loaded.uid == row.uid && loaded.part == part;
        if self.loading.is_some() || (!again && self.model.loaded.as_ref().is_some_and(same)) {
            return;
        }
        let (client, uid) = (self.client.clone(), row.uid.clone());
        self.loading = Some(tokio::spawn(async move {
            let lines = parts::load(client, target, part).await;
            Loaded { uid, part, lines }
        }));
    }
}

async fn loaded(loading: &mut Option<JoinHandle<Loaded>>) -> Option<Loaded> {
    match loading {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}

/// Ends the thread that reads keys.
struct Reading(Arc<AtomicBool>);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The keys that are pressed; `None` among them is a new size. The end of input is the end of the keys.
fn keys() -> (mpsc::Receiver<Option<Key>>, Reading) {
    let (sender, receiver) = mpsc::channel(64);
    let ended = Arc::new(AtomicBool::new(false));
    let end = ended.clone();
    std::thread::spawn(move || {
        while !end.load(Ordering::Relaxed) {
            match event::poll(POLL) {
                Ok(false) => continue,
                Ok(true) => {}
                Err(_) => return,
            }
            let key = match event::read() {
                Ok(Event::Key(event)) => match Key::of(event) {
                    Some(key) => Some(key),
                    None => continue,
                },
                Ok(Event::Resize(..)) => None,
                Ok(_) => continue,
                Err(_) => return,
            };
            if sender.blocking_send(key).is_err() {
                return;
            }
        }
    });
    (receiver, Reading(ended))
}
