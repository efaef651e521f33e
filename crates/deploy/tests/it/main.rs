//! Releases on the embedded cluster, on a paused clock: what is done, what is refused, and in which words.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod bed;
mod cases;
mod definitions;
mod half;
mod refusals;
mod removal;
mod shipped;
mod words;
