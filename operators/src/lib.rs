//! Operators for real use, each a module of the same shape, and what is shipped with them.
//!
//! An operator's module offers its API types, `register`, which adds it to a [`windlass::Operator`], and `sample`.
//! [`catalogue`] lists them all; [`operator`] makes one operator of those that are chosen; [`install`] puts kinds
//! and samples into a cluster; [`mod@webhooks`] lets a cluster reach the webhooks of a process outside of it; [`manifests`]
//! generates the files of `config/`.

use std::collections::BTreeSet;

use serde_json::Value;
use windlass::Operator;

pub mod database;
pub mod helloworld;
pub mod imoocpod;
pub mod install;
pub mod manifests;
pub mod memcached;
pub mod podmanager;
pub mod webapp;
pub mod webhooks;
pub mod webserver;
pub mod workload;

/// The field manager of every operator here.
///
/// One for all: a WebServer that `webserver-operator` made must be the same to an operator that runs all kinds.
const FIELD_MANAGER: &str = "windlass-operators";

/// The oldest minor version of Kubernetes that the operators work with: the first in which a Pod can be told to sleep
/// before it ends, which is how rollouts drop no request. Rules about quantities need 1.28.
pub const KUBERNETES: u32 = 30;

/// One kind of the catalogue.
#[derive(Clone, Copy)]
pub struct Entry {
    /// The kind in lower case, as `--only` takes it.
    pub name: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The group and version of the kind.
    pub api_version: &'static str,
    /// The plural name of the kind, as in URLs.
    pub plural: &'static str,
    /// The operator that brings the kind: one may bring several.
    operator: &'static str,
    register: fn(Operator) -> Operator,
    /// Adds the conversions and admission webhooks alone, without CRDs and controllers.
    webhooks: fn(Operator) -> Operator,
    sample: fn() -> serde_json::Result<Value>,
    /// Samples of older versions that are still served.
    older: &'static [fn() -> serde_json::Result<Value>],
}

impl Entry {
    /// An object to try the kind with.
    pub fn sample(&self) -> serde_json::Result<Value> {
        (self.sample)()
    }

    /// Objects of older versions of the kind that are still served.
    pub fn older_samples(&self) -> impl Iterator<Item = serde_json::Result<Value>> {
        self.older.iter().map(|sample| sample())
    }
}

/// All kinds, in the order in which they are shown.
pub fn catalogue() -> &'static [Entry] {
    const {
        &[
            Entry {
                name: "podmanager",
                kind: "PodManager",
                api_version: "apps.mycompany.com/v1",
                plural: "podmanagers",
                operator: "podmanager",
                register: podmanager::register,
                webhooks: podmanager::webhooks,
                sample: || serde_json::to_value(podmanager::sample()),
                older: &[|| serde_json::to_value(podmanager::v1alpha1_sample())],
            },
            Entry {
                name: "webserver",
                kind: "WebServer",
                api_version: "webserver.example.com/v1",
                plural: "webservers",
                operator: "webserver",
                register: webserver::register,
                webhooks: none,
                sample: || serde_json::to_value(webserver::sample()),
                older: &[],
            },
            Entry {
                name: "imoocpod",
                kind: "ImoocPod",
                api_version: "batch.tutorial.kubebuilder.io/v1alpha1",
                plural: "imoocpods",
                operator: "imoocpod",
                register: imoocpod::register,
                webhooks: none,
                sample: || serde_json::to_value(imoocpod::sample()),
                older: &[],
            },
            Entry {
                name: "memcached",
                kind: "Memcached",
                api_version: "cache.example.com/v1alpha1",
                plural: "memcacheds",
                operator: "memcached",
                register: memcached::register,
                webhooks: none,
                sample: || serde_json::to_value(memcached::sample()),
                older: &[],
            },
            Entry {
                name: "helloworld",
                kind: "HelloWorld",
                api_version: "test.jiaozi.com/v1alpha1",
                plural: "helloworlds",
                operator: "helloworld",
                register: helloworld::register,
                webhooks: none,
                sample: || serde_json::to_value(helloworld::sample()),
                older: &[],
            },
            Entry {
                name: "webapp",
                kind: "WebApp",
                api_version: "apps.example.com/v1alpha1",
                plural: "webapps",
                operator: "webapp",
                register: webapp::register,
                webhooks: none,
                sample: || serde_json::to_value(webapp::sample()),
                older: &[],
            },
            Entry {
                name: "database",
                kind: "Database",
                api_version: "database.example.com/v1",
                plural: "databases",
                operator: "database",
                register: database::register,
                webhooks: database::webhooks,
                sample: || serde_json::to_value(database::sample()),
                older: &[|| serde_json::to_value(database::v1alpha1_sample())],
            },
            Entry {
                name: "databasebackup",
                kind: "DatabaseBackup",
                api_version: "database.example.com/v1",
                plural: "databasebackups",
                operator: "database",
                register: database::register,
                webhooks: database::webhooks,
                sample: || serde_json::to_value(database::backup_sample()),
                older: &[],
            },
        ]
    }
}

/// What a kind without webhooks adds.
fn none(operator: Operator) -> Operator {
    operator
}

/// The kind with this name.
pub fn entry(name: &str) -> Option<&'static Entry> {
    catalogue().iter().find(|entry| entry.name == name)
}

/// One operator for the chosen kinds. They share their caches.
pub fn operator<'a>(name: &str, entries: impl IntoIterator<Item = &'a Entry>) -> Operator {
    let mut operator = Operator::new(name).field_manager(FIELD_MANAGER).kubernetes_at_least(KUBERNETES);
    let mut brought = BTreeSet::new();
    for entry in entries {
        if brought.insert(entry.operator) {
            operator = (entry.register)(operator);
        }
    }
    operator
}

/// The webhooks of the chosen kinds and nothing else: for a process that serves them beside the operators, with a
/// client that may do more than these.
pub fn webhooks<'a>(name: &str, entries: impl IntoIterator<Item = &'a Entry>) -> Operator {
    let mut operator = Operator::new(name);
    let mut brought = BTreeSet::new();
    for entry in entries {
        if brought.insert(entry.operator) {
            operator = (entry.webhooks)(operator);
        }
    }
    operator
}
