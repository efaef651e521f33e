//! The WebServer of the benchmarks: its type, its children, and how an operator tells what it has done.
//!
//! Every framework runs the same operator: a Deployment, a Service and a status for each WebServer, four at a
//! time. What they share lives here (the one in Go says the same again); what they differ in is in `bin/`.

pub mod measure;
mod progress;
mod webserver;

pub use progress::{Progress, terminated};
pub use webserver::{WebServer, WebServerSpec, WebServerStatus, deployment, observed, service};

/// How many objects are reconciled at the same time.
pub const CONCURRENCY: u16 = 4;
