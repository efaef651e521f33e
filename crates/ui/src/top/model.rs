//! What the terminal view knows and what keys do to it: rows, runs and keys enter, what is to be loaded or ended leaves.

use std::collections::{BTreeMap, BTreeSet};

use windlass::runs::Queued;

use super::{
    key::Key,
    picker::{Picked, Picker},
    style::Line,
};
use crate::{
    health::Health,
    index::Update,
    kinds::Kind,
    row::Row,
    runs::Numbered,
    target::Target,
    tree::{self, Branch, Filter},
};

/// What is shown of the chosen object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Part {
    #[default]
    Runs,
    Events,
    Log,
    Yaml,
    /// What the command says that shows this.
    Output,
}

impl Part {
    pub(crate) const ALL: [Self; 5] = [Self::Runs, Self::Events, Self::Log, Self::Yaml, Self::Output];

    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Log => "log",
            Self::Yaml => "yaml",
            Self::Output => "output",
        }
    }
}

/// Everything that is on the screen.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) cluster: String,
    pub(crate) kinds: Vec<Kind>,
    pub(crate) rows: BTreeMap<String, Row>,
    pub(crate) unreadable: usize,
    pub(crate) whole: bool,
    pub(crate) filter: Filter,
    pub(crate) folded: BTreeSet<String>,
    /// The uid of the chosen object, and where it was last: if it goes, the one that takes its place is chosen.
    pub(crate) chosen: Option<String>,
    pub(crate) place: usize,
    pub(crate) part: Part,
    /// Whether the chosen object takes the whole screen.
    pub(crate) zoomed: bool,
    /// How far its lines are scrolled.
    pub(crate) scrolled: usize,
    /// What is typed into the filter, while it is.
    pub(crate) typing: bool,
    pub(crate) picker: Option<Picker>,
    pub(crate) has_operators: bool,
    pub(crate) has_output: bool,
    pub(crate) runs: Vec<Numbered>,
    pub(crate) queue: Vec<Queued>,
    /// What was loaded of the chosen object, and for which one.
    pub(crate) loaded: Option<Loaded>,
    pub(crate) output: Vec<String>,
    /// How many rows a page has, as last drawn.
    pub(crate) page: usize,
    /// What time it is, in seconds.
    pub(crate) now: i64,
}

/// Lines of a part of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loaded {
    pub(crate) uid: String,
    pub(crate) part: Part,
    pub(crate) lines: Vec<Line>,
}

/// What a key asks for beyond the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Nothing,
    Quit,
}

impl Model {
    /// What is new in the cluster.
    pub(crate) fn update(&mut self, update: Update) {
        if update.reset {
            self.rows.clear();
        }
        if !update.kinds.is_empty() {
            self.kinds = update.kinds;
        }
        for uid in update.del {
            self.rows.remove(&uid);
        }
        self.rows.extend(update.put.into_iter().map(|row| (row.uid.clone(), row)));
        self.unreadable = update.unreadable.len();
        self.whole = update.whole;
        self.settle();
    }

    pub(crate) fn branches(&self) -> Vec<Branch<'_>> {
        tree::flatten(&self.rows, &self.kinds, &self.filter, &self.folded)
    }

    /// Chooses something, if there is anything.
    fn settle(&mut self) {
        let branches = self.branches();
        let at = branches.iter().position(|branch| Some(&branch.row.uid) == self.chosen.as_ref());
        let place = at.unwrap_or(self.place).min(branches.len().saturating_sub(1));
        let chosen = branches.get(place).map(|branch| branch.row.uid.clone());
        if chosen != self.chosen {
            self.scrolled = 0;
        }
        (self.place, self.chosen) = (place, chosen);
    }

    fn go(&mut self, place: usize) {
        self.place = place;
        self.chosen = None;
        self.settle();
        self.scrolled = 0;
    }

    /// The chosen object.
    pub(crate) fn target(&self) -> Option<(&Row, Target)> {
        let row = self.rows.get(self.chosen.as_ref()?)?;
        let kind = self.kinds.get(row.kind)?.clone();
        Some((row, Target { kind, namespace: row.namespace.to_string(), name: row.name.to_string() }))
    }

    /// The parts that the chosen object has here.
    pub(crate) fn parts(&self) -> Vec<Part> {
        let pod = self
            .target()
            .is_some_and(|(_, target)| target.kind.kind == "Pod" && target.kind.group.is_empty());
        let has = |part: &Part| match part {
            Part::Runs => self.has_operators,
            Part::Log => pod,
            Part::Output => self.has_output,
            Part::Events | Part::Yaml => true,
        };
        Part::ALL.into_iter().filter(has).collect()
    }

    /// The part that is shown: the one that was asked for, or the first there is.
    pub(crate) fn shown(&self) -> Part {
        let parts = self.parts();
        if parts.contains(&self.part) { self.part } else { parts.first().copied().unwrap_or(Part::Events) }
    }

    fn turn(&mut self, by: isize) {
        let parts = self.parts();
        let at = parts.iter().position(|part| *part == self.shown()).unwrap_or(0);
        let next = (at as isize + by).rem_euclid(parts.len().max(1) as isize);
        self.part = parts.get(next as usize).copied().unwrap_or_default();
        self.scrolled = 0;
    }

    /// Does what a key means.
    pub(crate) fn press(&mut self, key: Key) -> Asked {
        if key == Key::Interrupt {
            return Asked::Quit;
        }
        if let Some(picker) = &mut self.picker {
            let picked = picker.press(key);
            self.picked(picked);
        } else if self.typing {
            self.typed(key);
        } else {
            return self.command(key);
        }
        Asked::Nothing
    }

    fn picked(&mut self, picked: Picked) {
        if picked == Picked::NotYet {
            return;
        }
        let Some(picker) = self.picker.take() else { return };
        if let Picked::Name(name) = picked {
            if picker.kinds {
                self.filter.kind = name;
            } else {
                self.filter.namespace = name;
            }
        }
        self.settle();
    }

    fn typed(&mut self, key: Key) {
        match key {
            Key::Enter => self.typing = false,
            Key::Escape => {
                self.typing = false;
                self.filter.text.clear();
            }
            Key::Backspace => {
                self.filter.text.pop();
            }
            Key::Character(c) if !c.is_control() => self.filter.text.extend(c.to_lowercase()),
            Key::Up => self.go(self.place.saturating_sub(1)),
            Key::Down => self.go(self.place + 1),
            _ => {}
        }
        self.settle();
    }

    fn command(&mut self, key: Key) -> Asked {
        let page = self.page.max(1);
        match key {
            Key::Character('q') => return Asked::Quit,
            Key::Up | Key::Character('k') if self.zoomed => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Down | Key::Character('j') if self.zoomed => self.scrolled = self.scrolled.saturating_add(1),
            Key::Home | Key::Character('g') if self.zoomed => self.scrolled = 0,
            Key::End | Key::Character('G') if self.zoomed => self.scrolled = usize::MAX,
            Key::Up | Key::Character('k') => self.go(self.place.saturating_sub(1)),
            Key::Down | Key::Character('j') => self.go(self.place + 1),
            Key::Home | Key::Character('g') => self.go(0),
            Key::End | Key::Character('G') => self.go(usize::MAX),
            Key::PageUp if self.zoomed => self.scrolled = self.scrolled.saturating_sub(page),
            Key::PageDown if self.zoomed => self.scrolled = self.scrolled.saturating_add(page),
            Key::PageUp => self.go(self.place.saturating_sub(page)),
            Key::PageDown => self.go(self.place + page),
            Key::Character('K') => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Character('J') => self.scrolled = self.scrolled.saturating_add(1),
            Key::Left | Key::Right if self.zoomed => self.turn(if key == Key::Left { -1 } else { 1 }),
            Key::Left => self.fold(),
            Key::Right => {
                if let Some(uid) = &self.chosen {
                    self.folded.remove(uid);
                }
            }
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(-1),
            Key::Enter => self.zoomed = self.chosen.is_some() || self.has_output,
            Key::Escape if self.zoomed => self.zoomed = false,
            Key::Escape => {
                self.filter = Filter { everything: self.filter.everything, ..Filter::default() };
                self.settle();
            }
            Key::Character('/') => (self.typing, self.zoomed) = (true, false),
            Key::Character('t') => self.picker = Some(Picker::new(true, self.kind_names())),
            Key::Character('n') => self.picker = Some(Picker::new(false, self.namespaces())),
            Key::Character('s') => {
                self.filter.health = next(self.filter.health);
                self.settle();
            }
            Key::Character('a') => {
                self.filter.everything = !self.filter.everything;
                self.settle();
            }
            _ => {}
        }
        Asked::Nothing
    }

    /// The kinds of which there are objects.
    fn kind_names(&self) -> Vec<String> {
        let used: BTreeSet<usize> = self.rows.values().map(|row| row.kind).collect();
        let kinds = used.into_iter().filter_map(|index| self.kinds.get(index));
        let names: BTreeSet<String> = kinds.map(Kind::qualified).collect();
        names.into_iter().collect()
    }

    /// The namespaces in which there are objects.
    fn namespaces(&self) -> Vec<String> {
        let names: BTreeSet<&str> = self.rows.values().map(|row| &*row.namespace).collect();
        names.into_iter().filter(|name| !name.is_empty()).map(ToOwned::to_owned).collect()
    }

    /// Folds what is below the chosen object, or goes to its owner if nothing is.
    fn fold(&mut self) {
        let branches = self.branches();
        let Some(branch) = branches.get(self.place) else { return };
        if branch.open {
            let uid = branch.row.uid.clone();
            self.folded.insert(uid);
            return;
        }
        let owner = branches.iter().position(|other| other.row.uid == *branch.row.owner);
        if let Some(place) = owner {
            self.go(place);
        }
    }
}

/// The next health to ask for: the worst first, then all again.
fn next(health: Option<Health>) -> Option<Health> {
    match health {
        None => Some(Health::Failed),
        Some(Health::Failed) => Some(Health::InProgress),
        Some(Health::InProgress) => Some(Health::Terminating),
        Some(Health::Terminating) => Some(Health::Current),
        Some(_) => None,
    }
}
