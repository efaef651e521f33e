//! Merging: the live object with an applied configuration laid over it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Map, Value};

use super::{
    index::element_of,
    path::{Path, PathElement, shown},
};
use crate::schema::{Atom, ListRelation, ListShape, Node, NodeId, TypeRef, Types};

/// `live` with `intent` over it. Fails when a list of the intent names an item twice or not at
/// all; the message is the real server's.
pub(crate) fn combine(ty: &TypeRef, live: &Value, intent: &Value) -> Result<Value, String> {
    let mut walk = Walk { types: ty.types(), path: Vec::new(), problems: Vec::new() };
    let merged = walk.value(ty.id(), Some(live), Some(intent));
    match walk.problems.as_slice() {
        [] => Ok(merged.unwrap_or(Value::Null)),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

type Side<'v> = Option<&'v Value>;

struct Walk<'a> {
    types: &'a Types,
    path: Path,
    problems: Vec<String>,
}

impl<'a> Walk<'a> {
    fn value(&mut self, id: NodeId, live: Side<'_>, intent: Side<'_>) -> Option<Value> {
        let node: &'a Node = self.types.get(id);
        let form_of = if intent.is_some() { intent } else { live };
        match node.atom(form_of) {
            Some(Atom::Map(map)) => {
                let (l, i) = (object_in(live), object_in(intent));
                let empty = l.is_none_or(Map::is_empty) && i.is_none_or(Map::is_empty);
                if map.atomic || empty {
                    return latest(live, intent);
                }
                self.maps(node, l, i)
            }
            Some(Atom::List(list)) => {
                let (l, i) = (items_in(live), items_in(intent));
                if list.relation == ListRelation::Atomic || (l.is_empty() && i.is_empty()) {
                    return latest(live, intent);
                }
                self.lists(list, l, i)
            }
            Some(Atom::Scalar(_)) | None => latest(live, intent),
        }
    }

    fn below(
        &mut self,
        element: PathElement,
        id: Option<NodeId>,
        live: Side<'_>,
        intent: Side<'_>,
    ) -> Option<Value> {
        let Some(id) = id else {
            return latest(live, intent);
        };
        self.path.push(element);
        let merged = self.value(id, live, intent);
        self.path.pop();
        merged
    }

    fn maps(
        &mut self,
        node: &Node,
        live: Option<&Map<String, Value>>,
        intent: Option<&Map<String, Value>>,
    ) -> Option<Value> {
        let keys: BTreeSet<&String> = [live, intent].into_iter().flatten().flat_map(Map::keys).collect();
        let mut merged = Map::new();
        for key in keys {
            let l = live.and_then(|map| map.get(key));
            let i = intent.and_then(|map| map.get(key));
            if let Some(value) = self.below(PathElement::field(key), node.child(key), l, i) {
                merged.insert(key.clone(), value);
            }
        }
        (!merged.is_empty()).then_some(Value::Object(merged))
    }

    fn lists(&mut self, list: &ListShape, live: &[Value], intent: &[Value]) -> Option<Value> {
        let live = self.named(list, live, Repeats::Allowed)?;
        let intent = self.named(list, intent, Repeats::Refused)?;
        let mut merged = Vec::new();
        for step in interleave(&live, &intent) {
            let (element, l, i) = match step {
                Step::Live(index) => {
                    let (element, value) = &live.order[index];
                    (element, Some(*value), None)
                }
                Step::Intent(index) => {
                    let (element, value) = &intent.order[index];
                    (element, live.by_name.get(element).copied(), Some(*value))
                }
            };
            merged.extend(self.below(element.clone(), Some(list.items), l, i));
        }
        (!merged.is_empty()).then_some(Value::Array(merged))
    }

    /// The items with their names; `None` when one could not be named, which was then reported.
    fn named<'v>(&mut self, list: &ListShape, items: &'v [Value], repeats: Repeats) -> Option<Named<'v>> {
        let mut named = Named::default();
        let before = self.problems.len();
        for (index, item) in items.iter().enumerate() {
            let element = match element_of(self.types, list, item) {
                Ok(element) => element,
                Err(problem) => {
                    self.problem(&format!("element {index}: {problem}"));
                    continue;
                }
            };
            let repeated = named.by_name.contains_key(&element);
            if repeated && repeats == Repeats::Refused {
                self.problem(&format!("duplicate entries for key {element}"));
                continue;
            }
            // Items that share a name cannot be merged with anything: the intent replaces them.
            let value = if repeated { &Value::Null } else { item };
            named.by_name.insert(element.clone(), value);
            named.order.push((element, item));
        }
        (self.problems.len() == before).then_some(named)
    }

    fn problem(&mut self, text: &str) {
        let path = shown(&self.path);
        self.problems.push(if path.is_empty() { text.to_owned() } else { format!("{path}: {text}") });
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeats {
    Allowed,
    Refused,
}

#[derive(Default)]
struct Named<'v> {
    order: Vec<(PathElement, &'v Value)>,
    by_name: BTreeMap<PathElement, &'v Value>,
}

/// Which item comes next in a merged list: one that only the live list has, or the intent's.
enum Step {
    Live(usize),
    Intent(usize),
}

/// The order of a merged list: the intent's items in the intent's order, the others where they
/// stood among their neighbours in the live list.
fn interleave(live: &Named<'_>, intent: &Named<'_>) -> Vec<Step> {
    let mut shared: VecDeque<&PathElement> = intent
        .order
        .iter()
        .map(|(element, _)| element)
        .filter(|element| live.by_name.contains_key(*element))
        .collect();
    let mut taken: BTreeSet<&PathElement> = BTreeSet::new();
    let mut steps = Vec::with_capacity(live.order.len().max(intent.order.len()));
    let (mut l, mut i) = (0, 0);
    while l < live.order.len() || i < intent.order.len() {
        let next_live = live.order.get(l).map(|(element, _)| element);
        let next_intent = intent.order.get(i).map(|(element, _)| element);
        if let (Some(ours), Some(theirs)) = (next_live, next_intent) {
            if ours == theirs {
                taken.insert(ours);
                steps.push(Step::Intent(i));
                (l, i) = (l + 1, i + 1);
                shared.pop_front();
                continue;
            }
            // Both lists have it, but the intent wants another one of them first.
            let later = shared.front().is_some_and(|next| *next != ours);
            if intent.by_name.contains_key(ours) && later {
                l += 1;
                continue;
            }
        }
        if let Some(ours) = next_live {
            if !intent.by_name.contains_key(ours) {
                steps.push(Step::Live(l));
                l += 1;
                continue;
            }
            if taken.contains(ours) {
                l += 1;
            }
        }
        if let Some(theirs) = next_intent {
            taken.insert(theirs);
            steps.push(Step::Intent(i));
            i += 1;
            if shared.front() == Some(&theirs) {
                shared.pop_front();
            }
        }
    }
    steps
}

fn latest(live: Side<'_>, intent: Side<'_>) -> Option<Value> {
    intent.or(live).cloned()
}

fn object_in(side: Side<'_>) -> Option<&Map<String, Value>> {
    side.and_then(Value::as_object)
}

fn items_in(side: Side<'_>) -> &[Value] {
    side.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
