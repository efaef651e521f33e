//! Cycles of a graph: for each two names that reach each other, one shortest way around.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

type Graph<'a> = BTreeMap<&'a str, Vec<&'a str>>;

/// One cycle through each name that is in one, each cycle once, the shorter ones first.
pub(super) fn find<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let mut known = BTreeSet::new();
    let mut cycles: Vec<Vec<&str>> = graph
        .keys()
        .filter_map(|start| shortest(graph, start))
        .filter(|cycle| known.insert(cycle.iter().copied().collect::<BTreeSet<_>>()))
        .collect();
    cycles.sort_by_key(Vec::len);
    cycles
}

/// The shortest way from a name back to itself.
fn shortest<'a>(graph: &Graph<'a>, start: &&'a str) -> Option<Vec<&'a str>> {
    let mut from: BTreeMap<&str, &str> = BTreeMap::new();
    let mut queue = VecDeque::from([*start]);
    while let Some(name) = queue.pop_front() {
        for next in graph.get(name).into_iter().flatten() {
            if next == start {
                let mut way = vec![name];
                while let Some(before) =
                    way.last().filter(|last| *last != start).and_then(|last| from.get(last))
                {
                    way.push(before);
                }
                way.reverse();
                return Some(way);
            }
            if !from.contains_key(next) {
                from.insert(next, name);
                queue.push_back(next);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(edges: &[(&'static str, &'static str)]) -> Vec<Vec<&'static str>> {
        let mut graph = Graph::new();
        for (from, to) in edges {
            graph.entry(from).or_default().push(to);
        }
        find(&graph)
    }

    #[test]
    fn every_knot_is_found_and_an_order_has_none() {
        assert_eq!(cycles(&[("a", "b"), ("b", "c"), ("a", "c")]), Vec::<Vec<&str>>::new());
        assert_eq!(cycles(&[("a", "b"), ("b", "a")]), [["a", "b"]]);
        assert_eq!(cycles(&[("a", "b"), ("b", "c"), ("c", "a"), ("x", "a")]), [["a", "b", "c"]]);
        let two = cycles(&[("a", "b"), ("b", "a"), ("c", "d"), ("d", "e"), ("e", "c")]);
        assert_eq!(two, [vec!["a", "b"], vec!["c", "d", "e"]]);
    }
}
