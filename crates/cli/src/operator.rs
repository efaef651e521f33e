//! The operator of a project, outside the cluster that it works on: what it needs there, and its process.

pub(crate) mod account;
pub(crate) mod apply;
pub(crate) mod debugger;
pub(crate) mod manifests;
pub(crate) mod process;
pub(crate) mod samples;
