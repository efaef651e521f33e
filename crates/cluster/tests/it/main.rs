//! The cluster as its users see it: through a `kube::Client`.

mod deletion;
mod lifecycle;
mod services;
mod support;
mod workloads;
