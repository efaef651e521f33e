//! The rules of the store: watch events and own writes in every order that can happen.

use k8s_openapi::{api::core::v1::ConfigMap, apimachinery::pkg::apis::meta::v1::ObjectMeta};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{store::Listed, *};
use crate::object::version;

mod model;

/// As it arrives.
fn fresh(object: &Value) -> Fresh<ConfigMap> {
    Fresh::read(&object.to_string()).unwrap()
}

fn value(name: &str, uid: &str, version: u64) -> Value {
    json!({"metadata": {"namespace": "ns", "name": name, "uid": uid, "resourceVersion": version.to_string()}})
}

fn map(name: &str, uid: &str, version: u64) -> Fresh<ConfigMap> {
    fresh(&value(name, uid, version))
}

fn meta(name: &str, uid: &str, version: u64) -> ObjectMeta {
    map(name, uid, version).object.metadata
}

fn us() -> Arc<FieldManager> {
    Arc::new(FieldManager::new("us", Vec::new()))
}

/// Kept as text, which is the harder way.
fn objects() -> Objects {
    objects_kept(true, None)
}

fn objects_kept(as_text: bool, transform: Option<Transform<ConfigMap>>) -> Objects {
    let mut objects = Objects::new(us(), &Scope::default(), transform, as_text);
    objects.list_started(0);
    objects.list_finished(0, true, 0);
    objects
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("ns", name)
}

fn held(objects: &Objects, name: &str) -> Option<(String, u64)> {
    let object = objects.get(&key(name))?.kept.open::<ConfigMap>(None);
    Some((crate::object::uid(&*object).to_owned(), version(&*object)))
}

#[test]
fn an_own_write_is_there_before_the_watch_delivers_it_and_is_news_only_once() {
    let mut objects = objects();
    assert!(matches!(objects.written(map("a", "x", 5), false), Written::Changed(_)));
    assert_eq!(held(&objects, "a"), Some(("x".into(), 5)));
    assert!(objects.watch_applied(map("a", "x", 5)).is_none(), "known already");
    assert!(objects.watch_applied(map("a", "x", 6)).is_some());
}

#[test]
fn a_late_event_never_replaces_a_newer_own_write() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 3));
    objects.written(map("a", "x", 7), false);
    assert!(objects.watch_applied(map("a", "x", 5)).is_none());
    assert_eq!(held(&objects, "a"), Some(("x".into(), 7)));
}

#[test]
fn an_own_write_that_the_watch_has_passed_is_not_put_back() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 5));
    objects.watch_deleted(&meta("a", "x", 6));
    assert!(
        matches!(objects.written(map("a", "x", 5), false), Written::NotKept(_)),
        "its answer came after its deletion"
    );
    assert_eq!(held(&objects, "a"), None);
}

#[test]
fn a_deletion_of_an_old_uid_leaves_its_successor() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 3));
    objects.written(map("a", "y", 9), false);
    assert!(objects.watch_deleted(&meta("a", "x", 6)).is_none());
    assert_eq!(held(&objects, "a"), Some(("y".into(), 9)));
}

#[test]
fn an_object_that_we_deleted_does_not_come_back_with_a_late_event() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 3));
    assert!(objects.deleted(&key("a"), "x").is_some());
    assert!(objects.watch_applied(map("a", "x", 4)).is_none());
    assert!(objects.watch_deleted(&meta("a", "x", 5)).is_none(), "known already");
    assert!(objects.watch_applied(map("a", "y", 6)).is_some(), "a new object of that name");
}

#[test]
fn a_creation_that_was_deleted_before_the_watch_delivered_it_vanishes() {
    let mut objects = objects();
    objects.written(map("a", "x", 5), false);
    assert!(objects.watch_deleted(&meta("a", "x", 6)).is_some());
    assert_eq!(held(&objects, "a"), None);
}

#[test]
fn a_list_drops_what_it_does_not_hold_and_doubts_newer_own_writes() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 3));
    objects.watch_applied(map("b", "x2", 4));
    objects.written(map("c", "x3", 9), false);
    objects.list_started(0);
    objects.listed(0, map("b", "x2", 4));
    objects.listed(0, map("d", "x4", 8));
    let Listed { changes, doubtful, .. } = objects.list_finished(0, false, 0);
    let summary: Vec<_> = changes.iter().map(|c| (c.key.name().to_owned(), c.new.is_some())).collect();
    assert_eq!(summary, [("d".to_owned(), true), ("a".to_owned(), false)]);
    assert_eq!(doubtful, [(key("c"), 9)]);
    assert!(objects.resolve(&key("c"), 8, None).0.is_none(), "another version than was asked about");
    let (kept, restored) = objects.resolve(&key("c"), 9, Some(&meta("c", "x3", 9)));
    assert!(kept.is_none() && !restored);
    assert!(objects.resolve(&key("c"), 9, Some(&meta("c", "x3", 7))).1, "the server has gone back in time");
    assert!(objects.resolve(&key("c"), 9, None).0.is_some());
}

#[test]
fn what_a_list_shows_of_a_deleted_object_is_ignored() {
    let mut objects = objects();
    objects.watch_applied(map("a", "x", 3));
    objects.list_started(0);
    objects.listed(0, map("a", "x", 3));
    objects.deleted(&key("a"), "x");
    let changes = objects.list_finished(0, false, 0).changes;
    assert!(changes.is_empty());
    assert_eq!(held(&objects, "a"), None);
    assert!(objects.watch_applied(map("a", "x", 4)).is_none(), "still ignored after the list");
}

#[test]
fn indexes_follow_the_objects() {
    let mut objects = objects();
    let labelled = |version: u64, team: &str| {
        let mut object = value("a", "x", version);
        object["metadata"]["labels"] = json!({ "team": team });
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": team, "controller": true}]);
        fresh(&object)
    };
    objects.watch_applied(labelled(1, "red"));
    let teams = |o: &ConfigMap| o.metadata.labels.iter().flatten().map(|(_, v)| v.clone()).collect();
    objects.add_index(&Index::new("team".into(), teams));
    assert_eq!(objects.indexed("team", None, "red").unwrap().len(), 1);
    objects.watch_applied(labelled(2, "blue"));
    assert!(objects.indexed("team", None, "red").unwrap().is_empty());
    assert_eq!(objects.indexed("team", None, "blue").unwrap().len(), 1);
    assert_eq!((objects.owned_by("red").len(), objects.owned_by("blue").len()), (0, 1));
    objects.watch_deleted(&labelled(3, "blue").object.metadata);
    assert!(objects.indexed("team", None, "blue").unwrap().is_empty());
    assert!(objects.indexed("size", None, "1").is_none());
}

#[test]
fn one_name_is_one_index() {
    let mut objects = objects();
    let names = |o: &ConfigMap| o.metadata.name.iter().cloned().collect();
    let index = Index::new("by".into(), names);
    assert!(objects.add_index(&index));
    assert!(objects.add_index(&Index::new("by".into(), names)), "the same function, of another controller");
    assert!(!objects.add_index(&Index::new("by".into(), |_: &ConfigMap| Vec::new())), "another function");
    let held = String::from("x");
    let holding = Index::new("holding".into(), move |_: &ConfigMap| vec![held.clone()]);
    assert!(objects.add_index(&holding));
    assert!(!objects.add_index(&holding), "of a function that holds values there may be several");
}

#[test]
fn indexes_are_read_by_namespace() {
    let mut objects = objects();
    objects.add_index(&Index::new("any".into(), |_: &ConfigMap| vec!["all".to_owned()]));
    objects.watch_applied(map("a", "x", 1));
    assert_eq!(objects.indexed("any", Some("ns"), "all").unwrap().len(), 1);
    assert!(objects.indexed("any", Some("other"), "all").unwrap().is_empty());
}

#[test]
fn an_own_write_outside_of_the_scope_is_not_kept() {
    let scope =
        Scope { namespaces: vec!["ns".into(), "ns2".into()], labels: Some("app=web".into()), fields: None };
    let mut objects = Objects::new::<ConfigMap>(us(), &scope, None, true);
    let written = |namespace: &str, app: &str, version: u64| {
        let mut object = value("a", "x", version);
        object["metadata"]["namespace"] = json!(namespace);
        object["metadata"]["labels"] = json!({ "app": app });
        fresh(&object)
    };
    assert!(matches!(objects.written(written("ns", "db", 5), false), Written::NotKept(_)));
    assert!(matches!(objects.written(written("other", "web", 6), false), Written::NotKept(_)));
    assert!(objects.keys().is_empty());
    assert!(matches!(objects.written(written("ns", "web", 7), false), Written::Changed(_)));
    assert!(
        matches!(objects.written(written("ns", "db", 8), false), Written::Left(..)),
        "it has left the scope"
    );
    assert!(objects.watch_applied(written("ns", "web", 7)).is_none(), "a late event does not put it back");
    assert!(objects.keys().is_empty());
    assert!(objects.watch_applied(written("ns", "web", 9)).is_some(), "somebody has put it back");
}

#[test]
fn what_only_the_server_can_judge_is_kept_only_when_it_was_delivered_before() {
    let scope = Scope { fields: Some("spec.nodeName=n".into()), ..Scope::default() };
    let mut objects = Objects::new::<ConfigMap>(us(), &scope, None, true);
    assert!(matches!(objects.written(map("a", "x", 5), false), Written::NotKept(_)));
    assert!(matches!(objects.written(map("b", "y", 6), true), Written::Changed(_)), "the server was asked");
    objects.watch_applied(map("a", "x", 5));
    assert!(
        matches!(objects.written(map("a", "x", 7), false), Written::Changed(_)),
        "the watch tells what becomes of it"
    );
    assert!(
        matches!(objects.written(map("a", "z", 8), false), Written::Left(..)),
        "another object of that name"
    );
    assert_eq!(held(&objects, "a"), None);
}

#[test]
fn a_text_reads_as_the_typed_value_would_and_is_typed_once_all_are_looked_at() {
    let transform: Transform<ConfigMap> = Arc::new(|map: &mut ConfigMap| map.data = None);
    let with_data = || {
        let mut object = value("a", "x", 3);
        object["data"] = json!({"large": "data"});
        object["metadata"]["managedFields"] = json!([{"manager": "them", "operation": "Update"}]);
        fresh(&object)
    };
    let mut both = [true, false].map(|as_text| objects_kept(as_text, Some(transform.clone())));
    for objects in &mut both {
        let news = objects.watch_applied(with_data()).unwrap();
        assert_eq!(*news.open(Some(&transform)).new.unwrap(), map("a", "x", 3).object, "transformed");
    }
    let open = |objects: &Objects| objects.get(&key("a")).unwrap().kept.open(Some(&transform));
    let [mut as_text, typed] = both;
    assert_eq!(open(&as_text), open(&typed));
    assert_eq!(*open(&typed), map("a", "x", 3).object);
    assert!(matches!(as_text.get(&key("a")).unwrap().kept, Kept::Text(_)));
    as_text.add_index(&Index::new("any".into(), |_: &ConfigMap| vec!["all".to_owned()]));
    assert!(matches!(as_text.get(&key("a")).unwrap().kept, Kept::Typed(_)), "an index looks at all of them");
    assert_eq!(open(&as_text), open(&typed));
    as_text.watch_applied(map("b", "y", 4));
    assert!(matches!(as_text.get(&key("b")).unwrap().kept, Kept::Typed(_)));
    assert_eq!(as_text.indexed("any", None, "all").unwrap().len(), 2);
}

#[test]
fn the_many_children_of_one_owner_are_kept_typed() {
    let store = Store::<ConfigMap>::new(Kind::of::<ConfigMap>(), us(), Scope::default(), false, None, true);
    let child = |number: usize| {
        let mut object = value(&format!("c{number}"), &number.to_string(), 1 + number as u64);
        object["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "owner", "controller": true}]);
        fresh(&object)
    };
    for number in 0..FAMILY {
        store.written(child(number), None);
    }
    assert_eq!(store.owned_by("owner").len(), FAMILY);
    assert!(store.read().is_kept_as_text());
    assert_eq!(store.is_controlled_by(&key("c0"), "owner"), Some(true));
    assert_eq!(store.is_controlled_by(&key("c0"), "other"), Some(false));
    store.written(child(FAMILY), None);
    assert_eq!(store.owned_by("owner").len(), FAMILY + 1);
    assert!(!store.read().is_kept_as_text());
    assert_eq!(store.keys_owned_by("owner").len(), FAMILY + 1);
}

/// What the API server did to one name, in order: the uid and whether the object is there afterwards.
#[derive(Clone, Debug)]
struct History(Vec<(u64, Option<u64>)>);

/// Random creations, updates and deletions of one name, at versions 1, 2, 3, …
fn histories() -> impl Strategy<Value = History> {
    prop::collection::vec(0..3_u8, 1..12).prop_map(|steps| {
        let mut history = Vec::new();
        let (mut alive, mut uid) = (false, 0);
        for (at, step) in (1..).zip(steps) {
            if alive && step == 0 {
                alive = false;
                history.push((at, None));
            } else {
                if !alive {
                    uid += 1;
                }
                alive = true;
                history.push((at, Some(uid)));
            }
        }
        History(history)
    })
}

proptest! {
    /// The watch delivers the history in order; the answers to any of the writes arrive at any time after they
    /// happened. In the end the store agrees with the server, and on the way no copy is replaced by an older one.
    #[test]
    fn the_store_ends_up_with_what_the_server_has(
        as_text in any::<bool>(),
        (history, answers) in histories().prop_flat_map(|history| {
            let answers = prop::collection::vec((any::<bool>(), 0..12_usize), history.0.len());
            (Just(history), answers)
        })
    ) {
        let mut objects = objects_kept(as_text, None);
        let mut newest = 0;
        let mut last_uid = 0;
        for (step, (at, uid)) in history.0.iter().enumerate() {
            // Answers to writes may overtake the watch, or come later than it.
            for ((version, uid), (own, arrival)) in history.0.iter().zip(&answers) {
                if let (Some(uid), true) = (uid, *own && *arrival == step) {
                    objects.written(map("a", &uid.to_string(), *version), false);
                }
            }
            match uid {
                Some(uid) => {
                    last_uid = *uid;
                    objects.watch_applied(map("a", &uid.to_string(), *at));
                }
                None => {
                    objects.watch_deleted(&meta("a", &last_uid.to_string(), *at));
                }
            }
            if let Some((_, version)) = held(&objects, "a") {
                prop_assert!(version >= newest, "{version} after {newest}");
                newest = version;
            }
        }
        // The rest of the answers, late.
        for ((version, uid), (own, arrival)) in history.0.iter().zip(&answers) {
            if let (Some(uid), true) = (uid, *own && *arrival >= history.0.len()) {
                objects.written(map("a", &uid.to_string(), *version), false);
            }
        }
        let expected = history.0.last().and_then(|(at, uid)| Some((uid.as_ref()?.to_string(), *at)));
        prop_assert_eq!(held(&objects, "a"), expected);
    }
}
