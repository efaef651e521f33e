//! The inner loop of a project's author: `dev`, `run`, `manifests`, `explain-rbac` and `doctor`, on a project that cargo
//! compiles. What is built is shared with the workspace as far as features agree.
//!
//! The tests share one project and run one after the other: most of their time is a compiler's.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod author;
mod debugger;
mod dev;
mod disk;
mod run;
