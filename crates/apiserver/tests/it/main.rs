//! The server as its clients see it: requests in, answers and watch lines out, no socket between.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod access;
mod acts;
mod admission;
mod audit;
mod audit_log;
mod bed;
mod certificates;
mod compression;
mod connections;
mod conversion;
mod custom;
mod deletion;
mod dice;
mod discovery;
mod events;
mod fidelity;
mod flow;
mod growth;
mod hook;
mod hostile;
mod impersonation;
mod limits;
mod listener;
mod lists;
mod metrics;
mod misdirected;
mod nulls;
mod numbers;
mod oidc;
mod outgoing;
mod parsers;
mod policies;
mod server;
mod sessions;
mod shapes;
mod tokens;
mod upserts;
mod versions;
mod watches;
mod writes;
