//! The documentation that is read on the web: its links lead somewhere, every page has its Chinese sibling, and no code
//! on it is untested by accident. Quick: nothing is built and nothing runs; `tests/tutorial` executes the tutorial.

#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod links;
mod markdown;
mod pages;
mod siblings;
mod tested;
