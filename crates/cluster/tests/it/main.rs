//! The cluster as its users see it: through a `kube::Client`.

mod lifecycle;
mod support;
mod workloads;
