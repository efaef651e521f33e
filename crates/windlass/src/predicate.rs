//! Filters on updates: which changes of an object are worth a run.
//!
//! A filter sees the old and the new copy of an object that was updated. Additions, deletions and the moment an
//! object starts being deleted always pass, unless the filter was made to decide about them too
//! ([`Predicate::of_changes`]).

use std::{fmt, sync::Arc};

use crate::{cache::Change, object::AnyObject};

type Decide<K> = dyn Fn(&Change<K>) -> bool + Send + Sync;

/// Decides whether a change is worth a run.
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
    /// A filter of updates, from a function of the old and the new copy.
    pub fn new(passes: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Self::of_changes(move |change| match (&change.old, &change.new) {
            (Some(old), Some(new)) => begins_deletion(&**old, &**new) || passes(old, new),
            _ => true,
        })
    }

    /// A filter that decides about additions and deletions as well: what it rejects leads to no run, and a
    /// reconciler that does not hear of a deletion leaves things behind.
    ///
    /// ```
    /// # use windlass::{Predicate, k8s_openapi::api::core::v1::ConfigMap};
    /// let only_deletions = Predicate::<ConfigMap>::of_changes(|change| change.new.is_none());
    /// ```
    pub fn of_changes(passes: impl Fn(&Change<K>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(passes))
    }

    /// Passes when the resource version changed, which is to say when anything did.
    pub fn resource_version_changed() -> Self {
        Self::new(|old, new| old.meta().resource_version != new.meta().resource_version)
    }

    /// Passes when the object was removed or began to be, and for nothing else.
    pub fn deleted() -> Self {
        Self::of_changes(|change| match (&change.old, &change.new) {
            (Some(old), Some(new)) => begins_deletion(&**old, &**new),
            (_, new) => new.is_none(),
        })
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
        Self::of_changes(move |change| self.passes(change) && other.passes(change))
    }

    /// Passes when either passes.
    pub fn or(self, other: Self) -> Self {
        Self::of_changes(move |change| self.passes(change) || other.passes(change))
    }

    /// Passes when this one does not. Of additions and deletions nothing is swallowed.
    pub fn negate(self) -> Self {
        Self::of_changes(move |change| match (&change.old, &change.new) {
            (Some(old), Some(new)) => begins_deletion(&**old, &**new) || !self.passes(change),
            _ => true,
        })
    }

    /// Whether the change passes. An object that was replaced by another one of its name is a deletion and an addition,
    /// either of which may pass.
    pub fn passes(&self, change: &Change<K>) -> bool {
        match (&change.old, &change.new) {
            (Some(old), Some(new)) if old.meta().uid != new.meta().uid => {
                let (deletion, addition) =
                    (Change { new: None, ..change.clone() }, Change { old: None, ..change.clone() });
                (self.0)(&deletion) || (self.0)(&addition)
            }
            _ => (self.0)(change),
        }
    }
}

fn begins_deletion<K: AnyObject>(old: &K, new: &K) -> bool {
    new.meta().deletion_timestamp.is_some() && old.meta().deletion_timestamp.is_none()
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
        assert!(!filter.passes(&change(Some(at_generation(1)), Some(at_generation(1)))));
        assert!(filter.passes(&change(Some(at_generation(1)), Some(at_generation(2)))));
    }

    #[test]
    fn no_filter_swallows_a_deletion() {
        let never = Predicate::new(|_, _| false);
        let mut dying = (*at_generation(1)).clone();
        dying.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(never.passes(&change(Some(at_generation(1)), Some(Arc::new(dying)))));
        assert!(never.passes(&change(Some(at_generation(1)), None)));
        assert!(never.passes(&change(None, Some(at_generation(1)))));
    }

    #[test]
    fn a_recreated_object_passes_every_filter() {
        let of = |uid: &str| {
            let mut object = (*at_generation(1)).clone();
            object.metadata.uid = Some(uid.into());
            object.metadata.resource_version = Some("7".into());
            Some(Arc::new(object))
        };
        // The watch was broken when the first one was deleted.
        let recreated = change(of("one"), of("two"));
        let filters: [fn() -> Predicate<Deployment>; 6] = [
            Predicate::generation_changed,
            Predicate::labels_changed,
            Predicate::annotations_changed,
            Predicate::finalizers_changed,
            Predicate::resource_version_changed,
            || Predicate::new(|_, _| false),
        ];
        for filter in filters {
            assert!(filter().passes(&recreated));
            assert!(filter().negate().passes(&recreated), "of additions and deletions nothing is swallowed");
            for other in filters {
                assert!(filter().and(other()).passes(&recreated) && filter().or(other()).passes(&recreated));
            }
            assert!(!filter().passes(&change(of("one"), of("one"))));
        }
        assert!(Predicate::deleted().passes(&recreated), "the first one is gone");
        let additions = Predicate::of_changes(|change: &Change<Deployment>| change.old.is_none());
        assert!(additions.passes(&recreated) && !additions.passes(&change(of("one"), of("one"))));
    }

    #[test]
    fn filters_combine() {
        let labels = || Predicate::<Deployment>::labels_changed();
        let generation = || Predicate::<Deployment>::generation_changed();
        let update = change(Some(at_generation(1)), Some(at_generation(2)));
        assert!(labels().or(generation()).passes(&update));
        assert!(!labels().and(generation()).passes(&update));
        assert!(labels().negate().passes(&update));
    }

    #[test]
    fn a_filter_of_changes_may_swallow_what_it_is_told_to() {
        let (one, gone) = (at_generation(1), change(Some(at_generation(1)), None));
        assert!(!Predicate::of_changes(|change| change.new.is_some()).passes(&gone));
        let deleted = Predicate::deleted();
        assert!(deleted.passes(&gone) && !deleted.passes(&change(None, Some(one.clone()))));
        assert!(!deleted.passes(&change(Some(one.clone()), Some(at_generation(2)))));
        let mut dying = (*one).clone();
        dying.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
        assert!(deleted.passes(&change(Some(one), Some(Arc::new(dying)))));
    }
}
