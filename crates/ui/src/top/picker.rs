//! Choosing one of many names: keys enter, a name leaves.

use super::key::Key;

/// What came of choosing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    /// It goes on.
    NotYet,
    /// It is over, and all stays as it is.
    Nothing,
    /// This one; the empty name is all of them.
    Name(String),
}

/// Names, what is typed to find one of them, and the one that is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Picker {
    /// Whether they are kinds, or else namespaces.
    pub(crate) kinds: bool,
    names: Vec<String>,
    pub(crate) typed: String,
    pub(crate) at: usize,
}

impl Picker {
    pub(crate) fn new(kinds: bool, names: Vec<String>) -> Self {
        Self { kinds, names, ..Self::default() }
    }

    /// What can be chosen: all of them, then each that has what is typed in it.
    pub(crate) fn choices(&self) -> Vec<&str> {
        let found = self.names.iter().filter(|name| name.contains(&self.typed)).map(String::as_str);
        if self.typed.is_empty() { std::iter::once("").chain(found).collect() } else { found.collect() }
    }

    /// What a key does.
    pub(crate) fn press(&mut self, key: Key) -> Picked {
        let last = self.choices().len().saturating_sub(1);
        match key {
            Key::Escape => return Picked::Nothing,
            Key::Enter => {
                let name = self.choices().get(self.at).map(|name| (*name).to_owned());
                return name.map_or(Picked::Nothing, Picked::Name);
            }
            Key::Up => self.at = self.at.saturating_sub(1),
            Key::Down => self.at = (self.at + 1).min(last),
            Key::Backspace => {
                self.typed.pop();
                self.at = 0;
            }
            Key::Character(c) if !c.is_control() => {
                self.typed.push(c);
                self.at = 0;
            }
            _ => {}
        }
        Picked::NotYet
    }
}
