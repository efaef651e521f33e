//! The client that an operator works with: with a deadline for every request, and another try where the server asks for
//! one.

mod repeat;
mod retry;

pub(crate) use retry::Timeouts;
