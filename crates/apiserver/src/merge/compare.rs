//! What a write changed: the fields that two versions of an object differ in.

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap};

use serde_json::{Map, Value};

use super::{
    field_set::FieldSet,
    index::element_of,
    path::{Path, PathElement},
};
use crate::schema::{Atom, ListRelation, ListShape, Node, NodeId, TypeRef, Types, json::equal};

/// The difference between an old and a new object. No field is in two of the sets.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    pub(crate) added: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) removed: FieldSet,
}

impl Comparison {
    pub(crate) fn of(ty: &TypeRef, old: &Value, new: &Value) -> Self {
        let mut walk = Walk { types: ty.types(), path: Vec::new(), found: Comparison::default() };
        walk.value(ty.id(), Some(old), Some(new));
        walk.found
    }

    /// The comparison without `ignored` and all that lies below it.
    pub(crate) fn without(self, ignored: &FieldSet) -> Self {
        if ignored.is_empty() {
            return self;
        }
        Self {
            added: self.added.without(ignored),
            modified: self.modified.without(ignored),
            removed: self.removed.without(ignored),
        }
    }

    pub(crate) fn written(&self) -> Cow<'_, FieldSet> {
        // A new object has nothing that was modified.
        match (self.modified.is_empty(), self.added.is_empty()) {
            (true, _) => Cow::Borrowed(&self.added),
            (_, true) => Cow::Borrowed(&self.modified),
            _ => Cow::Owned(self.modified.union(&self.added)),
        }
    }
}

type Side<'v> = Option<&'v Value>;

/// Whether a value was compared as one or piece by piece.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visited {
    Whole,
    InPieces,
}

struct Walk<'a> {
    types: &'a Types,
    path: Path,
    found: Comparison,
}

impl<'a> Walk<'a> {
    fn below(&mut self, element: PathElement, id: Option<NodeId>, old: Side<'_>, new: Side<'_>) {
        self.path.push(element);
        match id {
            Some(id) => self.value(id, old, new),
            None => self.leaf(old, new),
        }
        self.path.pop();
    }

    fn value(&mut self, id: NodeId, old: Side<'_>, new: Side<'_>) {
        let node: &'a Node = self.types.get(id);
        let (old_atom, new_atom) = (node.atom(old), node.atom(new));
        let visited = match (old, new, old_atom, new_atom) {
            (Some(_), None, Some(atom), _) | (None, Some(_), _, Some(atom)) => {
                self.atom(node, atom, old, new)
            }
            (_, _, Some(was), Some(is)) => {
                // A value that changed its form is gone as the one and new as the other.
                if !was.same_form(&is) {
                    self.atom(node, was, old, new);
                }
                self.atom(node, is, old, new)
            }
            _ => Visited::InPieces,
        };
        if visited == Visited::InPieces {
            match (old, new) {
                (None, Some(_)) => self.found.added.insert(&self.path),
                (Some(_), None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    fn atom(&mut self, node: &Node, atom: Atom<'_>, old: Side<'_>, new: Side<'_>) -> Visited {
        match atom {
            Atom::Scalar(_) => {
                self.leaf(old, new);
                Visited::Whole
            }
            Atom::Map(map) => {
                let (was, is) = (as_map(old), as_map(new));
                // Empty and null are told apart only when the value is looked at as one.
                if map.atomic || (is_none_or_empty(was) && is_none_or_empty(is)) {
                    self.leaf(old, new);
                    return Visited::Whole;
                }
                self.maps(node, was, is);
                Visited::InPieces
            }
            Atom::List(list) => {
                let (was, is) = (as_list(old), as_list(new));
                let atomic = list.relation == ListRelation::Atomic;
                if atomic || (was.is_empty() && is.is_empty()) {
                    self.leaf(old, new);
                    return Visited::Whole;
                }
                self.lists(list, was, is);
                Visited::InPieces
            }
        }
    }

    fn leaf(&mut self, old: Side<'_>, new: Side<'_>) {
        match (old, new) {
            (None, Some(_)) => self.found.added.insert(&self.path),
            (Some(_), None) => self.found.removed.insert(&self.path),
            (Some(old), Some(new)) if !equal(old, new) => self.found.modified.insert(&self.path),
            _ => {}
        }
    }

    fn maps(&mut self, node: &Node, old: Keys<'_>, new: Keys<'_>) {
        for (key, was, is) in pairs(old, new) {
            // Most of an object is as it was: that costs a comparison, and no path.
            if was.zip(is).is_some_and(|(was, is)| equal(was, is)) {
                continue;
            }
            self.below(PathElement::field(key), node.child(key), was, is);
        }
    }

    fn lists(&mut self, list: &ListShape, old: &[Value], new: &[Value]) {
        let mut items: BTreeMap<PathElement, [Vec<&Value>; 2]> = BTreeMap::new();
        for (side, values) in [old, new].into_iter().enumerate() {
            for value in values {
                if let Ok(element) = element_of(self.types, list, value) {
                    items.entry(element).or_default()[side].push(value);
                }
            }
        }
        for (element, [was, is]) in items {
            if was.len() == is.len() && was.iter().zip(&is).all(|(was, is)| equal(was, is)) {
                continue;
            }
            self.items(list, element, &was, &is);
        }
    }

    /// Compares the items of one name. Several of them on one side are looked at as one thing.
    fn items(&mut self, list: &ListShape, element: PathElement, was: &[&Value], is: &[&Value]) {
        let mut path = self.path.clone();
        path.push(element.clone());
        match (was.len(), is.len()) {
            (0 | 1, 0 | 1) => {
                let (was, is) = (was.first().copied(), is.first().copied());
                self.below(element, Some(list.items), was, is);
            }
            (2.., 2..) => self.found.modified.insert(&path),
            (2.., _) => {
                if let Some(is) = is.first() {
                    self.below(element, Some(list.items), None, Some(is));
                }
                self.found.removed.insert(&path);
            }
            _ => {
                if let Some(was) = was.first() {
                    self.below(element, Some(list.items), Some(was), None);
                }
                self.found.added.insert(&path);
            }
        }
    }
}

type Keys<'v> = Option<&'v Map<String, Value>>;

/// The keys of two maps in their order, each with its value on either side. Both maps are sorted.
fn pairs<'v>(old: Keys<'v>, new: Keys<'v>) -> impl Iterator<Item = (&'v String, Side<'v>, Side<'v>)> {
    let mut old = old.into_iter().flatten().peekable();
    let mut new = new.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let first = match (old.peek(), new.peek()) {
            (Some((was, _)), Some((is, _))) => was.cmp(is),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => return None,
        };
        let was = if first == Ordering::Greater { None } else { old.next() };
        let is = if first == Ordering::Less { None } else { new.next() };
        let (key, _) = was.or(is)?;
        Some((key, was.map(|(_, value)| value), is.map(|(_, value)| value)))
    })
}

fn as_map(side: Side<'_>) -> Keys<'_> {
    side.and_then(Value::as_object)
}

fn is_none_or_empty(map: Keys<'_>) -> bool {
    map.is_none_or(Map::is_empty)
}

fn as_list(side: Side<'_>) -> &[Value] {
    side.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
