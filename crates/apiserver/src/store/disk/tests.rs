//! What the files promise: whatever was written comes back, and whatever happened to them is noticed.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    super::{Draft, Key, Snapshot, Start, Store, TableName, WatchError},
    *,
};
use crate::data_directory::DataDirectory;

/// A checkpoint after almost every batch.
const SMALL: DiskOptions = DiskOptions { history: 8, checkpoint_after: 600, sync: true, reserve: 0 };

/// Never a checkpoint: one log with everything.
const LONG: DiskOptions = DiskOptions { history: 1000, checkpoint_after: u64::MAX, sync: false, reserve: 0 };

fn table(plural: &str) -> TableName {
    TableName { group: "".into(), plural: plural.into() }
}

fn draft(value: &Value) -> Draft {
    Draft::encode(value, Arc::from(["a field".into()]))
}

fn pod(name: &str, generation: u64) -> Draft {
    draft(&json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "generation": generation, "labels": {"app": name}}}))
}

fn open(path: &Path, options: DiskOptions) -> Result<Store, DiskError> {
    Store::open(&DataDirectory::open(path).unwrap(), options)
}

/// One step of a writer on five names: create, replace or remove.
fn step(store: &Store, name: u8, remove: bool) -> u64 {
    let (table, name) = (table("pods"), name.to_string());
    let key = Key::new("d", &name);
    let written = match (store.get(&table, &key), remove) {
        (None, _) => store.create(&table, key, pod(&name, 0)),
        (Some(at), true) => store.delete(&table, &key, at.revision, pod(&name, at.revision)),
        (Some(at), false) => store.update(&table, &key, at.revision, pod(&name, at.revision)),
    };
    written.unwrap().revision
}

fn seen(snapshot: &Snapshot) -> Vec<(String, u64, bytes::Bytes, String)> {
    let one = |object: &Arc<super::super::Object>| {
        let rest = format!("{:?} {:?} {:?}", object.labels, object.fields, object.untyped());
        (object.key.name.to_string(), object.revision, object.bytes.clone(), rest)
    };
    snapshot.objects.iter().map(one).collect()
}

fn only_log(folder: &Path) -> PathBuf {
    let logs = fs::read_dir(folder.join("store")).unwrap().map(|entry| entry.unwrap().path());
    logs.filter(|path| path.to_string_lossy().contains("/log-")).max().unwrap()
}

/// A log with `count` records, one per batch, and its length after each.
async fn written(folder: &Path, count: u8) -> Vec<u64> {
    let store = open(folder, LONG).unwrap();
    let mut lengths = vec![fs::metadata(only_log(folder)).unwrap().len()];
    for name in 0..count {
        let revision = step(&store, name, false);
        store.durable(revision).await.unwrap();
        lengths.push(fs::metadata(only_log(folder)).unwrap().len());
    }
    lengths
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    /// Whatever is written, with whatever restarts and checkpoints between, is there again.
    #[test]
    fn what_was_written_comes_back(
        lives in prop::collection::vec(prop::collection::vec((0..5_u8, any::<bool>()), 0..25), 1..5),
        small in any::<bool>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut before: Option<(u64, Snapshot)> = None;
        for steps in lives {
            let store = open(folder.path(), if small { SMALL } else { LONG }).unwrap();
            if let Some((revision, snapshot)) = &before {
                prop_assert_eq!(store.revision(), *revision);
                prop_assert_eq!(seen(&store.snapshot(&table("pods"), None)), seen(snapshot));
            }
            let mut last = store.revision();
            for (name, remove) in steps {
                let revision = step(&store, name, remove);
                prop_assert_eq!(revision, last + 1);
                last = revision;
            }
            before = Some((store.revision(), store.snapshot(&table("pods"), None)));
        }
    }
}

#[tokio::test]
async fn a_log_cut_anywhere_gives_its_whole_records() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = written(folder.path(), 3).await;
    let log = only_log(folder.path());
    let whole = fs::read(&log).unwrap();
    for cut in lengths[0]..=lengths[3] {
        fs::write(&log, &whole[..usize::try_from(cut).unwrap()]).unwrap();
        let store = open(folder.path(), LONG).unwrap();
        let records = lengths.iter().filter(|length| **length <= cut).count() - 1;
        assert_eq!(store.count(&table("pods")), records, "cut at {cut}");
        assert_eq!(store.revision(), 1 + records as u64);
        // The file goes on where it was cut.
        step(&store, 9, false);
        drop(store);
        assert_eq!(open(folder.path(), LONG).unwrap().count(&table("pods")), records + 1);
    }
}

#[tokio::test]
async fn a_tail_of_zeros_is_torn_too() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 2).await;
    let log = only_log(folder.path());
    let mut file = fs::read(&log).unwrap();
    file.extend([0; 5000]);
    fs::write(&log, file).unwrap();
    assert_eq!(open(folder.path(), LONG).unwrap().count(&table("pods")), 2);
}

#[tokio::test]
async fn every_changed_byte_is_refused_with_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = written(folder.path(), 3).await;
    let log = only_log(folder.path());
    let whole = fs::read(&log).unwrap();
    for place in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x10;
        fs::write(&log, &damaged).unwrap();
        let error = open(folder.path(), LONG).expect_err(&format!("byte {place} was changed"));
        assert_eq!(fs::read(&log).unwrap(), damaged, "a refused file is left as it was");
        match error {
            DiskError::Damaged { offset, revision, ref path, .. } => {
                let records = lengths.iter().filter(|length| **length <= place as u64).count() - 1;
                assert_eq!((offset as u64, revision), (lengths[records], 1 + records as u64), "byte {place}");
                assert_eq!(*path, log);
                let text = error.to_string();
                assert!(text.contains(&format!("truncate -s {offset}")), "{text}");
            }
            DiskError::Unreadable { .. } | DiskError::Newer { .. } => assert!(place < 28, "byte {place}"),
            other => panic!("byte {place}: {other}"),
        }
    }
}

#[tokio::test]
async fn a_cut_as_the_error_tells_keeps_what_was_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let lengths = written(folder.path(), 3).await;
    let log = only_log(folder.path());
    let mut file = fs::read(&log).unwrap();
    file[usize::try_from(lengths[1]).unwrap() + 20] ^= 1;
    fs::write(&log, &file).unwrap();
    let Err(DiskError::Damaged { offset, .. }) = open(folder.path(), LONG) else { panic!("must be refused") };
    file.truncate(offset);
    fs::write(&log, &file).unwrap();
    assert_eq!(open(folder.path(), LONG).unwrap().revision(), 2);
}

#[test]
fn a_damaged_or_cut_checkpoint_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), SMALL).unwrap();
    for name in 0..40 {
        step(&store, name, false);
    }
    drop(store);
    let files = || fs::read_dir(folder.path().join("store")).unwrap().map(|entry| entry.unwrap().path());
    let checkpoints: Vec<_> = files().filter(|path| path.to_string_lossy().contains("checkpoint-")).collect();
    assert_eq!(checkpoints.len(), 1, "an older one goes when a newer one is there");
    let whole = fs::read(&checkpoints[0]).unwrap();
    for place in (0..whole.len()).step_by(7) {
        let mut damaged = whole.clone();
        damaged[place] ^= 0x20;
        fs::write(&checkpoints[0], &damaged).unwrap();
        open(folder.path(), SMALL).expect_err(&format!("byte {place} was changed"));
        fs::write(&checkpoints[0], &whole[..place]).unwrap();
        open(folder.path(), SMALL).expect_err(&format!("cut at {place}"));
    }
    fs::write(&checkpoints[0], &whole).unwrap();
    assert_eq!(open(folder.path(), SMALL).unwrap().count(&table("pods")), 40);
    for log in files().filter(|path| path.to_string_lossy().contains("/log-")) {
        fs::remove_file(log).unwrap();
    }
    let error = open(folder.path(), SMALL).unwrap_err();
    assert!(matches!(error, DiskError::Missing { .. }), "{error}");
}

#[tokio::test]
async fn a_newer_format_is_refused_by_its_number() {
    let folder = tempfile::tempdir().unwrap();
    written(folder.path(), 1).await;
    let log = only_log(folder.path());
    let mut file = fs::read(&log).unwrap();
    file[12] = 9;
    fs::write(&log, file).unwrap();
    let error = open(folder.path(), LONG).unwrap_err().to_string();
    assert!(error.contains("format 9") && error.contains("up to 2"), "{error}");
}

#[tokio::test]
async fn watches_resume_across_a_restart_and_are_told_when_they_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path(), LONG).unwrap();
    let first = step(&store, 0, false);
    step(&store, 1, false);
    drop(store);
    let store = Arc::new(open(folder.path(), LONG).unwrap());
    let mut watch = store.watch(&table("pods"), Start::After(first)).unwrap();
    let names: Vec<_> =
        watch.next().await.unwrap().iter().map(|seen| seen.event().object.key.name.to_string()).collect();
    assert_eq!(names, ["1"], "the log is the history");
    drop((watch, store));

    let store = open(folder.path(), SMALL).unwrap();
    for name in 2..40 {
        step(&store, name, false);
    }
    drop(store);
    let store = Arc::new(open(folder.path(), SMALL).unwrap());
    for plural in ["pods", "never-seen"] {
        let gone = store.watch(&table(plural), Start::After(first));
        assert!(
            matches!(gone, Err(WatchError::Compacted(_))),
            "{plural}: before the checkpoint nothing is known"
        );
    }
    assert!(store.watch(&table("pods"), Start::After(store.revision())).is_ok());
}

#[tokio::test]
async fn a_watcher_hears_of_nothing_that_is_not_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    let store = Arc::new(open(folder.path(), LONG).unwrap());
    let mut watch = store.watch(&table("pods"), Start::Snapshot).unwrap();
    for name in 0..50 {
        let revision = step(&store, name, false);
        for seen in watch.poll().unwrap() {
            // The cursor asks the log, so anything that it hands out must be durable at once.
            let wait = store.durable(seen.event().object.revision);
            assert!(futures::FutureExt::now_or_never(wait).is_some_and(|outcome| outcome.is_ok()));
        }
        store.durable(revision).await.unwrap();
    }
}

#[test]
fn keys_without_a_log_are_no_new_data_directory() {
    let folder = tempfile::tempdir().unwrap();
    let make = || Ok::<_, crate::data_directory::Error>("a key".to_owned());
    let store = open(folder.path(), LONG).unwrap();
    DataDirectory::open(folder.path()).expect_err("it is in use");
    step(&store, 0, false);
    drop(store);
    DataDirectory::open(folder.path()).unwrap().keep("ca.key", make).unwrap();
    assert_eq!(open(folder.path(), LONG).unwrap().count(&table("pods")), 1);
    fs::remove_file(only_log(folder.path())).unwrap();
    let error = open(folder.path(), LONG).unwrap_err();
    assert!(matches!(error, DiskError::NoLog { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("holds keys") && text.contains("remove"), "{text}");
    // As the error tells.
    fs::remove_dir_all(folder.path().join("keys")).unwrap();
    assert_eq!(open(folder.path(), LONG).unwrap().count(&table("pods")), 0);
}

#[test]
fn a_full_disk_takes_deletes_from_what_was_reserved() {
    // No file system of its own: what is released and taken again is the reserve's own doing.
    let folder = tempfile::tempdir().unwrap();
    let options = DiskOptions { reserve: 1 << 20, ..LONG };
    let reserve = || fs::metadata(folder.path().join("store/reserve")).map_or(0, |file| file.len());
    drop(open(folder.path(), options).unwrap());
    assert_eq!(reserve(), 1 << 20, "room is kept from the start");
    fs::write(folder.path().join("store/reserve"), "").unwrap();
    drop(open(folder.path(), options).unwrap());
    assert_eq!(reserve(), 1 << 20, "and taken again at the next one");
}
