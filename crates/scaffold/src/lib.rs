//! What `windlass init`, `create`, `delete` and `upgrade` write: the files of an operator's project.
//!
//! A project is described by its file `PROJECT` ([`project`]); every scaffolded file follows from it ([`render`]). So a
//! command is a step from one description to the next: what both would scaffold is compared, and the difference is a
//! [`plan`] of files to create, change and remove. The plan is checked against what people have changed meanwhile, and
//! carried out as a whole or not at all.
//!
//! Enters: a folder, what is asked for, templates. Leaves: files. There is no cluster here and no network.

pub mod commands;
mod error;
mod format;
mod lock;
mod merge;
pub mod names;
pub mod plan;
mod plural;
pub mod project;
mod render;

pub use error::Error;
pub use plan::{Change, Plan};
pub use project::Project;
pub use render::Files;
