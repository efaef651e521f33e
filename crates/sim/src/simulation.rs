//! The simulation of an operator: what an author sets, and the days that are lived.

use std::{ops::Range, panic::Location, sync::Arc, time::Instant};

use windlass::{Kind, Operator, serde_json::Value};
use windlass_cluster::{Builder, testing::documents};

use crate::{
    found::Found,
    objects::Objects,
    plan::Written,
    regressions::Regressions,
    runner::Runner,
    setup::{Invariant, Setup},
};

/// How many days are lived unless somebody says otherwise.
const DAYS: u64 = 20;

/// An operator, what its user does, and what must always hold. See the [crate](crate).
#[derive(Debug)]
pub struct Simulation {
    setup: Arc<Setup>,
    days: u64,
    first: u64,
}

impl Simulation {
    /// The operator that the function makes: once for every life that it has on a day.
    pub fn new(operator: impl Fn() -> Operator + Send + Sync + 'static) -> Self {
        Self { setup: Arc::new(Setup::new(Arc::new(operator))), days: DAYS, first: 0 }
    }

    /// What the user creates at the beginning of a day and deletes at its end, as YAML. The first object of a kind that
    /// the operator reconciles is the one that is changed, deleted and created anew.
    ///
    /// # Panics
    ///
    /// When it is no YAML.
    pub fn objects(mut self, yaml: &str) -> Self {
        let setup = self.edit();
        setup.objects.extend(documents(yaml));
        let is_main = |object: &Value, kind: &Kind| {
            object["kind"] == kind.kind.as_str() && object["apiVersion"] == kind.api_version().as_str()
        };
        let mains = setup.objects.iter().enumerate().find_map(|(at, object)| {
            let kind = setup.reconciled.iter().find(|kind| is_main(object, kind))?;
            Some((at, kind.clone()))
        });
        if let Some((at, kind)) = mains {
            setup.main = kind;
            let main = setup.objects.remove(at);
            setup.objects.insert(0, main);
        }
        self
    }

    /// A change that the user may make to the main object at any time, as a merge patch in YAML: `{spec: {replicas: 5}}`.
    ///
    /// # Panics
    ///
    /// When it is no YAML.
    pub fn change(mut self, yaml: &str) -> Self {
        let setup = self.edit();
        setup.changes.extend(documents(yaml));
        setup.scope.changes = setup.changes.len();
        self
    }

    /// Something that must hold after every change of any object, such as "at most one primary". It is asked with the
    /// objects of the operator's kinds and all Pods.
    pub fn invariant(
        mut self,
        name: impl Into<String>,
        check: impl Fn(&Objects) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.edit().invariants.push(Invariant { name: name.into(), check: Box::new(check) });
        self
    }

    /// Takes out of each object what may differ from the undisturbed day, beyond what is taken out anyway: uids, versions,
    /// times, addresses, generated names, digests, the contents of Secrets and the status of built-in kinds.
    pub fn ignoring(mut self, normalise: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.edit().normalise = Box::new(normalise);
        self
    }

    /// Compares the objects of one more kind with those of the undisturbed day: one that the operator makes without owning it.
    pub fn comparing<K: windlass::Object>(mut self) -> Self {
        let (setup, kind) = (self.edit(), Kind::of::<K>());
        if !setup.kinds.contains(&kind) {
            setup.kinds.push(kind);
        }
        self
    }

    /// Nobody but the operator touches its objects of this kind.
    pub fn sparing(mut self, kind: &str) -> Self {
        self.edit().children.retain(|child| child.kind != kind);
        self
    }

    /// Leaves a fault (such as `watch-lags`) or an act (such as `node-down`) out of all days.
    pub fn without(mut self, word: &str) -> Self {
        self.edit().scope.without.push(word.to_owned());
        self
    }

    /// Runs the operator with leader election, and lets it lose its lease.
    pub fn with_leader_election(mut self) -> Self {
        self.edit().scope.leader = true;
        self
    }

    /// Another cluster for each day. Its seed, its start time and its nodes are the simulation's.
    pub fn cluster(mut self, builder: impl Fn() -> Builder + Send + Sync + 'static) -> Self {
        self.edit().cluster = Box::new(builder);
        self
    }

    /// How many days are lived: 20 unless set here, or with the environment variable `SIM_DAYS`.
    pub fn days(mut self, days: u64) -> Self {
        self.days = days;
        self
    }

    /// The seed of the first day: 0 unless set here, or with the environment variable `SIM_FIRST`.
    pub fn first(mut self, seed: u64) -> Self {
        self.first = seed;
        self
    }

    /// Lives the days that once were bad, then as many as are asked for; or the one that `SIM_SEED` says, with its story.
    ///
    /// # Panics
    ///
    /// On the first day on which something is broken, with its story and the line that replays it. The day is kept in
    /// a file beside the test.
    #[track_caller]
    pub fn run(self) {
        let test = std::thread::current().name().unwrap_or("simulation").to_owned();
        let kept = Regressions::beside(Location::caller().file(), &test);
        let mut runner = Runner::new(self.setup);
        if let Ok(text) = std::env::var("SIM_SEED") {
            let day: Written = text.parse().unwrap_or_else(|why| panic!("{why}"));
            match runner.replay(&day) {
                Ok(story) => eprintln!("{test}: the day {day}\n{story}"),
                Err(found) => panic!("{test}: the day {day}\n\n{found}"),
            }
            return;
        }
        let days = number("SIM_DAYS").unwrap_or(self.days);
        let first = number("SIM_FIRST").unwrap_or(self.first);
        let old = kept.days().unwrap_or_else(|why| panic!("{why}"));
        let began = Instant::now();
        let found = runner.search(&old, first, days);
        let (lived, took) = (runner.lived, began.elapsed());
        let rate = lived as f64 * 60.0 / took.as_secs_f64().max(0.001);
        eprintln!("{test}: {lived} days in {took:.1?}, {rate:.0} a minute");
        let Some(found) = found else { return };
        let written: Option<Written> = found.day.parse().ok();
        let file = written.and_then(|day| kept.keep(&day, found.oracle));
        let file = file.map_or_else(String::new, |file| format!("\nkept in {}", file.display()));
        let again = format!("SIM_SEED='{}' cargo test {test}", found.day);
        panic!("{test}: a bad day, after {} others\n\n{found}\n\nonce more: {again}{file}", found.after);
    }

    /// The first of the days on which something is broken; nothing is printed or kept.
    pub fn search(self) -> Option<Found> {
        Runner::new(self.setup).search(&[], self.first, self.days)
    }

    /// Lives a day, as `SIM_SEED` takes it.
    ///
    /// # Errors
    ///
    /// What was broken on it.
    ///
    /// # Panics
    ///
    /// When that is no day.
    pub fn replay(self, day: &str) -> Result<(), Found> {
        let day: Written = day.parse().unwrap_or_else(|why| panic!("{why}"));
        Runner::new(self.setup).replay(&day).map(drop)
    }

    /// Everything that happened on each of these days: the operator's requests with their times and answers, and a digest of
    /// every version of every object of all the usual kinds.
    ///
    /// The same seed gives the same record, or the operator draws from a chance, a clock or an order that is not the
    /// simulation's: a `HashMap`, `SystemTime::now`, a thread.
    pub fn record(&self, seeds: Range<u64>) -> Vec<String> {
        let mut runner = Runner::new(self.setup.clone());
        seeds.map(|seed| runner.record(seed)).collect()
    }

    fn edit(&mut self) -> &mut Setup {
        Arc::get_mut(&mut self.setup).expect("a simulation must have one owner until it runs")
    }
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}: write a number")))
}
