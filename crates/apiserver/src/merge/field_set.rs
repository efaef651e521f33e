//! Sets of fields: who owns what, and what a write changed.
//!
//! A set is a tree of path elements; being on the way to a member does not make one a member.
//! Every operation returns a set without empty branches, so that equality is structural.

use std::collections::BTreeMap;

use super::path::{Path, PathElement};
use crate::schema::{Node, NodeId, Types};

/// A set of paths into an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    branches: BTreeMap<PathElement, Branch>,
}

/// What the set knows about one element: whether it is a member, and which members lie below.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Branch {
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

impl Branch {
    fn is_empty(&self) -> bool {
        !self.member && self.below.is_empty()
    }
}

impl FieldSet {
    /// The empty set.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The set of these dotted paths (`metadata.labels`); names with dots need [`Self::insert`].
    pub(crate) fn of_paths<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut set = Self::new();
        for path in paths {
            let path: Path = path.split('.').map(PathElement::field).collect();
            set.insert(&path);
        }
        set
    }

    /// Adds one path. The root itself cannot be owned: an empty path changes nothing.
    pub(crate) fn insert(&mut self, path: &[PathElement]) {
        let Some((first, rest)) = path.split_first() else {
            return;
        };
        // Paths mostly share their beginning with one that is there: no copy of it is made to find that out.
        if !self.branches.contains_key(first) {
            self.branches.insert(first.clone(), Branch::default());
        }
        let Some(branch) = self.branches.get_mut(first) else { return };
        if rest.is_empty() {
            branch.member = true;
        } else {
            branch.below.insert(rest);
        }
    }

    /// Whether nothing is in the set.
    pub(crate) fn is_empty(&self) -> bool {
        self.branches.is_empty()
    }

    /// Whether exactly this path is a member.
    pub(crate) fn contains(&self, path: &[PathElement]) -> bool {
        let Some((first, rest)) = path.split_first() else {
            return false;
        };
        let Some(branch) = self.branches.get(first) else {
            return false;
        };
        if rest.is_empty() { branch.member } else { branch.below.contains(rest) }
    }

    /// Everything that is in either set.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        for (element, theirs) in &other.branches {
            let branch = union.branches.entry(element.clone()).or_default();
            branch.member |= theirs.member;
            branch.below = branch.below.union(&theirs.below);
        }
        union
    }

    /// Everything that is in both sets.
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        self.keep(|element, ours| {
            let theirs = other.branches.get(element)?;
            Some(Branch {
                member: ours.member && theirs.member,
                below: ours.below.intersection(&theirs.below),
            })
        })
    }

    /// Everything that is here and not there. A member there takes nothing that lies below it.
    pub(crate) fn difference(&self, other: &Self) -> Self {
        self.keep(|element, ours| {
            Some(match other.branches.get(element) {
                None => ours.clone(),
                Some(theirs) => Branch {
                    member: ours.member && !theirs.member,
                    below: ours.below.difference(&theirs.below),
                },
            })
        })
    }

    /// Everything that is here and is neither there nor below anything there.
    pub(crate) fn without(&self, other: &Self) -> Self {
        self.keep(|element, ours| match other.branches.get(element) {
            None => Some(ours.clone()),
            Some(theirs) if theirs.member => None,
            Some(theirs) => Some(Branch { member: ours.member, below: ours.below.without(&theirs.below) }),
        })
    }

    fn keep(&self, choose: impl Fn(&PathElement, &Branch) -> Option<Branch>) -> Self {
        let branches = self.branches.iter().filter_map(|(element, branch)| {
            let kept = choose(element, branch)?;
            (!kept.is_empty()).then(|| (element.clone(), kept))
        });
        Self { branches: branches.collect() }
    }

    /// All members, those of one level before those below it, as conflicts are listed.
    pub(crate) fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect(&self, prefix: &mut Path, paths: &mut Vec<Path>) {
        for (element, branch) in &self.branches {
            if branch.member {
                paths.push(prefix.iter().chain([element]).cloned().collect());
            }
        }
        for (element, branch) in &self.branches {
            prefix.push(element.clone());
            branch.below.collect(prefix, paths);
            prefix.pop();
        }
    }

    pub(crate) fn branches(&self) -> impl Iterator<Item = (&PathElement, &Branch)> {
        self.branches.iter()
    }

    pub(crate) fn branch(&self, element: &PathElement) -> Option<&Branch> {
        self.branches.get(element)
    }

    pub(crate) fn put(&mut self, element: PathElement, branch: Branch) {
        if !branch.is_empty() {
            self.branches.insert(element, branch);
        }
    }

    /// The set with the struct fields on the way to its members as members.
    ///
    /// A set read from a configuration names leaves; to remove what was configured, the structs
    /// that hold the leaves have to go as well. Keys of maps and items of lists are owned
    /// explicitly and are left alone.
    pub(crate) fn with_named_fields(&self, types: &Types, id: Option<NodeId>) -> Self {
        let node = id.map(|id| types.get(id));
        self.keep(|element, ours| {
            let (named, child) = match (element, node) {
                (PathElement::Field(name), Some(node)) if node.shape.map.is_some() => {
                    (node.properties.contains_key(name), node.child(name))
                }
                (PathElement::Key(_), Some(node)) => (false, list_items(node)),
                _ => (false, None),
            };
            Some(Branch {
                member: ours.member || (named && !ours.below.is_empty()),
                below: ours.below.with_named_fields(types, child),
            })
        })
    }
}

fn list_items(node: &Node) -> Option<NodeId> {
    node.shape.list.as_ref().map(|list| list.items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(paths: &[&str]) -> FieldSet {
        FieldSet::of_paths(paths.iter().copied())
    }

    #[test]
    fn a_parent_takes_no_children_in_a_plain_difference() {
        let ours = set(&["a", "a.b", "a.c"]);
        assert_eq!(ours.difference(&set(&["a"])), set(&["a.b", "a.c"]));
        assert_eq!(ours.without(&set(&["a"])), FieldSet::new());
        assert_eq!(ours.without(&set(&["a.b"])), set(&["a", "a.c"]));
    }

    #[test]
    fn intersection_and_union_agree_on_members() {
        let (left, right) = (set(&["a", "b.c"]), set(&["b.c", "b.d"]));
        assert_eq!(left.intersection(&right), set(&["b.c"]));
        assert_eq!(left.union(&right), set(&["a", "b.c", "b.d"]));
    }

    #[test]
    fn the_root_cannot_be_owned() {
        let mut set = FieldSet::new();
        set.insert(&[]);
        assert!(set.is_empty());
    }
}
