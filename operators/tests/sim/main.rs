//! The operators through bad days: `SIM_DAYS=1000 cargo test -p windlass-operators --test sim`.

use serde_json::Value;
use windlass_operators::{entry, operator};
use windlass_sim::Simulation;

mod repeated;

/// The days of a kind of the catalogue, with its sample.
fn days_of(name: &'static str) -> Simulation {
    let entry = entry(name).expect("the catalogue must have it");
    let sample = entry.sample().expect("a sample must serialise").to_string();
    Simulation::new(move || operator(&format!("{name}-operator"), [entry])).objects(&sample).ignoring(digests)
}

/// Digests of what holds a uid or a password: they are others on every day.
fn digests(object: &mut Value) {
    for (place, key) in [("/metadata/labels", "windlass.dev/template-hash"), ("/status", "credentials")] {
        if let Some(fields) = object.pointer_mut(place).and_then(Value::as_object_mut) {
            fields.remove(key);
        }
    }
}

pub(crate) fn webserver() -> Simulation {
    days_of("webserver")
        .change("{spec: {replicas: 1}}")
        .change("{spec: {replicas: 5}}")
        .change("{spec: {image: nginx:1.28}}")
        .change("{spec: {port: 8080}}")
        .change("{spec: {content: {index.html: hello}}}")
}

pub(crate) fn memcached() -> Simulation {
    days_of("memcached")
        .change("{spec: {size: 1}}")
        .change("{spec: {size: 5}}")
        .change("{spec: {image: memcached:1.6.40}}")
}

pub(crate) fn helloworld() -> Simulation {
    days_of("helloworld")
        .change("{spec: {size: 1}}")
        .change("{spec: {size: 4}}")
        .change("{spec: {image: nginx:1.28}}")
}

pub(crate) fn podmanager() -> Simulation {
    days_of("podmanager")
        .change("{spec: {replicas: 1}}")
        .change("{spec: {replicas: 5}}")
        .change("{spec: {image: nginx:1.28}}")
}

pub(crate) fn imoocpod() -> Simulation {
    days_of("imoocpod")
        .change("{spec: {replicas: 1}}")
        .change("{spec: {replicas: 4}}")
        .change("{spec: {image: busybox:1.36}}")
}

pub(crate) fn webapp() -> Simulation {
    days_of("webapp")
        .change("{spec: {replicas: 1}}")
        .change("{spec: {image: nginx:1.28}}")
        .change("{spec: {domain: example.org}}")
        .change("{spec: {domain: null}}")
        // A Pod's back-off outlasts the day: it is ready again when all should be at rest, and the status says so then.
        .without("crash-pod")
}

pub(crate) fn database() -> Simulation {
    days_of("database")
        .change("{spec: {storage: {size: 20Gi}}}")
        .change("{spec: {backup: {suspend: true}}}")
        .change("{spec: {backup: null}}")
        // Whoever deletes these deletes the data.
        .sparing("PersistentVolumeClaim")
        .sparing("Secret")
}

macro_rules! bad_days {
    ($($kind:ident)+) => {
        $(mod $kind {
            #[test]
            fn it_lives_through_bad_days() {
                super::$kind().days(3).run();
            }
        })+
    };
}

// Not yet imoocpod: its third day takes longer than anybody waits, and nobody knows yet who writes so much on it.
bad_days! { webserver memcached helloworld podmanager webapp database }
