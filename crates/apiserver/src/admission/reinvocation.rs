//! Asking again: who wants to be asked a second time, and who is, because others changed what they saw.

use std::collections::BTreeSet;

use serde_json::Value;

/// The rounds in which a list of policies or webhooks is asked about one object.
#[derive(Debug, Default)]
pub(super) struct Reinvocation {
    /// Whether there was a round before, and how the object left it.
    repeated: bool,
    before: Option<Value>,
    /// Those who want to be asked again if somebody changes the object after them.
    willing: BTreeSet<usize>,
    /// Those of them after whom somebody has.
    due: BTreeSet<usize>,
}

impl Reinvocation {
    /// A round begins. What changed between two rounds was changed by others.
    pub(super) fn begin(&mut self, object: Option<&Value>) {
        if self.repeated && self.before.as_ref() != object {
            self.due.append(&mut self.willing);
        }
    }

    /// Whether the one at this place is passed over.
    pub(super) fn skips(&self, index: usize) -> bool {
        self.repeated && !self.due.contains(&index)
    }

    /// The one at this place was asked.
    pub(super) fn asked(&mut self, index: usize, changed: bool, willing: bool) {
        if changed {
            self.due.append(&mut self.willing);
        }
        if willing {
            self.willing.insert(index);
        }
    }

    /// The round is over.
    pub(super) fn end(&mut self, object: Option<&Value>) {
        self.repeated = true;
        self.before = object.cloned();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Who is asked in each of two rounds: by place, whether it changes the object, and whether it wants to be asked again.
    fn rounds(all: &[(bool, bool)], changed_between: bool) -> [Vec<usize>; 2] {
        let mut reinvocation = Reinvocation::default();
        let mut object = 0;
        let mut asked = [Vec::new(), Vec::new()];
        for round in &mut asked {
            reinvocation.begin(Some(&json!(object)));
            for (index, (changes, willing)) in all.iter().enumerate() {
                if reinvocation.skips(index) {
                    continue;
                }
                round.push(index);
                object += i32::from(*changes);
                reinvocation.asked(index, *changes, *willing);
            }
            reinvocation.end(Some(&json!(object)));
            object += i32::from(changed_between);
        }
        asked
    }

    #[test]
    fn only_the_willing_after_whom_something_changed_are_asked_again() {
        assert_eq!(rounds(&[(false, true), (false, true)], false), [vec![0, 1], vec![]]);
        assert_eq!(rounds(&[(false, true), (true, false), (false, true)], false), [vec![0, 1, 2], vec![0]]);
        // Nobody is asked again for what it changed itself, unless somebody else changed something too.
        assert_eq!(rounds(&[(true, true)], false), [vec![0], vec![]]);
        assert_eq!(rounds(&[(true, true), (false, false)], true), [vec![0, 1], vec![0]]);
    }
}
