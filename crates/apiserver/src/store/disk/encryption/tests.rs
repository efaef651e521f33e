use std::{fs, path::Path, sync::Arc};

use serde_json::json;

use super::{
    super::{
        super::{Draft, Key, Store, TableName},
        DiskOptions, backup, restore,
    },
    *,
};
use crate::data_directory::DataDirectory;

fn configuration(providers: &str) -> String {
    format!(
        "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n\
         - resources: [secrets, '*.example.com']\n  providers:\n{providers}"
    )
}

/// A provider whose key is 32 times the first letter of its name.
fn gcm(names: &[&str]) -> String {
    let keys: Vec<String> = names
        .iter()
        .map(|name| format!("{{name: {name}, secret: {}}}", STANDARD.encode(name[..1].repeat(32))))
        .collect();
    format!("  - aesgcm: {{keys: [{}]}}\n", keys.join(", "))
}

fn parsed(providers: &str) -> Encryption {
    Encryption::parse(&configuration(providers)).unwrap()
}

fn table(group: &str, plural: &str) -> TableName {
    TableName { group: group.into(), plural: plural.into() }
}

fn open(folder: &Path, providers: Option<&str>) -> Result<Store, String> {
    let directory = DataDirectory::open(folder).unwrap();
    let options = DiskOptions { sync: false, reserve: 0, ..DiskOptions::default() };
    let encryption = providers.map(|providers| Arc::new(parsed(providers)));
    Store::open_encrypted(&directory, options, encryption).map_err(|error| error.to_string())
}

async fn put(store: &Store, table: &TableName, name: &str, secret: &str) {
    let object = json!({"kind": "K", "apiVersion": "v1", "metadata": {"name": name}, "data": {"k": secret}});
    let made = store.create(table, Key::new("shop", name), Draft::encode(&object, Arc::from([]))).unwrap();
    store.durable(made.revision).await.unwrap();
}

fn read(store: &Store, table: &TableName, name: &str) -> String {
    String::from_utf8(store.get(table, &Key::new("shop", name)).unwrap().bytes.to_vec()).unwrap()
}

/// Whether any file of a folder has a text in it.
fn has(folder: &Path, text: &str) -> bool {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            return has(&path, text);
        }
        fs::read(path).unwrap().windows(text.len()).any(|part| part == text.as_bytes())
    })
}

#[tokio::test]
async fn what_is_encrypted_is_nowhere_on_the_disk_and_there_again_with_its_key() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let (secrets, maps) = (table("", "secrets"), table("", "configmaps"));
    {
        let store = open(&data, Some(&gcm(&["one"]))).unwrap();
        put(&store, &secrets, "a", "WINDLASS-HIDDEN").await;
        put(&store, &table("example.com", "things"), "a", "WINDLASS-HIDDEN").await;
        put(&store, &maps, "a", "WINDLASS-SHOWN").await;
        assert!(read(&store, &secrets, "a").contains("WINDLASS-HIDDEN"));
    }
    assert!(!has(&data, "WINDLASS-HIDDEN") && has(&data, "WINDLASS-SHOWN"));
    let file = folder.path().join("backup");
    backup(&data, &file).unwrap();
    assert!(!has(folder.path(), "WINDLASS-HIDDEN"), "nor in a backup");
    restore(&file, &folder.path().join("copy")).unwrap();
    for place in ["data", "copy"] {
        let place = folder.path().join(place);
        for (providers, why) in [
            (None, "no provider with that key is configured"),
            (
                Some("  - identity: {}\n".to_owned()),
                "encrypted (aesgcm:v1:one), and no provider with that key",
            ),
            (Some(gcm(&["two"])), "no provider with that key is configured"),
            (
                Some(
                    gcm(&["oblique"])
                        .replace("oblique", "one")
                        .replace(&STANDARD.encode("o".repeat(32)), &STANDARD.encode("x".repeat(32))),
                ),
                "the key \"one\" does not open it",
            ),
        ] {
            let before: Vec<_> =
                fs::read_dir(place.join("store")).unwrap().map(|entry| entry.unwrap().path()).collect();
            let error = open(&place, providers.as_deref()).err().unwrap();
            assert!(error.contains(why) && error.contains("secrets"), "{error}");
            let after: Vec<_> =
                fs::read_dir(place.join("store")).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(before, after, "nothing was changed");
        }
        let store = open(&place, Some(&gcm(&["one"]))).unwrap();
        assert!(read(&store, &secrets, "a").contains("WINDLASS-HIDDEN"));
    }
}

#[tokio::test]
async fn a_new_key_takes_over_at_the_next_start() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = table("", "secrets");
    // From no encryption to one key, to another, and back: each start needs what wrote last.
    let steps = [
        (None, "plain"),
        (Some(gcm(&["one"]) + "  - identity: {}\n"), "k8s:enc:aesgcm:v1:one:"),
        (Some(gcm(&["one"])), "k8s:enc:aesgcm:v1:one:"),
        (Some(gcm(&["two", "one"])), "k8s:enc:aesgcm:v1:two:"),
        (Some(gcm(&["two"])), "k8s:enc:aesgcm:v1:two:"),
        (Some("  - identity: {}\n".to_owned() + &gcm(&["two"])), "plain"),
        (None, "plain"),
    ];
    for (number, (providers, found)) in steps.iter().enumerate() {
        let store =
            open(folder.path(), providers.as_deref()).unwrap_or_else(|error| panic!("{number}: {error}"));
        put(&store, &secrets, &number.to_string(), "WINDLASS-HIDDEN").await;
        for old in 0..=number {
            assert!(read(&store, &secrets, &old.to_string()).contains("WINDLASS-HIDDEN"));
        }
        drop(store);
        assert_eq!(has(folder.path(), "WINDLASS-HIDDEN"), *found == "plain", "{number}");
        let keys = ["k8s:enc:aesgcm:v1:one:", "k8s:enc:aesgcm:v1:two:"];
        for key in keys {
            assert_eq!(has(folder.path(), key), key == *found, "{number}: {key}");
        }
    }
}

#[test]
fn a_sealed_object_opens_in_its_place_alone() {
    let encryption = parsed(&gcm(&["one"]));
    let (secrets, key) = (table("", "secrets"), Key::new("shop", "a"));
    let object = Bytes::from_static(b"{\"data\":1}");
    let sealed = encryption.seal(&secrets, &key, &object);
    assert_eq!(encryption.open(&secrets, &key, &sealed).unwrap(), (object.clone(), true));
    assert_ne!(sealed, encryption.seal(&secrets, &key, &object), "a nonce is used once");
    assert!(encryption.open(&secrets, &Key::new("shop", "b"), &sealed).is_err());
    for place in 0..sealed.len() {
        let mut other = sealed.to_vec();
        other[place] ^= 1;
        assert!(encryption.open(&secrets, &key, &other.into()).is_err(), "{place}");
    }
    let error = encryption.open(&secrets, &key, &object).unwrap_err();
    assert!(error.contains("it is not encrypted"), "{error}");
    assert!(!format!("{encryption:?}").contains("oooo"));
}

#[test]
fn a_configuration_that_cannot_be_is_refused_without_a_word_of_its_keys() {
    let key = |secret: &str| format!("  - aesgcm: {{keys: [{{name: one, secret: {secret}}}]}}\n");
    for (providers, why) in [
        ("  - aescbc: {keys: [{name: a, secret: HUSH}]}\n".to_owned(), "aescbc is not supported; aesgcm is"),
        ("  - nothing: {}\n".to_owned(), "there is no provider \"nothing\""),
        ("  - aesgcm: {keys: []}\n".to_owned(), "aesgcm needs keys"),
        (key("HUSH!"), "is not base64"),
        (key(&STANDARD.encode("short")), "has 5 bytes; aesgcm takes 16 or 32"),
        ("  - {aesgcm: {}, identity: {}}\n".to_owned(), "a provider is one word"),
        ("    []\n".to_owned(), "it needs resources and providers"),
        ("  - HUSH\n".to_owned(), "it is not an EncryptionConfiguration"),
    ] {
        let error = Encryption::parse(&configuration(&providers)).unwrap_err().to_string();
        assert!(error.contains(why) && !error.contains("HUSH"), "{providers}: {error}");
    }
    assert!(Encryption::parse("kind: Secret\n").is_err());
}

#[test]
fn resources_are_named_as_in_kubernetes() {
    for (name, group, plural, covered) in [
        ("secrets", "", "secrets", true),
        ("secrets", "", "configmaps", false),
        ("secrets", "example.com", "secrets", false),
        ("things.example.com", "example.com", "things", true),
        ("*.example.com", "example.com", "others", true),
        ("*.", "", "pods", true),
        ("*.", "apps", "deployments", false),
        ("*.*", "apps", "deployments", true),
    ] {
        assert_eq!(covers(name, &table(group, plural)), covered, "{name} {group} {plural}");
    }
}
