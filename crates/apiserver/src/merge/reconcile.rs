//! Field sets that were written under an older schema.
//!
//! When a map or list has become atomic since, whoever owned a part of it owns the whole now.

use super::{
    field_set::FieldSet,
    path::{Path, PathElement},
};
use crate::schema::{Atom, ListRelation, Node, NodeId, TypeRef, Types};

/// Makes `set` what it reads as under the schema of today.
pub(crate) fn reconcile(ty: &TypeRef, set: &mut FieldSet) {
    let mut walk = Walk { types: ty.types(), path: Vec::new(), now_atomic: FieldSet::new() };
    walk.value(ty.id(), set, false);
    let now_atomic = walk.now_atomic;
    if !now_atomic.is_empty() {
        *set = set.without(&now_atomic).union(&now_atomic);
    }
}

struct Walk<'a> {
    types: &'a Types,
    path: Vec<&'a PathElement>,
    now_atomic: FieldSet,
}

impl<'a> Walk<'a> {
    /// `whole` says that the set holds this value and nothing below it.
    fn value(&mut self, id: NodeId, set: &'a FieldSet, whole: bool) {
        let node: &'a Node = self.types.get(id);
        match node.atom(None) {
            Some(Atom::Map(map)) => {
                // Data without a schema has no marks that could have changed.
                if node.properties.is_empty() && map.element == Some(crate::schema::DEDUCED) {
                    return;
                }
                if map.atomic && !whole {
                    if !set.is_empty() {
                        self.found();
                    }
                    return;
                }
                self.children(set, |element| match element {
                    PathElement::Field(name) => node.child(name),
                    _ => map.element,
                });
            }
            Some(Atom::List(list)) => {
                if list.relation == ListRelation::Atomic && !whole {
                    self.found();
                    return;
                }
                self.children(set, |_| Some(list.items));
            }
            Some(Atom::Scalar(_)) | None => {}
        }
    }

    fn found(&mut self) {
        let path: Path = self.path.iter().copied().cloned().collect();
        self.now_atomic.insert(&path);
    }

    fn children(&mut self, set: &'a FieldSet, id_of: impl Fn(&PathElement) -> Option<NodeId>) {
        for (element, branch) in set.branches() {
            let Some(id) = id_of(element) else {
                continue;
            };
            self.path.push(element);
            let whole = branch.member && branch.below.is_empty();
            self.value(id, &branch.below, whole);
            self.path.pop();
        }
    }
}
