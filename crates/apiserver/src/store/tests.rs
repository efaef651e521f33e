//! What the store promises, checked on a small store.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn pods() -> TableName {
    TableName { group: "".into(), plural: "pods".into() }
}

fn draft(value: &Value) -> Draft {
    Draft::encode(value, Arc::from([]))
}

fn pod(name: &str, label: &str) -> Draft {
    draft(&json!({"metadata": {"name": name, "labels": {"app": label}}, "spec": {}}))
}

fn decoded(object: &Object) -> Value {
    serde_json::from_slice(&object.bytes).unwrap()
}

#[test]
fn the_revision_is_inside_the_bytes() {
    let store = Store::default();
    let value = json!({"apiVersion": "v1", "data": {"a": "b"}, "kind": "X",
        "metadata": {"name": "one", "resourceVersion": "999", "uid": "u"}, "spec": {"n": 1}});
    let object = store.create(&pods(), Key::new("d", "one"), draft(&value)).unwrap();
    let mut expected = value;
    expected["metadata"]["resourceVersion"] = json!(object.revision.to_string());
    assert_eq!(decoded(&object), expected);
}

#[test]
fn a_write_on_an_old_read_is_refused() {
    let store = Store::default();
    let key = Key::new("d", "one");
    let first = store.create(&pods(), key.clone(), pod("one", "a")).unwrap();
    assert_eq!(
        store.create(&pods(), key.clone(), pod("one", "a")).unwrap_err(),
        WriteError::Exists,
        "a name is taken once"
    );
    let second = store.update(&pods(), &key, first.revision, pod("one", "b")).unwrap();
    assert_eq!(
        store.update(&pods(), &key, first.revision, pod("one", "c")).unwrap_err(),
        WriteError::Moved(second.revision)
    );
    store.delete(&pods(), &key, second.revision, pod("one", "b")).unwrap();
    assert_eq!(
        store.update(&pods(), &key, second.revision, pod("one", "c")).unwrap_err(),
        WriteError::Missing
    );
}

#[tokio::test]
async fn a_watch_resumes_after_any_revision_in_the_window() {
    let store = Arc::new(Store::with_history(3));
    let first = store.create(&pods(), Key::new("d", "1"), pod("1", "a")).unwrap();
    for name in ["2", "3"] {
        store.create(&pods(), Key::new("d", name), pod(name, "a")).unwrap();
    }
    let mut watch = store.watch(&pods(), Start::After(first.revision)).unwrap();
    let names: Vec<_> =
        watch.next().await.unwrap().iter().map(|seen| seen.event().object.key.name.to_string()).collect();
    assert_eq!(names, ["2", "3"]);
    for name in ["4", "5", "6", "7"] {
        store.create(&pods(), Key::new("d", name), pod(name, "a")).unwrap();
    }
    assert!(watch.next().await.is_err(), "a cursor that fell out of the window is told so");
    assert!(matches!(store.watch(&pods(), Start::After(first.revision)), Err(WatchError::Compacted(_))));
    assert!(matches!(store.watch(&pods(), Start::After(999)), Err(WatchError::Future { .. })));
}

#[tokio::test]
async fn frames_that_all_should_have_read_are_given_back() {
    let store = Arc::new(Store::default());
    let begin = Start::After(store.revision());
    let mut watch = store.watch(&pods(), begin).unwrap();
    store.create(&pods(), Key::new("d", "first"), pod("first", "a")).unwrap();
    let read = watch.next().await.unwrap()[0].shared(|event| event.object.bytes.to_vec().into());
    for number in 0..300 {
        let name = number.to_string();
        store.create(&pods(), Key::new("d", &name), pod(&name, "a")).unwrap();
    }
    let again = store.watch(&pods(), begin).unwrap().next().await.unwrap()[0]
        .shared(|event| event.object.bytes.to_vec().into());
    assert_eq!(again, read);
    assert_ne!(again.as_ptr(), read.as_ptr(), "made once more for who comes late");
}

#[tokio::test]
async fn all_watchers_share_what_one_has_made() {
    let store = Arc::new(Store::default());
    let mut one = store.watch(&pods(), Start::Snapshot).unwrap();
    let mut other = store.watch(&pods(), Start::Snapshot).unwrap();
    store.create(&pods(), Key::new("d", "1"), pod("1", "a")).unwrap();
    let (left, right) = (one.next().await.unwrap(), other.next().await.unwrap());
    assert_eq!(
        left[0].shared(|event| event.object.bytes.to_vec().into()).as_ptr(),
        right[0].shared(|event| event.object.bytes.to_vec().into()).as_ptr()
    );
}

proptest! {
    /// Whatever is written, every past revision in the window can be seen again exactly as it was.
    #[test]
    fn the_past_can_be_seen_again(steps in prop::collection::vec((0..5_u8, 0..3_u8), 1..40)) {
        let store = Store::default();
        let mut past = Vec::new();
        for (name, action) in steps {
            let name = name.to_string();
            let key = Key::new("d", &name);
            match (store.get(&pods(), &key), action) {
                (None, _) => drop(store.create(&pods(), key, pod(&name, "a")).unwrap()),
                (Some(at), 0) => drop(store.delete(&pods(), &key, at.revision, pod(&name, "a")).unwrap()),
                (Some(at), _) => drop(store.update(&pods(), &key, at.revision, pod(&name, "b")).unwrap()),
            }
            past.push(store.snapshot(&pods(), None));
        }
        for then in past {
            let again = store.snapshot_at(&pods(), Some("d"), then.revision).unwrap();
            let bytes = |snapshot: &Snapshot| snapshot.objects.iter().map(|o| o.bytes.clone()).collect::<Vec<_>>();
            prop_assert_eq!(bytes(&again), bytes(&then));
        }
    }
}

fn large(name: &str, version: usize) -> Draft {
    draft(&json!({"metadata": {"name": name}, "data": {"n": version, "x": "x".repeat(10_000)}}))
}

#[tokio::test]
async fn a_history_is_bounded_by_bytes_and_the_largest_gives_way() {
    let maps = TableName { group: "".into(), plural: "configmaps".into() };
    let store = Arc::new(Store::with_history_bytes(200_000));
    let first = store.create(&pods(), Key::new("d", "small"), pod("small", "a")).unwrap();
    let mut slow = store.watch(&maps, Start::Snapshot).unwrap();
    let key = Key::new("d", "large");
    let mut last = store.create(&maps, key.clone(), large("large", 0)).unwrap();
    for version in 1..1500 {
        last = store.update(&maps, &key, last.revision, large("large", version)).unwrap();
    }
    assert!(store.read().kept <= 200_000, "{}", store.read().kept);
    let sum: usize = store.read().tables.values().map(|table| table.history.bytes()).sum();
    assert_eq!(store.read().kept, sum);
    assert!(slow.next().await.is_err(), "who falls behind is told so");
    let mut resumed = store.watch(&maps, Start::After(last.revision - 3)).unwrap();
    assert_eq!(resumed.next().await.unwrap().len(), 3, "the latest changes are there");
    let mut other = store.watch(&pods(), Start::After(first.revision - 1)).unwrap();
    assert_eq!(other.next().await.unwrap().len(), 1, "the small table has lost nothing");
    let object = store.delete(&maps, &key, last.revision, large("large", 1500)).unwrap();
    assert_eq!(store.count(&maps), 0);
    assert!(
        object.bytes.len() + store.read().kept <= 220_000,
        "a deleted object takes no more than the history may"
    );
}
