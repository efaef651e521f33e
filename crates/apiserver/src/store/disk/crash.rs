//! A durable store under `kill -9` and on a full disk: what was acknowledged is there.
//!
//! The process that is killed is this test binary itself, run again for one ignored test that writes as fast
//! as it can and prints what was acknowledged.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::Duration,
};

use crate::{
    data_directory::DataDirectory,
    store::{DiskFailed, DiskOptions, Draft, Key, Store, TableName, WriteError},
};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};

const DIRECTORY: &str = "WINDLASS_TEST_CRASH_DIRECTORY";
const SYNC: &str = "WINDLASS_TEST_CRASH_SYNC";
const WRITERS: u64 = 32;
const KILLS: u64 = 200;

fn table() -> TableName {
    TableName { group: "".into(), plural: "things".into() }
}

fn draft(name: &str, turn: u64) -> Draft {
    let value = json!({"kind": "Thing", "apiVersion": "v1", "metadata": {"name": name, "labels": {"turn": turn.to_string()}},
        "padding": "x".repeat(usize::try_from(turn % 700).unwrap())});
    Draft::encode(&value, Arc::from([]))
}

fn open(path: &Path, sync: bool) -> Store {
    // Checkpoints all the time: they must be safe to be killed in, too.
    let options = DiskOptions { history: 64, checkpoint_after: 64 * 1024, sync, reserve: 0 };
    Store::open(&DataDirectory::open(path).unwrap(), options).unwrap()
}

/// One writer owns one name: it creates, replaces and removes it, and says what has been acknowledged.
async fn write(store: Arc<Store>, writer: u64) -> Result<(), DiskFailed> {
    let (table, name) = (table(), format!("thing-{writer}"));
    let key = Key::new("default", &name);
    for turn in 0.. {
        let before = store.get(&table, &key);
        let removed = before.is_some() && turn % 5 == 4;
        let written = match before {
            None => store.create(&table, key.clone(), draft(&name, turn)),
            Some(at) if removed => store.delete(&table, &key, at.revision, draft(&name, turn)),
            Some(at) => store.update(&table, &key, at.revision, draft(&name, turn)),
        };
        let revision = match written {
            Err(WriteError::Disk(why)) => return Err(why),
            written => written.unwrap().revision,
        };
        store.durable(revision).await?;
        // The write after this one may reach the disk without being acknowledged.
        let state = if removed {
            "removed"
        } else if turn % 5 == 3 {
            "removed-next"
        } else {
            "there"
        };
        let line = format!("{name} {revision} {state}\n");
        // One write call, so that a kill leaves whole lines before the last.
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by its neighbours, which kill it"]
async fn the_process_that_is_killed() {
    let Ok(path) = std::env::var(DIRECTORY) else { return };
    let sync = std::env::var(SYNC).is_ok_and(|sync| sync == "true");
    let store = Arc::new(open(Path::new(&path), sync));
    println!("\nopened {}", store.revision());
    let writers = (0..WRITERS).map(|writer| tokio::spawn(write(Arc::clone(&store), writer)));
    for failed in futures::future::join_all(writers).await {
        println!("failed {}", failed.unwrap().unwrap_err());
    }
}

fn victim(directory: &Path, shell: &str, sync: bool) -> Child {
    let binary = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{shell} exec \"$0\" \"$@\"")).arg(binary);
    command.args([
        "--exact",
        "store::disk::crash::the_process_that_is_killed",
        "--ignored",
        "--nocapture",
        "-q",
    ]);
    command.env(DIRECTORY, directory).env(SYNC, sync.to_string());
    command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// What was acknowledged last for each name: its revision, and whether it must be there.
#[derive(Default)]
struct Acknowledged(BTreeMap<String, (u64, bool)>);

impl Acknowledged {
    fn note(&mut self, line: &str) -> bool {
        let [name, revision, state] = line.split(' ').collect::<Vec<_>>()[..] else { return false };
        if !name.starts_with("thing-") || !matches!(state, "there" | "removed" | "removed-next") {
            return false;
        }
        self.0.insert(name.to_owned(), (revision.parse().unwrap(), state == "there"));
        true
    }

    fn check(&self, store: &Store) {
        for (name, (revision, there)) in &self.0 {
            assert!(store.revision() >= *revision, "the revision went back");
            match store.get(&table(), &Key::new("default", name)) {
                Some(object) => {
                    assert!(object.revision >= *revision, "{name} is older than acknowledged");
                    let value: Value = serde_json::from_slice(&object.bytes).unwrap();
                    assert_eq!(value["metadata"]["name"], json!(name));
                    assert_eq!(value["metadata"]["resourceVersion"], json!(object.revision.to_string()));
                }
                None => assert!(!there, "{name} was acknowledged at {revision} and is lost"),
            }
        }
    }
}

/// Lets a process write for a while, kills it, and returns how much it acknowledged.
fn kill_once(directory: &Path, sync: bool, random: &mut StdRng, known: &mut Acknowledged) -> usize {
    let mut child = victim(directory, "", sync);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    lines.by_ref().find(|line| line.starts_with("opened")).expect("the store must open");
    let (before, pause) = (random.random_range(0..60), random.random_range(0..8000));
    let mut count = lines.by_ref().take(before).filter(|line| known.note(line)).count();
    std::thread::sleep(Duration::from_micros(pause));
    child.kill().unwrap();
    child.wait().unwrap();
    // What was in the pipe when it died had been acknowledged too.
    count += lines.filter(|line| known.note(line)).count();
    count
}

#[test]
fn what_was_acknowledged_survives_hundreds_of_kills() {
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(5);
    let (mut known, mut count, mut revision) = (Acknowledged::default(), 0, 1);
    for kill in 0..KILLS {
        // With and without waiting for the disk: a kill takes nothing from the system.
        count += kill_once(folder.path(), kill % 2 == 0, &mut random, &mut known);
        let store = open(folder.path(), true);
        known.check(&store);
        assert!(store.revision() >= revision, "the revision went back");
        revision = store.revision();
    }
    assert!(count > 2000, "only {count} writes were acknowledged: the test shows little");
}

#[test]
fn a_full_disk_refuses_writes_and_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    // No file may grow beyond 100 blocks: writing fails as on a full disk, without needing one.
    let mut child = victim(folder.path(), "trap '' XFSZ; ulimit -f 100;", true);
    let mut known = Acknowledged::default();
    let mut output = String::new();
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    child.wait().unwrap();
    let count = output.lines().filter(|line| known.note(line)).count();
    let failures: Vec<_> = output.lines().filter_map(|line| line.strip_prefix("failed ")).collect();
    assert_eq!(failures.len() as u64, WRITERS, "every writer must be told: {output}");
    assert!(
        failures[0].contains("failed to write") && failures[0].contains("/store/log-"),
        "{}",
        failures[0]
    );
    assert!(count > 20, "only {count} writes were acknowledged");
    known.check(&open(folder.path(), true));
}
