//! What happens on one day: what the user and the surroundings do, and when requests may fail. All of it follows from a
//! seed, and each part can be left out, which is how a bad day is made shorter.

use std::{collections::BTreeMap, fmt, str::FromStr, time::Duration};

use crate::{
    chance::Chance,
    fault::{Fault, WORDS},
};

/// How long the disturbed part of a day lasts, before and after the object is deleted.
pub(crate) const DISTURBED: [Duration; 2] = [Duration::from_mins(2), Duration::from_secs(45)];

/// The most faults of one day: a day on which nothing works at all shows nothing.
const MOST_FAULTS: usize = 25;

/// What somebody other than the operator does. Numbers choose among what there is at the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The user makes the author's change with this index.
    Change(usize),
    /// The user deletes the object and creates it anew.
    Recreate,
    /// Somebody deletes a child.
    DeleteChild(u64),
    /// Somebody edits a child.
    EditChild(u64),
    /// Somebody deletes a Pod.
    DeletePod(u64),
    /// A Pod is evicted by its node.
    EvictPod(u64),
    /// The containers of a Pod end with an error for some time.
    CrashPod(u64, Duration),
    /// A node is down for some time.
    NodeDown(u64, Duration),
    /// The operator is restarted as a rollout does it.
    Restart,
    /// The API server cannot reach the webhooks for some time.
    WebhooksDown(Duration),
    /// Another replica takes the lease.
    LoseLease,
}

impl Act {
    /// Whether it decides what the end should be. What does not is left out of the undisturbed day.
    pub(crate) fn is_intent(self) -> bool {
        matches!(self, Self::Change(_) | Self::Recreate)
    }
}

/// Something that is done at a time, counted from the beginning of the day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) at: Duration,
    pub(crate) act: Act,
}

/// A time in which requests fail in one way, each by chance.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// Which disturbed part of the day.
    part: usize,
    from: Duration,
    to: Duration,
    word: &'static str,
    percent: u64,
}

/// When requests fail.
#[derive(Clone, Debug)]
enum Faults {
    Windows(Vec<Window>),
    /// By the number of the request.
    Exact(BTreeMap<u64, Fault>),
}

/// One day.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// With their index among all steps of the seed.
    pub(crate) steps: Vec<(usize, Step)>,
    faults: Faults,
}

/// What the author allows, as far as a plan depends on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) changes: usize,
    pub(crate) webhooks: bool,
    pub(crate) leader: bool,
    /// Words of faults and of acts that never happen.
    pub(crate) without: Vec<String>,
}

impl Plan {
    pub(crate) fn of(seed: u64, scope: &Scope) -> Self {
        let mut chance = Chance::of(seed, 1);
        let mut steps: Vec<Step> = Vec::new();
        for _ in 0..chance.below(4).min(scope.changes as u64 * 3) {
            let act = Act::Change(chance.below(scope.changes as u64) as usize);
            steps.push(Step { at: chance.millis(0, 90_000), act });
        }
        for _ in 0..chance.below(5) {
            let act = disturbance(&mut chance, scope);
            steps.push(Step { at: chance.millis(0, 110_000), act });
        }
        steps.retain(|step| !scope.without.iter().any(|word| word == name(step.act)));
        steps.sort_by_key(|step| step.at);
        let words: Vec<&'static str> =
            WORDS.into_iter().filter(|word| !scope.without.iter().any(|not| not == word)).collect();
        let mut windows = Vec::new();
        for _ in 0..if words.is_empty() { 0 } else { chance.between(1, 5) } {
            let part = usize::from(chance.below(5) < 2);
            let length = DISTURBED[part].as_millis() as u64;
            let from = chance.millis(0, length * 2 / 3);
            let to = (from + chance.millis(500, length / 2)).min(DISTURBED[part]);
            // Most of what an operator does for a new or a deleted object, it does in the first second.
            let from = if chance.below(2) == 0 || part == 1 { Duration::ZERO } else { from };
            let percent = *chance.one(&[3, 8, 15, 30, 60]);
            let word: &'static str = chance.one::<&'static str>(words.as_slice());
            windows.push(Window { part, from, to, word, percent });
        }
        Self { seed, steps: steps.into_iter().enumerate().collect(), faults: Faults::Windows(windows) }
    }

    /// What the user wants and nothing else: no faults, no surroundings.
    pub(crate) fn undisturbed(&self) -> Self {
        let steps = self.steps.iter().filter(|(_, step)| step.act.is_intent()).copied().collect();
        Self { seed: 0, steps, faults: Faults::Exact(BTreeMap::new()) }
    }

    /// What the user wants, in order: days with the same wishes have the same end.
    pub(crate) fn wishes(&self) -> Vec<Act> {
        self.steps.iter().map(|(_, step)| step.act).filter(|act| act.is_intent()).collect()
    }

    /// The same day with these faults at these requests, and no others.
    pub(crate) fn with_faults(&self, faults: BTreeMap<u64, Fault>) -> Self {
        Self { faults: Faults::Exact(faults), ..self.clone() }
    }

    /// The same day with some of its steps.
    pub(crate) fn with_steps(&self, steps: Vec<(usize, Step)>) -> Self {
        Self { steps, ..self.clone() }
    }

    /// What goes wrong with a request; `part` and `at` say when it is.
    pub(crate) fn fault(
        &self,
        number: u64,
        (part, at): (usize, Duration),
        so_far: usize,
        fits: impl Fn(Fault) -> bool,
    ) -> Option<Fault> {
        match &self.faults {
            Faults::Exact(faults) => faults.get(&number).copied().filter(|fault| fits(*fault)),
            Faults::Windows(_) if so_far >= MOST_FAULTS => None,
            Faults::Windows(windows) => {
                let open = windows.iter().enumerate();
                let mut open = open.filter(|(_, one)| one.part == part && one.from <= at && at < one.to);
                open.find_map(|(index, window)| {
                    let mut chance = Chance::of(self.seed, (number << 8) | 0x80 | index as u64);
                    let hit = chance.below(100) < window.percent;
                    Fault::draw(window.word, &mut chance).filter(|fault| hit && fits(*fault))
                })
            }
        }
    }
}

fn disturbance(chance: &mut Chance, scope: &Scope) -> Act {
    let pick = chance.next();
    loop {
        return match chance.below(11) {
            0 => Act::Recreate,
            1 | 2 => Act::DeleteChild(pick),
            3 => Act::EditChild(pick),
            4 => Act::DeletePod(pick),
            5 => Act::EvictPod(pick),
            6 => Act::CrashPod(pick, chance.millis(1000, 60_000)),
            7 => Act::NodeDown(pick, chance.millis(1000, 400_000)),
            8 => Act::Restart,
            9 if scope.webhooks => Act::WebhooksDown(chance.millis(1000, 40_000)),
            10 if scope.leader => Act::LoseLease,
            _ => continue,
        };
    }
}

/// The word for an act.
pub(crate) fn name(act: Act) -> &'static str {
    match act {
        Act::Change(_) => "change",
        Act::Recreate => "recreate",
        Act::DeleteChild(_) => "delete-child",
        Act::EditChild(_) => "edit-child",
        Act::DeletePod(_) => "delete-pod",
        Act::EvictPod(_) => "evict-pod",
        Act::CrashPod(..) => "crash-pod",
        Act::NodeDown(..) => "node-down",
        Act::Restart => "restart",
        Act::WebhooksDown(_) => "webhooks-down",
        Act::LoseLease => "lose-lease",
    }
}

/// How a day is written in one word: its seed, and what is left of it once it was made shorter:
/// `17`, or `17:0,3:12@crash-after,15@slow=800`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) seed: u64,
    pub(crate) parts: Option<(Vec<usize>, BTreeMap<u64, Fault>)>,
}

impl Written {
    pub(crate) fn plan(&self, scope: &Scope) -> Plan {
        let plan = Plan::of(self.seed, scope);
        match &self.parts {
            None => plan,
            Some((steps, faults)) => {
                let kept = plan.steps.iter().filter(|(index, _)| steps.contains(index)).copied().collect();
                plan.with_steps(kept).with_faults(faults.clone())
            }
        }
    }
}

impl From<&Plan> for Written {
    fn from(plan: &Plan) -> Self {
        let parts = match &plan.faults {
            Faults::Windows(_) => None,
            Faults::Exact(faults) => {
                Some((plan.steps.iter().map(|(index, _)| *index).collect(), faults.clone()))
            }
        };
        Self { seed: plan.seed, parts }
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.seed)?;
        let Some((steps, faults)) = &self.parts else { return Ok(()) };
        let steps: Vec<String> = steps.iter().map(ToString::to_string).collect();
        let faults: Vec<String> = faults.iter().map(|(at, fault)| format!("{at}@{fault}")).collect();
        write!(f, ":{}:{}", steps.join(","), faults.join(","))
    }
}

impl FromStr for Written {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = |part: &str| {
            format!(
                "SIM_SEED: {part:?} of {text:?} cannot be read: write a number, or what a failed test has printed"
            )
        };
        let mut parts = text.split(':');
        let seed = parts.next().unwrap_or_default();
        let seed = seed.trim().parse().map_err(|_| bad(seed))?;
        let (steps, faults) = match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => return Ok(Self { seed, parts: None }),
            (Some(steps), Some(faults), None) => (steps, faults),
            _ => return Err(bad(text)),
        };
        let all =
            |list: &str| list.split(',').filter(|one| !one.is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let steps =
            all(steps).iter().map(|one| one.parse().map_err(|_| bad(one))).collect::<Result<_, _>>()?;
        let mut at = BTreeMap::new();
        for one in all(faults) {
            let (number, fault) = one.split_once('@').ok_or_else(|| bad(&one))?;
            at.insert(number.parse().map_err(|_| bad(&one))?, fault.parse()?);
        }
        Ok(Self { seed, parts: Some((steps, at)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope() -> Scope {
        Scope { changes: 2, webhooks: true, leader: true, without: Vec::new() }
    }

    #[test]
    fn a_day_is_written_and_read_again() {
        for text in ["17", "17::", "17:0,3:12@crash-after,15@slow=800", "0:1:"] {
            assert_eq!(text.parse::<Written>().unwrap().to_string(), text);
        }
        for bad in ["", "x", "1:2", "1:a:", "1::5", "1::5@rain", "1:::"] {
            assert!(bad.parse::<Written>().is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_left_out_never_happens() {
        let without = vec!["recreate".to_owned(), "slow".to_owned()];
        let scope = Scope { without, ..scope() };
        for seed in 0..300 {
            let plan = Plan::of(seed, &scope);
            assert!(plan.steps.iter().all(|(_, step)| step.act != Act::Recreate));
            let Faults::Windows(windows) = &plan.faults else { panic!("windows") };
            assert!(windows.iter().all(|window| window.word != "slow"));
        }
    }

    #[test]
    fn every_act_and_every_fault_is_drawn() {
        let (mut acts, mut words) = (std::collections::BTreeSet::new(), std::collections::BTreeSet::new());
        for seed in 0..500 {
            let plan = Plan::of(seed, &scope());
            acts.extend(plan.steps.iter().map(|(_, step)| name(step.act)));
            let Faults::Windows(windows) = &plan.faults else { panic!("windows") };
            words.extend(windows.iter().map(|window| window.word));
        }
        assert_eq!((acts.len(), words.len()), (11, WORDS.len()));
    }
}
