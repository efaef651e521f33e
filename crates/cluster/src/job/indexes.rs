//! Completion indexes of an Indexed Job: sets of them, as the status writes them (`0,2-5`). Pure.

use std::ops::RangeInclusive;

use windlass::k8s_openapi::{
    api::batch::v1::JobSpec,
    api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};

use crate::{pod_control, pods};

/// The label and the annotation with a Pod's completion index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// A set of completion indexes, kept as intervals: a few characters can name two billion of them.
///
/// The intervals are in order, and between two of them there is at least one index that is not in the set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(Vec<RangeInclusive<i32>>);

impl Indexes {
    /// Reads what [`Indexes::text`] wrote; what is not below `completions` or is no number is left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut all = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
                all.push(first.max(0)..=last.min(completions.saturating_sub(1)));
            }
        }
        Self::of(all)
    }

    /// The set of all that is in any of the intervals.
    fn of(mut intervals: Vec<RangeInclusive<i32>>) -> Self {
        intervals.retain(|interval| !interval.is_empty());
        intervals.sort_by_key(|interval| *interval.start());
        let mut all: Vec<RangeInclusive<i32>> = Vec::with_capacity(intervals.len());
        for next in intervals {
            match all.last_mut() {
                Some(last) if *next.start() <= last.end().saturating_add(1) => {
                    *last = *last.start()..=*last.end().max(next.end());
                }
                _ => all.push(next),
            }
        }
        Self(all)
    }

    /// As the status shows it: neighbours are joined, three and more as a range.
    pub(super) fn text(&self) -> String {
        let part = |interval: &RangeInclusive<i32>| {
            let (first, last) = (interval.start(), interval.end());
            match last - first {
                0 => first.to_string(),
                1 => format!("{first},{last}"),
                _ => format!("{first}-{last}"),
            }
        };
        self.0.iter().map(part).collect::<Vec<_>>().join(",")
    }

    pub(super) fn has(&self, index: i32) -> bool {
        let at = self.0.partition_point(|interval| *interval.end() < index);
        self.0.get(at).is_some_and(|interval| interval.contains(&index))
    }

    pub(super) fn len(&self) -> i32 {
        sum(self.0.iter().cloned())
    }

    /// How many are in both sets.
    pub(super) fn in_common(&self, other: &Self) -> i32 {
        let shared = |one: &RangeInclusive<i32>| {
            let (first, last) = (*one.start(), *one.end());
            let from = other.0.partition_point(|interval| *interval.end() < first);
            let near = other.0[from..].iter().take_while(move |interval| *interval.start() <= last);
            sum(near.map(|interval| first.max(*interval.start())..=last.min(*interval.end())))
        };
        self.0.iter().map(shared).fold(0, i32::saturating_add)
    }

    /// Adds all of another set.
    pub(super) fn join(&mut self, other: &Self) {
        *self = Self::of(self.0.drain(..).chain(other.0.iter().cloned()).collect());
    }

    /// The indexes below `completions` that are not in the set, in order.
    pub(super) fn missing(&self, completions: i32) -> impl Iterator<Item = i32> {
        let before = std::iter::once(0).chain(self.0.iter().map(|interval| interval.end().saturating_add(1)));
        let after = self.0.iter().map(|interval| *interval.start()).chain(std::iter::once(i32::MAX));
        before.zip(after).flat_map(move |(from, to)| from..to.min(completions))
    }
}

/// How many indexes some intervals have that do not overlap.
fn sum(intervals: impl Iterator<Item = RangeInclusive<i32>>) -> i32 {
    let count = |interval: RangeInclusive<i32>| i64::from(*interval.end()) - i64::from(*interval.start()) + 1;
    i32::try_from(intervals.map(count).sum::<i64>()).unwrap_or(i32::MAX)
}

impl Extend<i32> for Indexes {
    fn extend<T: IntoIterator<Item = i32>>(&mut self, indexes: T) {
        self.join(&Self::of(indexes.into_iter().map(|index| index..=index).collect()));
    }
}

/// The index of a Pod, if it has one that counts.
pub(super) fn of(pod: &Pod, spec: &JobSpec) -> Option<i32> {
    let index: i32 = pods::annotation(pod, INDEX)?.parse().ok()?;
    (0..spec.completions.unwrap_or(0)).contains(&index).then_some(index)
}

/// Makes a Pod the one for an index.
pub(super) fn assign(pod: &mut Pod, job: &str, index: i32) {
    let suffix = format!("-{index}-");
    let room = pod_control::LONGEST_PREFIX.saturating_sub(suffix.len());
    let prefix: String = job.chars().take(room).collect();
    let value = index.to_string();
    pod.metadata.generate_name = Some(format!("{prefix}{suffix}"));
    pod.metadata.annotations.get_or_insert_default().insert(INDEX.to_owned(), value.clone());
    pod.metadata.labels.get_or_insert_default().insert(INDEX.to_owned(), value);
    let spec = pod.spec.get_or_insert_default();
    spec.hostname = Some(format!("{job}-{index}"));
    spec.init_containers.iter_mut().flatten().chain(&mut spec.containers).for_each(tell);
}

/// Tells a container its index, unless it was told something else.
fn tell(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{INDEX}']"),
        ..ObjectFieldSelector::default()
    };
    variables.push(EnvVar {
        name: VARIABLE.into(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn neighbours_are_written_as_ranges_from_three_on() {
        for text in ["", "0", "0,1", "0-2", "1,3-5,7,8", "0-9"] {
            assert_eq!(Indexes::parse(text, 10).text(), text);
        }
        assert_eq!(Indexes::parse("0,1,2,4", 10).text(), "0-2,4");
        assert_eq!(Indexes::parse("2-20", 5).text(), "2-4");
        assert_eq!(Indexes::parse("x,3", 5).text(), "3");
    }

    #[test]
    fn as_many_indexes_as_there_can_be_take_no_room() {
        let all = Indexes::parse("0-2147483646", i32::MAX);
        assert_eq!((all.len(), all.text().as_str()), (i32::MAX, "0-2147483646"));
        assert_eq!(all.in_common(&Indexes::parse("5-2147483647", i32::MAX)), i32::MAX - 5);
        assert_eq!(all.missing(i32::MAX).next(), None);
        let most = Indexes::parse("0-2147483000", i32::MAX);
        assert_eq!(most.missing(i32::MAX).next(), Some(2_147_483_001));
    }

    proptest! {
        /// Intervals behave as the sets of numbers that they stand for.
        #[test]
        fn a_set_of_intervals_is_a_set(
            one in prop::collection::btree_set(0..40_i32, 0..40),
            other in prop::collection::btree_set(0..40_i32, 0..40),
            completions in 0..50_i32,
        ) {
            let set = |numbers: &BTreeSet<i32>| {
                let mut set = Indexes::default();
                set.extend(numbers.iter().rev().copied());
                set
            };
            let (a, b) = (set(&one), set(&other));
            prop_assert_eq!(a.len() as usize, one.len());
            prop_assert_eq!(a.in_common(&b) as usize, one.intersection(&other).count());
            prop_assert!((0..45).all(|index| a.has(index) == one.contains(&index)));
            let missing: Vec<i32> = (0..completions).filter(|index| !one.contains(index)).collect();
            prop_assert_eq!(a.missing(completions).collect::<Vec<_>>(), missing);
            prop_assert_eq!(&Indexes::parse(&a.text(), 40), &a);
            let mut joined = a;
            joined.join(&b);
            prop_assert_eq!(joined, set(&one.union(&other).copied().collect()));
        }
    }

    #[test]
    fn a_long_job_name_leaves_room_for_the_index() {
        let mut pod = Pod::default();
        assign(&mut pod, &"j".repeat(63), 12);
        let prefix = pod.metadata.generate_name.unwrap();
        assert_eq!(prefix.len(), pod_control::LONGEST_PREFIX);
        assert!(prefix.ends_with("-12-"));
    }
}
