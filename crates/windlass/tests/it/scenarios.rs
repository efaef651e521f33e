//! What must hold on any API server.

pub mod adoption;
pub mod apply;
pub mod core;
pub mod detached;
pub mod dynamic;
pub mod finalizers;
pub mod kinds;
pub mod scope;
pub mod selectors;
pub mod sight;
pub mod status;
pub mod watches;
