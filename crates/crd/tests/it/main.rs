//! The crate as its users meet it: types that are compiled, comparisons that keep their word, projects that are read.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod diff;
mod generated;
mod kubebuilder;
mod round_trip;
mod world;

use std::sync::LazyLock;

/// A definition of Kubernetes' own, for the API server's schemas.
fn kubernetes(name: &str) -> Option<serde_json::Value> {
    static METADATA: LazyLock<Option<serde_json::Value>> = LazyLock::new(|| find(OBJECT_META));
    const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    fn find(name: &str) -> Option<serde_json::Value> {
        let mut lines = windlass_apiserver::schema::KUBERNETES.lines();
        let json = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        serde_json::from_str(json).ok()
    }
    if name == OBJECT_META { METADATA.clone() } else { find(name) }
}
