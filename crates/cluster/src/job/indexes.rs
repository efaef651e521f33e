//! Completion indexes of an Indexed Job: sets of them, as the status writes them (`0,2-5`). Pure.

use std::collections::BTreeSet;

use windlass::k8s_openapi::{
    api::batch::v1::JobSpec,
    api::core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};

use crate::{pod_control, pods};

/// The label and the annotation with a Pod's completion index.
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";

const VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// A set of completion indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Indexes(BTreeSet<i32>);

impl Indexes {
    /// Reads what [`Indexes::text`] wrote; what is not below `completions` or is no number is left out.
    pub(super) fn parse(text: &str, completions: i32) -> Self {
        let mut all = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
                all.extend(first.max(0)..=last.min(completions - 1));
            }
        }
        Self(all)
    }

    /// As the status shows it: neighbours are joined, three and more as a range.
    pub(super) fn text(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        let mut rest = self.0.iter().copied().peekable();
        while let Some(first) = rest.next() {
            let mut last = first;
            while let Some(next) = rest.next_if(|next| *next == last + 1) {
                last = next;
            }
            parts.push(match last - first {
                0 => first.to_string(),
                1 => format!("{first},{last}"),
                _ => format!("{first}-{last}"),
            });
        }
        parts.join(",")
    }

    pub(super) fn has(&self, index: i32) -> bool {
        self.0.contains(&index)
    }

    pub(super) fn len(&self) -> i32 {
        i32::try_from(self.0.len()).unwrap_or(i32::MAX)
    }

    /// How many are in both sets.
    pub(super) fn in_common(&self, other: &Self) -> i32 {
        i32::try_from(self.0.intersection(&other.0).count()).unwrap_or(i32::MAX)
    }
}

impl Extend<i32> for Indexes {
    fn extend<T: IntoIterator<Item = i32>>(&mut self, indexes: T) {
        self.0.extend(indexes);
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
    fn a_long_job_name_leaves_room_for_the_index() {
        let mut pod = Pod::default();
        assign(&mut pod, &"j".repeat(63), 12);
        let prefix = pod.metadata.generate_name.unwrap();
        assert_eq!(prefix.len(), pod_control::LONGEST_PREFIX);
        assert!(prefix.ends_with("-12-"));
    }
}
