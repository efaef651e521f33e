//! Code of others that runs outside of a reconcile, such as filters, mappings and indexes. A panic in it is reported and
//! costs its answer; the watch that called it goes on.

use std::{any::Any, panic::AssertUnwindSafe};

/// The answer, or `None` after a panic.
pub(crate) fn isolated<T>(what: &str, whose: &str, run: impl FnOnce() -> T) -> Option<T> {
    let (mut run, mut answer) = (Some(run), None);
    caught(what, whose, &mut || answer = run.take().map(|run| run()));
    answer
}

/// Compiled once for all that is run.
fn caught(what: &str, whose: &str, run: &mut dyn FnMut()) {
    if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(run)) {
        tracing::error!(of = whose, panic = panic_text(&*panic), "{what} panicked");
    }
}

/// What a panic said.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_costs_the_answer_and_nothing_else() {
        assert_eq!(isolated("a filter", "test", || 5), Some(5));
        assert_eq!(isolated::<i32>("a filter", "test", || panic!("thirteen")), None);
    }
}
