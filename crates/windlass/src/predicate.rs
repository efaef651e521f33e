//! Filters on updates: which changes of an object are worth a run.
//!
//! A filter sees the old and the new copy of an object that was updated. Additions, deletions and the moment an
//! object starts being deleted always pass: a filter cannot swallow them.

use std::{fmt, sync::Arc};

use crate::{cache::Change, object::AnyObject};

type Decide<K> = dyn Fn(&K, &K) -> bool + Send + Sync;

/// Decides whether an update is worth a run.
pub struct Predicate<K>(Arc<Decide<K>>);

impl<K> Clone for Predicate<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Predicate<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate")
    }
}

impl<K: AnyObject> Predicate<K> {
    /// A filter from a function of the old and the new copy.
    pub fn new(passes: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    /// Passes when the spec changed: status updates do not.
    ///
    /// For kinds without a generation (ConfigMaps, Secrets, Services, …) every update passes.
    pub fn generation_changed() -> Self {
        Self::new(|old, new| {
            let (old, new) = (old.meta().generation, new.meta().generation);
            old != new || new.is_none()
        })
    }

    /// Passes when the labels changed.
    pub fn labels_changed() -> Self {
        Self::new(|old, new| old.meta().labels != new.meta().labels)
    }

    /// Passes when the annotations changed.
    pub fn annotations_changed() -> Self {
        Self::new(|old, new| old.meta().annotations != new.meta().annotations)
    }

    /// Passes when the finalizers changed.
    pub fn finalizers_changed() -> Self {
        Self::new(|old, new| old.meta().finalizers != new.meta().finalizers)
    }

    /// Passes when both pass.
    pub fn and(self, other: Self) -> Self {
        Self::new(move |old, new| self.passes(old, new) && other.passes(old, new))
    }

    /// Passes when either passes.
    pub fn or(self, other: Self) -> Self {
        Self::new(move |old, new| self.passes(old, new) || other.passes(old, new))
    }

    /// Passes when this one does not.
    pub fn negate(self) -> Self {
        Self::new(move |old, new| !self.passes(old, new))
    }

    /// Whether the update passes.
    pub fn passes(&self, old: &K, new: &K) -> bool {
        (self.0)(old, new)
    }

    pub(crate) fn admits(&self, change: &Change<K>) -> bool {
        match (&change.old, &change.new) {
            (Some(old), Some(new)) => {
                let being_deleted = |object: &K| object.meta().deletion_timestamp.is_some();
                (being_deleted(new) && !being_deleted(old)) || self.passes(old, new)
            }
            _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::{
        api::apps::v1::Deployment,
        apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
        jiff::Timestamp,
    };

    use super::*;
    use crate::object::ObjectKey;

    fn at_generation(generation: i64) -> Arc<Deployment> {
        let metadata = ObjectMeta { generation: Some(generation), ..ObjectMeta::default() };
        Arc::new(Deployment { metadata, ..Deployment::default() })
    }

    fn change(old: Option<Arc<Deployment>>, new: Option<Arc<Deployment>>) -> Change<Deployment> {
        Change { key: ObjectKey::cluster("x"), old, new, initial: false }
    }

    #[test]
    fn a_status_update_does_not_pass_the_generation_filter() {
        let filter = Predicate::generation_changed();
        assert!(!filter.admits(&change(Some(at_generation(1)), Some(at_generation(1)))));
        assert!(filter.admits(&change(Some(at_generation(1)), Some(at_generation(2)))));
    }

    #[test]
    fn no_filter_swallows_a_deletion() {
        let never = Predicate::new(|_, _| false);
        let mut dying = (*at_generation(1)).clone();
        dying.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(never.admits(&change(Some(at_generation(1)), Some(Arc::new(dying)))));
        assert!(never.admits(&change(Some(at_generation(1)), None)));
        assert!(never.admits(&change(None, Some(at_generation(1)))));
    }

    #[test]
    fn filters_combine() {
        let labels = || Predicate::<Deployment>::labels_changed();
        let generation = || Predicate::<Deployment>::generation_changed();
        let (one, two) = (at_generation(1), at_generation(2));
        assert!(labels().or(generation()).passes(&one, &two));
        assert!(!labels().and(generation()).passes(&one, &two));
        assert!(labels().negate().passes(&one, &two));
    }
}
