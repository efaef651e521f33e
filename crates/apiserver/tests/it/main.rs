//! The server as its clients see it: requests in, answers and watch lines out, no socket between.

mod custom;
mod deletion;
mod lists;
mod server;
mod watches;
mod writes;
