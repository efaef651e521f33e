//! The client that an operator works with: with a deadline for every request, and another try where the server asks for
//! one. What the server warns of is logged.

mod repeat;
mod retry;
mod warnings;

pub(crate) use retry::Timeouts;
pub(crate) use warnings::Warnings;
