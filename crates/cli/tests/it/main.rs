//! The `windlass` command as a user meets it: its output, its files and its exit code.

mod command;
mod dev;
