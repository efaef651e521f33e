//! Chance that follows from a seed, today and in every later version: a seed in a regression file must go on meaning the
//! same day, so the generator is written down here rather than taken from a library that may change its own.

use std::time::Duration;

/// SplitMix64: a counter and a mixer.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The generator for one purpose of one seed: what is drawn for another purpose does not shift it.
    pub(crate) fn of(seed: u64, purpose: u64) -> Self {
        let mut mixed = Self(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        mixed.next();
        Self(mixed.next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 if there is none.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        Duration::from_millis(self.between(low, high))
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_means_the_same_for_ever() {
        let mut chance = Chance::of(7, 1);
        assert_eq!([chance.below(1000), chance.below(1000), chance.below(1000)], [87, 51, 947]);
    }

    #[test]
    fn purposes_do_not_shift_each_other() {
        let (mut one, mut other) = (Chance::of(7, 1), Chance::of(7, 2));
        assert_ne!(one.next(), other.next());
        let mut again = Chance::of(7, 1);
        assert_eq!(Chance::of(7, 1).next(), again.next());
    }
}
