//! Whatever was acknowledged before a backup is in it, and what is not whole is never taken for one.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::json;

use super::{
    super::{
        super::{Draft, Key, Start, Store, TableName, WatchError},
        DiskOptions,
        files::Handle,
    },
    *,
};
use crate::data_directory::DataDirectory;

const OPTIONS: DiskOptions = DiskOptions { history: 8, checkpoint_after: 600, sync: false, reserve: 0 };

fn table() -> TableName {
    TableName { group: "".into(), plural: "pods".into() }
}

fn pod(name: &str, round: usize) -> Draft {
    let object = json!({"kind": "Pod", "apiVersion": "v1",
        "metadata": {"name": name, "generation": round, "labels": {"app": name}}});
    Draft::encode(&object, Arc::from(["a field".into()]))
}

fn open(path: &Path) -> Arc<Store> {
    Arc::new(Store::open(&DataDirectory::open(path).unwrap(), OPTIONS).unwrap())
}

/// Creates, replaces or removes one of seven objects.
fn step(store: &Store, round: usize) -> u64 {
    let name = (round % 7).to_string();
    let key = Key::new("d", &name);
    let written = match store.get(&table(), &key) {
        None => store.create(&table(), key, pod(&name, round)),
        Some(at) if round.is_multiple_of(5) => store.delete(&table(), &key, at.revision, pod(&name, round)),
        Some(at) => store.update(&table(), &key, at.revision, pod(&name, round)),
    };
    written.unwrap().revision
}

/// Names, revisions, labels, fields and bytes of everything.
fn seen(store: &Store) -> BTreeMap<String, (u64, String)> {
    let objects = store.snapshot(&table(), None).objects;
    let text = |object: &super::super::super::Object| {
        format!("{:?} {:?} {:?} {:?}", object.labels, object.fields, object.bytes, object.untyped())
    };
    objects.iter().map(|object| (object.key.name.to_string(), (object.revision, text(object)))).collect()
}

#[tokio::test]
async fn a_backup_of_a_store_in_use_is_the_store_at_one_revision() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = open(&data);
    let mut past = BTreeMap::new();
    for round in 1..60 {
        let revision = step(&store, round);
        store.durable(revision).await.unwrap();
        past.insert(revision, seen(&store));
        let (file, new) =
            (folder.path().join(format!("{round}.backup")), folder.path().join(format!("{round}")));
        let copied = backup(&data, &file).unwrap();
        assert_eq!(copied.revision, revision, "nothing that was acknowledged is missing");
        assert_eq!(copied, restore(&file, &new).unwrap());
        let restored = open(&new);
        assert_eq!(seen(&restored), past[&revision]);
        assert_eq!((restored.revision(), copied.objects), (revision, past[&revision].len()));
        // Nobody can tell what came before; who asks for it begins anew.
        let older = restored.watch(&table(), Start::After(revision - 1));
        assert!(matches!(older, Err(WatchError::Compacted(_))), "{older:?}");
        assert_eq!(step(&restored, round), revision + 1, "revisions go on");
    }
}

#[test]
fn a_backup_beside_a_busy_writer_has_a_moment_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let store = open(&data);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.durable(step(&store, 1))).unwrap();
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let (done, store) = (&taken, &store);
        let writer = scope.spawn(move || {
            let mut past = BTreeMap::new();
            let mut round = 2;
            while done.load(Ordering::Relaxed) < 20 {
                // The log thread falls behind and catches up: files are cut, replaced and removed all the time.
                past.insert(step(store, round), seen(store));
                round += 1;
            }
            past
        });
        let mut copies = Vec::new();
        for number in 0..20 {
            let (file, new) =
                (folder.path().join(format!("{number}.backup")), folder.path().join(number.to_string()));
            let copied = backup(&data, &file).unwrap();
            restore(&file, &new).unwrap();
            copies.push((copied.revision, seen(&open(&new))));
            done.fetch_add(1, Ordering::Relaxed);
        }
        let past = writer.join().unwrap();
        for (revision, copy) in copies.into_iter().filter(|(revision, _)| *revision > 2) {
            assert_eq!(copy, past[&revision]);
        }
    });
}

/// A backup of a few objects.
fn some(folder: &Path) -> (PathBuf, PathBuf) {
    let (data, file) = (folder.join("data"), folder.join("a.backup"));
    let store = open(&data);
    let last = (1..12).fold(0, |_, round| step(&store, round));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.durable(last)).unwrap();
    backup(&data, &file).unwrap();
    (data, file)
}

#[test]
fn what_is_not_a_whole_backup_is_refused_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = some(folder.path());
    let (good, new, bad) = (fs::read(&file).unwrap(), folder.path().join("new"), folder.path().join("bad"));
    let refused = |content: &[u8]| {
        fs::write(&bad, content).unwrap();
        let error = restore(&bad, &new).unwrap_err().to_string();
        assert!(!new.exists(), "{error}");
        error
    };
    for length in 0..good.len() {
        let error = refused(&good[..length]);
        assert!(
            error.contains("is not a backup") || error.contains("is damaged at byte"),
            "{length}: {error}"
        );
    }
    for place in 0..good.len() {
        let mut content = good.clone();
        content[place] ^= 0x10;
        refused(&content);
    }
    refused(&[&good[..], b"more"].concat());
    let mut newer = good.clone();
    newer[12] = 99;
    let error = refused(&newer);
    assert!(error.contains("format 99") && error.contains("use the version that wrote it"), "{error}");
    assert!(refused(b"apiVersion: v1\nkind: List\nitems: []\n").contains("is not a backup of a cluster"));
    assert!(restore(&folder.path().join("none"), &new).unwrap_err().to_string().contains("failed to read"));
}

#[test]
fn nothing_that_exists_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = some(folder.path());
    let before = fs::read(&file).unwrap();
    assert!(backup(&data, &file).unwrap_err().to_string().contains("exists already"));
    assert!(restore(&file, &data).unwrap_err().to_string().contains("exists already"));
    assert_eq!(fs::read(&file).unwrap(), before);
    let empty = folder.path().join("empty");
    fs::create_dir_all(empty.join("store")).unwrap();
    for none in [empty, folder.path().join("none")] {
        let error = backup(&none, &folder.path().join("b")).unwrap_err().to_string();
        assert!(error.contains("is not the data directory of a cluster"), "{error}");
    }
    assert!(!folder.path().join("b").exists());
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// The disk of this machine, which becomes full at one of the calls that change it.
#[derive(Debug, Clone)]
struct Full {
    at: usize,
    calls: Arc<AtomicUsize>,
}

impl Full {
    fn call(&self) -> io::Result<()> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if call == self.at { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct Opened(Full, Box<dyn Handle>);

impl Files for Full {
    fn create(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        self.call()?;
        Ok(Box::new(Opened(self.clone(), System.create(path)?)))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Handle>> {
        System.open(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        System.read(path)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        System.length(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<PathBuf>> {
        System.list(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call()?;
        System.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        System.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.call()?;
        System.sync_folder(folder)
    }
}

impl Handle for Opened {
    fn write_at(&mut self, bytes: &[u8], place: u64) -> io::Result<()> {
        self.1.write_at(&bytes[..bytes.len() / 2], place)?;
        self.0.call()?;
        self.1.write_at(bytes, place)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.1.set_length(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.call()?;
        self.1.sync()
    }
}

#[test]
fn on_a_full_disk_there_is_no_half_of_a_backup() {
    let folder = tempfile::tempdir().unwrap();
    let (data, _) = some(folder.path());
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    for at in 0.. {
        let full = Full { at, calls: Arc::default() };
        let outcome = backup_on(&full, &data.join("store"), &place.join("a.backup"));
        if outcome.is_ok() {
            assert!(at >= 5, "create, write, sync, rename and the folder's sync have each failed once");
            break;
        }
        assert_eq!(fs::read_dir(&place).unwrap().count(), 0, "call {at}");
    }
}
