//! Who has which domain. Pure, but for the cache that it reads.
//!
//! A place is a domain and a path below it. Of two WebApps that want the same place, in whatever namespaces, the
//! older one has it.

use std::{cmp::Ordering, collections::BTreeSet, sync::Arc};

use kube::ResourceExt;
use windlass::ObjectKey;

use super::api::{RouteType, WebApp};
use crate::workload::Problem;

/// The index of WebApps by the places that they want.
pub(super) const PLACES: &str = "places";
/// The reason of a WebApp that does not get its place.
pub(super) const CONFLICT: &str = "DomainConflict";

/// All domains of a WebApp, in the order in which they are given.
pub(super) fn hosts(app: &WebApp) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let all = app.spec.domain.iter().chain(&app.spec.domains);
    all.filter(|host| seen.insert((*host).clone())).cloned().collect()
}

/// Whether the domains are to lead anywhere.
pub(super) fn is_routed(app: &WebApp) -> bool {
    let kind = app.spec.route.as_ref().map(|route| route.type_).unwrap_or_default();
    kind != RouteType::None && !hosts(app).is_empty()
}

/// The path of a WebApp: always with a slash before it, and without one behind.
pub(super) fn path(app: &WebApp) -> String {
    format!("/{}", app.spec.path.trim_matches('/'))
}

/// The places that a WebApp wants.
pub(super) fn places(app: &WebApp) -> Vec<String> {
    if !is_routed(app) || app.metadata.deletion_timestamp.is_some() {
        return Vec::new();
    }
    hosts(app).iter().map(|host| place(app, host)).collect()
}

/// The place that a WebApp wants below one of its domains.
pub(super) fn place(app: &WebApp, host: &str) -> String {
    format!("{host}{}", path(app))
}

/// The conflict that keeps a WebApp from a place that it wants, if there is one. `rivals` are all that want the place.
pub(super) fn conflict(app: &WebApp, place: &str, rivals: &[Arc<WebApp>]) -> Option<Problem> {
    let winner = rivals.iter().min_by(|a, b| by_age(a, b))?;
    if winner.uid() == app.uid() || by_age(app, winner) == Ordering::Less {
        return None;
    }
    let message = format!(
        "the domain {place} is already used by the WebApp {}, which is older; choose another domain or path",
        ObjectKey::of(&**winner)
    );
    Some(Problem::new(CONFLICT, message))
}

/// The older one first; made within one second, the one that sorts first.
fn by_age(a: &WebApp, b: &WebApp) -> Ordering {
    let age = |app: &WebApp| (app.creation_timestamp(), app.namespace(), app.name_any());
    age(a).cmp(&age(b))
}
