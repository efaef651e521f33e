//! Field sets, one allocation for all that are alike.
//!
//! Most children of a kind have one shape, so their sets are few. Where every object has a set of its own, entering one
//! still takes constant time on average: unused sets are looked for only after as many new ones as are in use.

use std::{collections::BTreeSet, sync::Arc};

use crate::wire::FieldSet;

/// How many sets there may be before the first look for unused ones.
const FEW: usize = 1024;

#[derive(Debug)]
pub(super) struct Interned {
    sets: BTreeSet<Arc<FieldSet>>,
    /// How many sets there may be before unused ones are looked for.
    limit: usize,
    /// How many sets have been looked at.
    #[cfg(test)]
    looked_at: usize,
}

impl Default for Interned {
    fn default() -> Self {
        Self {
            sets: BTreeSet::new(),
            limit: FEW,
            #[cfg(test)]
            looked_at: 0,
        }
    }
}

impl Interned {
    pub(super) fn intern(&mut self, fields: FieldSet) -> Arc<FieldSet> {
        if let Some(known) = self.sets.get(&fields) {
            return known.clone();
        }
        if self.sets.len() >= self.limit {
            self.forget_unused();
        }
        let fields = Arc::new(fields);
        self.sets.insert(fields.clone());
        fields
    }

    fn forget_unused(&mut self) {
        #[cfg(test)]
        {
            self.looked_at += self.sets.len();
        }
        self.sets.retain(|set| Arc::strong_count(set) > 1);
        self.limit = (self.sets.len() * 2).max(FEW);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(number: usize) -> FieldSet {
        FieldSet::parse(&format!(r#"{{"f:data":{{"f:k{number}":{{}}}}}}"#)).unwrap()
    }

    #[test]
    fn a_hundred_thousand_different_sets_are_looked_at_a_few_times_each() {
        let (mut interned, mut kept) = (Interned::default(), Vec::new());
        for number in 0..100_000 {
            kept.push(interned.intern(set(number)));
            assert!(interned.looked_at <= 2 * kept.len(), "{} looks at {}", interned.looked_at, kept.len());
        }
        assert_eq!(interned.sets.len(), kept.len());
        assert!(Arc::ptr_eq(&kept[7], &interned.intern(set(7))));
    }

    #[test]
    fn sets_that_nothing_uses_are_forgotten() {
        let mut interned = Interned::default();
        for number in 0..100_000 {
            interned.intern(set(number));
        }
        assert!(interned.sets.len() <= FEW);
        assert!(interned.looked_at <= 100_000, "{}", interned.looked_at);
    }
}
