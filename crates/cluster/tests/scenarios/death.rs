//! Controllers that die at a write, and others that go on: the end is always the same.

use std::{collections::BTreeMap, time::Duration};

use tokio_util::sync::CancellationToken;
use windlass::{
    kube::Client,
    testing::{Fuse, LastWrite},
};
use windlass_apiserver::auth::{Identity, MASTERS};
use windlass_cluster::{Cluster, Controllers};

use super::{
    account::Account,
    ours::{TIMING, runtime, witnessed},
    scenario::Scenario,
};

/// One scenario in so many is played with deaths in an ordinary run; all of them where the variable says so.
const SLICE: u64 = 10;
/// At how many writes the controllers die in an ordinary run.
const DEATHS: u64 = 2;

/// How a life ended.
struct Life {
    account: Account,
    writes: u64,
    died: bool,
}

/// Kills the controllers of a scenario at writes of theirs, and compares what stands in the end.
pub(crate) fn check(scenario: &Scenario) {
    if !everything() && !seed(&scenario.name).is_multiple_of(SLICE) {
        return;
    }
    let undisturbed = live(scenario, None);
    assert!(undisturbed.writes > 0, "{}: the controllers have written nothing", scenario.name);
    let expected = standing(&undisturbed.account);
    for (write, how) in deaths(&scenario.name, undisturbed.writes) {
        let life = live(scenario, Some((write, how)));
        if !life.died {
            continue;
        }
        let stands = standing(&life.account);
        let missing: Vec<_> = expected.iter().filter(|line| !stands.contains(line)).collect();
        let surplus: Vec<_> = stands.iter().filter(|line| !expected.contains(line)).collect();
        assert!(
            missing.is_empty() && surplus.is_empty(),
            "{}: the controllers died at write {write} of {}, {how:?}\nwithout a death: {missing:#?}\nafter it: {surplus:#?}",
            scenario.name,
            undisturbed.writes,
        );
    }
}

/// The writes at which they die: all of them, or a few that differ from scenario to scenario.
fn deaths(name: &str, writes: u64) -> Vec<(u64, LastWrite)> {
    let both = |write| [(write, LastWrite::Unsent), (write, LastWrite::Unanswered)];
    if everything() {
        return (1..=writes).flat_map(both).collect();
    }
    let chosen = (0..DEATHS).map(|number| 1 + seed(name).wrapping_mul(number * 2 + 3) % writes);
    chosen.zip([LastWrite::Unsent, LastWrite::Unanswered].into_iter().cycle()).collect()
}

fn everything() -> bool {
    std::env::var_os("WINDLASS_SCENARIOS_EVERY_WRITE").is_some()
}

fn seed(name: &str) -> u64 {
    name.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()))
}

/// What stands in the end, without how it came there.
fn standing(account: &Account) -> Vec<String> {
    let path = |about: &str| {
        let history = [" | condition ", " | replicas", " | life", " | gone", "event "];
        history.iter().any(|part| about.contains(part) && !about.contains("status."))
    };
    let lasting: BTreeMap<_, _> = account.iter().filter(|(about, _)| !path(about)).collect();
    let lines = lasting.into_iter().flat_map(|(about, values)| {
        values.iter().map(move |(value, count)| format!("{about}: {value} (x{count})"))
    });
    // How often a controller had to write is what a death changes.
    lines.filter(|line| !line.contains("observedGeneration")).collect()
}

fn live(scenario: &Scenario, death: Option<(u64, LastWrite)>) -> Life {
    runtime().block_on(async {
        let cluster = Cluster::builder().without_controllers().start().await.unwrap();
        let (write, how) = death.unwrap_or((u64::MAX, LastWrite::Unsent));
        let fuse = Fuse::new(write, how);
        let manager = || {
            cluster.server().as_user(Identity::new("system:kube-controller-manager", [MASTERS.to_owned()]))
        };
        let controllers = || Controllers {
            nodes: scenario.nodes,
            timing: TIMING,
            heartbeat: None,
            root_ca: Some("authority".into()),
            ..Controllers::default()
        };
        let (clock, stop) = (cluster.clock(), CancellationToken::new());
        let counted = windlass::testing::Requests::default();
        let mortal = Client::new(counted.around(fuse.around(manager())), "default");
        let first = tokio::spawn(controllers().run(mortal, clock, stop.clone()));
        let heirs = async {
            fuse.blown().await;
            first.abort();
            let heir = Client::new(manager(), "default");
            // Whoever watches over the process takes a moment.
            tokio::time::sleep(Duration::from_millis(100)).await;
            controllers().run(heir, clock, stop.clone()).await.unwrap();
        };
        let client = cluster.client();
        let played = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Box::pin(witnessed(scenario, &client)).await
        };
        let account = tokio::select! {
            account = played => account,
            () = heirs => unreachable!("controllers run until they are stopped"),
        };
        stop.cancel();
        let writes = u64::try_from(counted.take_writes().len()).unwrap();
        Life { account, writes, died: fuse.is_blown() }
    })
}
