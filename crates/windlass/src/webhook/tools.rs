//! What a handler of a running operator can look at: the API server through the client, and the cache.

use std::{fmt, sync::Arc};

use kube::Client;

use crate::{
    cache::{Caches, Reader, Scope, Watched},
    object::{AnyObject, Kind},
};

type Declare = Arc<dyn Fn(&Caches, &Reader, &[String]) -> Arc<dyn Watched> + Send + Sync>;

/// A kind that is cached for a webhook.
#[derive(Clone)]
pub(super) struct Read {
    declare: Declare,
}

impl Read {
    pub(super) fn of<K: AnyObject>(kind: Kind) -> Self {
        let declare = move |caches: &Caches, reader: &Reader, namespaces: &[String]| -> Arc<dyn Watched> {
            let namespaces = if kind.namespaced { namespaces.to_vec() } else { Vec::new() };
            let scope = Scope { namespaces, ..Scope::default() };
            let store = caches.store::<K>(&kind, &scope, false, false);
            reader.add(store.clone());
            Arc::new(store)
        };
        Self { declare: Arc::new(declare) }
    }
}

/// The client and the cache of one webhook.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) client: Client,
    pub(super) cache: Reader,
    watches: Arc<[Arc<dyn Watched>]>,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("cache", &self.cache).finish_non_exhaustive()
    }
}

impl Tools {
    /// Declares what the webhook reads. `namespaces` are those that the operator is restricted to.
    pub(super) fn new(
        name: &str,
        reads: &[Read],
        client: &Client,
        caches: &Caches,
        namespaces: &[String],
    ) -> Self {
        let cache = Reader::new(format!("of webhook {name}").into());
        let watches = reads.iter().map(|read| (read.declare)(caches, &cache, namespaces)).collect();
        Self { client: client.clone(), cache, watches }
    }

    /// Waits until all that is read is there, or known not to be.
    pub(super) async fn filled(&self) {
        for watch in &*self.watches {
            // The sender lives in the store, which the cache holds.
            let _ = watch.health().wait_for(|health| health.is_synced() || health.is_absent()).await;
        }
    }
}

#[cfg(test)]
mod tests;
