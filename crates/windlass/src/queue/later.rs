//! Points in time that are some delay away. A delay often comes from a field that a user wrote, so every one is taken.

use std::time::Duration;

use tokio::time::Instant;

/// The longest delay. Longer ones are not needed, since a run that comes too early asks for the rest, and cannot be had:
/// an [`Instant`] has an end, which on some systems is less than a hundred years away.
pub(crate) const LONGEST: Duration = Duration::from_hours(30 * 365 * 24);

/// The time after a delay, or after the longest one if that is shorter.
pub(crate) fn later(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay.min(LONGEST)).unwrap_or(now)
}
