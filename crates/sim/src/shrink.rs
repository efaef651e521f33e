//! A bad day made shorter: fewer faults and fewer steps, as long as the same is broken.

use std::collections::BTreeMap;

use crate::{day::Outcome, fault::Fault, plan::Plan};

/// How many days are lived for it at most.
const MOST_DAYS: usize = 80;

/// Makes a bad day shorter. `live` lives a day.
pub(crate) fn shrink(
    plan: Plan,
    outcome: Outcome,
    mut live: impl FnMut(&Plan) -> Outcome,
) -> (Plan, Outcome) {
    let Some(oracle) = outcome.broken.as_ref().map(|broken| broken.oracle) else { return (plan, outcome) };
    let mut left = MOST_DAYS;
    let mut judge = |plan: &Plan| {
        left = left.checked_sub(1)?;
        Some(live(plan)).filter(|outcome| outcome.broken.as_ref().is_some_and(|one| one.oracle == oracle))
    };
    // Some operators are broken on every day.
    let bare = plan.with_steps(Vec::new()).with_faults(BTreeMap::new());
    if let Some(lived) = judge(&bare) {
        return (bare, lived);
    }
    // The faults that came to pass, each at its request, are the same day.
    let exact = plan.with_faults(outcome.hits.clone());
    let Some(lived) = judge(&exact) else { return (plan, outcome) };
    let mut best = (exact, lived);
    loop {
        let before = (best.1.hits.len(), best.0.steps.len());
        fewer_faults(&mut best, &mut judge);
        fewer_steps(&mut best, &mut judge);
        if (best.1.hits.len(), best.0.steps.len()) == before {
            return best;
        }
    }
}

/// Leaves out halves of the faults, then quarters, then single ones.
fn fewer_faults(best: &mut (Plan, Outcome), judge: &mut impl FnMut(&Plan) -> Option<Outcome>) {
    let mut size = best.1.hits.len();
    while size > 0 {
        let mut from = 0;
        while from < best.1.hits.len() {
            let hits = &best.1.hits;
            let kept = hits.iter().enumerate().filter(|(index, _)| !(from..from + size).contains(index));
            let kept: BTreeMap<u64, Fault> = kept.map(|(_, (number, fault))| (*number, *fault)).collect();
            let plan = best.0.with_faults(kept);
            match judge(&plan) {
                // What is left may not come to pass any more: then it is left out as well.
                Some(outcome) => *best = (plan.with_faults(outcome.hits.clone()), outcome),
                None => from += size,
            }
        }
        size /= 2;
    }
}

fn fewer_steps(best: &mut (Plan, Outcome), judge: &mut impl FnMut(&Plan) -> Option<Outcome>) {
    let mut index = 0;
    while index < best.0.steps.len() {
        let mut steps = best.0.steps.clone();
        steps.remove(index);
        let plan = best.0.with_steps(steps);
        match judge(&plan) {
            Some(outcome) => *best = (plan.with_faults(outcome.hits.clone()), outcome),
            None => index += 1,
        }
    }
}
