//! A stream that says when one object changes, for those who then look for themselves.

use std::time::Duration;

use futures::{StreamExt, stream::BoxStream};
use kube::{
    Api, Client,
    core::{ApiResource, DynamicObject, PartialObjectMeta},
    runtime::watcher::{self, Event, watch_object, watcher},
};

use crate::{error::chain, object::Object};

/// How long to wait before a broken watch is resumed.
const RETRY: Duration = Duration::from_secs(5);

/// The object whenever it changes, and its present state at first; `None` when it is not there.
pub(crate) fn states_of<K: Object>(api: Api<K>, name: &str) -> BoxStream<'static, Option<K>> {
    let states = watch_object(api, name).filter_map(|state| async {
        match state {
            Ok(state) => Some(state),
            Err(error) => {
                tracing::debug!(error = chain(&error), "the watch of one object failed");
                tokio::time::sleep(RETRY).await;
                None
            }
        }
    });
    states.boxed()
}

/// An item whenever one object changes, and one for its present state. `in_process`: silence is no fault.
///
/// Nobody looks at the object, so no more than its metadata is read, by the same code for all kinds.
pub(crate) fn changes_of<K: Object>(
    client: &Client,
    namespace: Option<&str>,
    name: &str,
    in_process: bool,
) -> BoxStream<'static, ()> {
    let kind = ApiResource::erase::<K>(&());
    let api = match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    changes(api, name, in_process)
}

fn changes(
    api: Api<PartialObjectMeta<DynamicObject>>,
    name: &str,
    in_process: bool,
) -> BoxStream<'static, ()> {
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let config = if in_process { config.timeout(0) } else { config };
    let changes = watcher(api, config).filter_map(|event| async {
        match event {
            Ok(Event::Init | Event::InitApply(_)) => None,
            Ok(Event::InitDone | Event::Apply(_) | Event::Delete(_)) => Some(()),
            Err(error) => {
                tracing::debug!(error = chain(&error), "the watch of one object failed");
                tokio::time::sleep(RETRY).await;
                None
            }
        }
    });
    changes.boxed()
}
