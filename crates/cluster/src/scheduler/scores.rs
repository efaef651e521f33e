//! Which of the nodes that will do is the best: every preference as a number of points, added up with
//! kube-scheduler's weights. Pure.
//!
//! Where kube-scheduler draws lots among equals, the node with the fewest Pods is taken, and the first by name.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{filters::Incoming, host::Host, taints, terms::Namespaces};
use crate::node_affinity;

mod allocation;
mod inter_pod;
mod spread;

/// The most points that a preference gives.
const MOST: i64 = 100;

/// How many Pods of the same owner are on each node.
pub(super) type Siblings = BTreeMap<String, i64>;

/// What is compared.
pub(super) struct Contest<'a> {
    pub(super) incoming: &'a Incoming,
    /// All nodes: what is on those that will not do counts too.
    pub(super) hosts: &'a [Host],
    /// Those that will.
    pub(super) fitting: &'a [&'a Host],
    pub(super) namespaces: &'a Namespaces,
    pub(super) siblings: &'a Siblings,
}

impl<'a> Contest<'a> {
    /// The best of the nodes that will do; `None` if there is none.
    pub(super) fn winner(&self) -> Option<&'a Host> {
        if let [only] = self.fitting {
            return Some(only);
        }
        let points = self.points();
        let rank =
            |(host, points): &(&'a Host, i64)| (Reverse(*points), host.used.pods, host.name().to_owned());
        self.fitting.iter().copied().zip(points).min_by_key(rank).map(|(host, _)| host)
    }

    fn points(&self) -> Vec<i64> {
        let (spec, tolerations) = (self.incoming.spec(), self.incoming.tolerations());
        let each = |points: &dyn Fn(&Host) -> i64| self.fitting.iter().map(|host| points(host)).collect();
        let weighted = [
            (3, less_is_better(each(&|host| taints::discouraging(&host.node, tolerations)))),
            (2, more_is_better(each(&|host| node_affinity::preference(spec, &host.node)))),
            (1, each(&|host| allocation::least(&self.incoming.own.demand, host))),
            (1, each(&|host| allocation::balanced(&self.incoming.own.demand, host))),
            (2, spread::points(self)),
            (2, inter_pod::points(self)),
        ];
        let mut sum = vec![0; self.fitting.len()];
        for (weight, points) in weighted {
            for (sum, points) in sum.iter_mut().zip(points) {
                *sum += weight * points;
            }
        }
        sum
    }
}

/// The highest number gets the most points; if all are zero, so are the points.
fn more_is_better(numbers: Vec<i64>) -> Vec<i64> {
    let highest = numbers.iter().copied().max().unwrap_or(0);
    if highest == 0 { numbers } else { numbers.iter().map(|number| MOST * number / highest).collect() }
}

fn less_is_better(numbers: Vec<i64>) -> Vec<i64> {
    more_is_better(numbers).iter().map(|points| MOST - points).collect()
}

#[cfg(test)]
mod tests;
