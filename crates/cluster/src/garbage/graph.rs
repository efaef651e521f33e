//! Who owns whom. Pure: objects enter as they are seen, the uids that should be looked at leave.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use windlass::{
    ObjectKey,
    k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};

use crate::resources::Resource;

/// The uid of an object.
pub(super) type Uid = Arc<str>;

pub(super) const FOREGROUND: &str = "foregroundDeletion";
pub(super) const ORPHAN: &str = "orphan";

/// What is known of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    pub(super) resource: Arc<Resource>,
    pub(super) key: ObjectKey,
    pub(super) uid: Uid,
    pub(super) owners: Vec<OwnerReference>,
    pub(super) deletion: Deletion,
}

/// How far an object is on its way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deletion {
    /// It stays.
    None,
    /// It goes, and its dependents go after it.
    Background,
    /// It waits for the dependents that block it.
    Foreground,
    /// Its dependents are to be set free first.
    Orphan,
}

impl Item {
    pub(super) fn of(resource: &Arc<Resource>, meta: &ObjectMeta) -> Option<Self> {
        let name = meta.name.as_deref()?;
        let has = |finalizer: &str| meta.finalizers.iter().flatten().any(|one| one == finalizer);
        let deletion = match meta.deletion_timestamp {
            None => Deletion::None,
            Some(_) if has(ORPHAN) => Deletion::Orphan,
            Some(_) if has(FOREGROUND) => Deletion::Foreground,
            Some(_) => Deletion::Background,
        };
        Some(Self {
            resource: resource.clone(),
            key: ObjectKey::new(meta.namespace.as_deref(), name),
            uid: meta.uid.as_deref()?.into(),
            owners: meta.owner_references.clone().unwrap_or_default(),
            deletion,
        })
    }

    fn blocks(&self, owner: &str) -> bool {
        self.owners.iter().any(|one| one.uid == owner && one.block_owner_deletion == Some(true))
    }
}

/// All objects, and the dependents of each.
#[derive(Debug, Default)]
pub(super) struct Graph {
    items: BTreeMap<Uid, Item>,
    dependents: BTreeMap<Uid, BTreeSet<Uid>>,
}

impl Graph {
    pub(super) fn get(&self, uid: &str) -> Option<&Item> {
        self.items.get(uid)
    }

    /// The object that an owner reference of `dependent` means, if it is the one that it says it is.
    pub(super) fn owner(&self, reference: &OwnerReference, dependent: &Item) -> Option<&Item> {
        let item = self.items.get(reference.uid.as_str())?;
        let namespace = if item.resource.namespaced { dependent.key.namespace() } else { None };
        let same = item.resource.is(&reference.api_version, &reference.kind)
            && item.key.name() == reference.name
            && item.key.namespace() == namespace;
        same.then_some(item)
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<&Item> {
        let uids = self.dependents.get(uid).into_iter().flatten();
        uids.filter_map(|dependent| self.items.get(dependent)).collect()
    }

    /// The dependents without whose end the object cannot go.
    pub(super) fn blocking(&self, uid: &str) -> Vec<&Item> {
        self.dependents(uid).into_iter().filter(|dependent| dependent.blocks(uid)).collect()
    }

    /// Enters an object as it is now.
    pub(super) fn put(&mut self, item: Item) -> Vec<Uid> {
        let old = self.items.get(&item.uid).cloned();
        let mut affected = Vec::new();
        if let Some(old) = &old {
            affected.extend(self.unblocked(old, Some(&item)));
            self.unlink(old);
        }
        for owner in &item.owners {
            self.dependents.entry(owner.uid.as_str().into()).or_default().insert(item.uid.clone());
        }
        let before = old.as_ref().map_or(Deletion::None, |old| old.deletion);
        if item.deletion == Deletion::Foreground && before != Deletion::Foreground {
            affected.extend(self.dependents.get(&item.uid).into_iter().flatten().cloned());
        }
        if self.is_due(&item, old.as_ref()) {
            affected.push(item.uid.clone());
        }
        self.items.insert(item.uid.clone(), item);
        affected
    }

    /// Whether an object should be looked at after a change.
    fn is_due(&self, item: &Item, old: Option<&Item>) -> bool {
        match item.deletion {
            Deletion::Foreground | Deletion::Orphan => true,
            Deletion::Background => false,
            Deletion::None => {
                let news = old.is_none_or(|old| old.owners != item.owners);
                news && item.owners.iter().any(|reference| {
                    self.owner(reference, item).is_none_or(|owner| owner.deletion == Deletion::Foreground)
                })
            }
        }
    }

    /// Owners that wait for dependents, and that `old` blocked before it became `new`.
    fn unblocked(&self, old: &Item, new: Option<&Item>) -> Vec<Uid> {
        let waits = |reference: &&OwnerReference| {
            let owner = self.items.get(reference.uid.as_str());
            owner.is_some_and(|owner| owner.deletion == Deletion::Foreground)
                && new.is_none_or(|new| !new.blocks(&reference.uid))
        };
        old.owners.iter().filter(waits).map(|reference| reference.uid.as_str().into()).collect()
    }

    fn unlink(&mut self, item: &Item) {
        for owner in &item.owners {
            if let Some(dependents) = self.dependents.get_mut(owner.uid.as_str()) {
                dependents.remove(&item.uid);
                if dependents.is_empty() {
                    self.dependents.remove(owner.uid.as_str());
                }
            }
        }
    }

    /// Takes out an object that is gone.
    pub(super) fn remove(&mut self, uid: &str) -> Vec<Uid> {
        let Some(item) = self.items.remove(uid) else { return Vec::new() };
        self.unlink(&item);
        let mut affected: Vec<Uid> = self.dependents.get(uid).into_iter().flatten().cloned().collect();
        affected.extend(self.unblocked(&item, None));
        affected
    }

    /// Enters the complete list of a kind.
    pub(super) fn replace(&mut self, resource: &Resource, listed: Vec<Item>) -> Vec<Uid> {
        let kept: BTreeSet<Uid> = listed.iter().map(|item| item.uid.clone()).collect();
        let of_kind = self.items.values().filter(|item| item.resource.to_string() == resource.to_string());
        let gone: Vec<Uid> = of_kind.map(|item| item.uid.clone()).filter(|uid| !kept.contains(uid)).collect();
        let mut affected: Vec<Uid> = gone.iter().flat_map(|uid| self.remove(uid)).collect();
        affected.extend(listed.into_iter().flat_map(|item| self.put(item)));
        let bereft = self.bereft_of(resource).into_iter().filter(|uid| !affected.contains(uid));
        affected.extend(bereft.collect::<Vec<_>>());
        affected
    }

    /// Objects that name an owner of a kind which is not known. When they were looked at, it may have been there, and
    /// gone again before the kind was listed: no event will tell of its end.
    fn bereft_of(&self, resource: &Resource) -> Vec<Uid> {
        let of_kind = |reference: &OwnerReference| resource.is(&reference.api_version, &reference.kind);
        let unknown = self.dependents.iter().filter(|(owner, _)| !self.items.contains_key(*owner));
        let dependents =
            unknown.flat_map(|(owner, dependents)| dependents.iter().map(move |uid| (owner, uid)));
        let named = dependents.filter(|(owner, uid)| {
            let owners = self.items.get(*uid).into_iter().flat_map(|item| &item.owners);
            owners.into_iter().any(|reference| *reference.uid == ***owner && of_kind(reference))
        });
        named.map(|(_, uid)| uid.clone()).collect()
    }

    /// Takes out all objects of a kind that is no longer served.
    pub(super) fn forget(&mut self, resource: &Resource) -> Vec<Uid> {
        self.replace(resource, Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use windlass::kube::discovery::ApiResource;

    use super::*;

    fn resource(kind: &str) -> Arc<Resource> {
        let api = ApiResource {
            group: "apps".into(),
            version: "v1".into(),
            api_version: "apps/v1".into(),
            kind: kind.into(),
            plural: kind.to_lowercase(),
        };
        Arc::new(Resource { api, namespaced: true, watchable: true, collective: true })
    }

    fn item(kind: &str, name: &str, owners: &[(&str, &str, bool)]) -> Item {
        let reference = |(kind, name, block): &(&str, &str, bool)| OwnerReference {
            api_version: "apps/v1".into(),
            kind: (*kind).into(),
            name: (*name).into(),
            uid: format!("uid-{name}"),
            controller: None,
            block_owner_deletion: Some(*block),
        };
        Item {
            resource: resource(kind),
            key: ObjectKey::namespaced("shop", name),
            uid: format!("uid-{name}").into(),
            owners: owners.iter().map(reference).collect(),
            deletion: Deletion::None,
        }
    }

    fn names(uids: Vec<Uid>) -> Vec<String> {
        uids.iter().map(|uid| uid.to_string()).collect()
    }

    #[test]
    fn only_an_object_whose_owner_is_not_known_is_looked_at() {
        let mut graph = Graph::default();
        assert_eq!(names(graph.put(item("Set", "child", &[("Deploy", "web", true)]))), ["uid-child"]);
        assert!(graph.put(item("Deploy", "web", &[])).is_empty());
        assert!(graph.put(item("Set", "other", &[("Deploy", "web", true)])).is_empty());
        // A reference of another kind or name means another object, whatever its uid.
        let mut wrong = item("Set", "wrong", &[("Deploy", "web", true)]);
        wrong.owners[0].name = "db".into();
        assert_eq!(names(graph.put(wrong)), ["uid-wrong"]);
    }

    #[test]
    fn the_end_of_an_owner_leads_to_its_dependents() {
        let mut graph = Graph::default();
        graph.put(item("Deploy", "web", &[]));
        graph.put(item("Set", "a", &[("Deploy", "web", true)]));
        graph.put(item("Set", "b", &[("Deploy", "web", false)]));
        assert_eq!(names(graph.remove("uid-web")), ["uid-a", "uid-b"]);
    }

    #[test]
    fn an_owner_in_the_foreground_waits_for_those_that_block_it() {
        let mut graph = Graph::default();
        graph.put(item("Deploy", "web", &[]));
        graph.put(item("Set", "a", &[("Deploy", "web", true)]));
        graph.put(item("Set", "b", &[("Deploy", "web", false)]));
        let going = Item { deletion: Deletion::Foreground, ..item("Deploy", "web", &[]) };
        assert_eq!(names(graph.put(going)), ["uid-a", "uid-b", "uid-web"]);
        let blocking: Vec<&str> = graph.blocking("uid-web").iter().map(|item| item.key.name()).collect();
        assert_eq!(blocking, ["a"]);
        assert_eq!(names(graph.remove("uid-a")), ["uid-web"]);
        assert!(graph.blocking("uid-web").is_empty());
    }

    #[test]
    fn an_owner_that_went_before_its_kind_was_listed_is_missed() {
        let mut graph = Graph::default();
        graph.put(item("Set", "a", &[("Deploy", "web", true)]));
        assert!(graph.replace(&resource("Other"), Vec::new()).is_empty());
        assert_eq!(names(graph.replace(&resource("Deploy"), vec![item("Deploy", "db", &[])])), ["uid-a"]);
        let known = vec![item("Deploy", "web", &[])];
        assert!(graph.replace(&resource("Deploy"), known).is_empty(), "it is there after all");
    }

    #[test]
    fn a_list_removes_what_it_does_not_hold() {
        let mut graph = Graph::default();
        graph.put(item("Deploy", "web", &[]));
        graph.put(item("Set", "a", &[("Deploy", "web", true)]));
        graph.put(item("Set", "b", &[("Deploy", "web", true)]));
        graph.replace(&resource("Set"), vec![item("Set", "b", &[("Deploy", "web", true)])]);
        assert_eq!(graph.dependents("uid-web").len(), 1);
        assert!(graph.get("uid-a").is_none());
        assert_eq!(names(graph.forget(&resource("Deploy"))), ["uid-b"]);
    }
}
