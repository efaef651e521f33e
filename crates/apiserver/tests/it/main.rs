//! The server as its clients see it: requests in, answers and watch lines out, no socket between.

#![expect(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

mod access;
mod admission;
mod audit;
mod bed;
mod compression;
mod connections;
mod conversion;
mod custom;
mod deletion;
mod discovery;
mod fidelity;
mod flow;
mod hook;
mod hostile;
mod impersonation;
mod listener;
mod lists;
mod nulls;
mod numbers;
mod policies;
mod server;
mod sessions;
mod tokens;
mod upserts;
mod watches;
mod writes;
