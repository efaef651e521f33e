//! An operator to test with that keeps ConfigMaps: some applied, some created, by one controller or by two.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use windlass::{Action, Children, Context, Controller, Reconciler, k8s_openapi::api::core::v1::ConfigMap};

use crate::gadget::Gadget;

/// The data of a ConfigMap.
pub type Data = BTreeMap<String, String>;

#[derive(Clone, Default)]
pub struct Keepers {
    pub runs: Arc<AtomicUsize>,
    /// What is applied: the data of each ConfigMap.
    pub applied: Arc<Mutex<BTreeMap<String, Data>>>,
    /// What is created unless it is there.
    pub created: Option<String>,
    pub failures: Arc<Mutex<Vec<String>>>,
}

impl Keepers {
    pub fn applying(names: &[&str]) -> Self {
        let keepers = Self::default();
        for name in names {
            keepers.want(name, &[("key", "value")]);
        }
        keepers
    }

    pub fn want(&self, name: &str, data: &[(&str, &str)]) {
        let data = data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        self.applied.lock().unwrap().insert(name.to_owned(), data);
    }

    pub fn controller(&self, name: &str) -> Controller<Self> {
        Controller::new(self.clone()).name(name).owns::<ConfigMap>()
    }

    pub fn runs(&self) -> usize {
        self.runs.load(Ordering::SeqCst)
    }
}

fn map(name: &str, data: Data) -> ConfigMap {
    let mut map = ConfigMap { data: Some(data), ..ConfigMap::default() };
    map.metadata.name = Some(name.to_owned());
    map
}

impl Reconciler for Keepers {
    type Resource = Gadget;
    type Error = windlass::Error;

    async fn reconcile(&self, gadget: Arc<Gadget>, ctx: &Context<Gadget>) -> windlass::Result<Action> {
        let wanted = self.applied.lock().unwrap().clone();
        let children = wanted.into_iter().map(|(name, data)| map(&name, data));
        let applied = ctx.apply(Children::new().with_all(children)).await;
        if let Some(name) = &self.created
            && ctx.get::<ConfigMap>(gadget.metadata.namespace.as_deref(), name)?.is_none()
        {
            ctx.create_child(map(name, Data::new())).await?;
        }
        self.runs.fetch_add(1, Ordering::SeqCst);
        if let Err(error) = &applied {
            self.failures.lock().unwrap().push(error.to_string());
        }
        applied.map(|_| Action::await_change())
    }
}
