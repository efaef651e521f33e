//! How watchers hear that a table has changed.
//!
//! `tokio::sync::watch` would do, but it wakes those who wait in an order that it draws by chance, from a generator that
//! nobody can seed. Here they wake in the order in which they began to wait, so that a run can be repeated.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::Notify;

/// Counts changes, and wakes those who wait for the next.
#[derive(Debug, Default)]
pub(super) struct Announcer(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    count: AtomicU64,
    changed: Notify,
}

/// Waits for changes.
#[derive(Debug)]
pub(super) struct Listener {
    shared: Arc<Shared>,
    seen: u64,
}

impl Announcer {
    /// Wakes everybody who waits.
    pub(super) fn announce(&self) {
        self.0.count.fetch_add(1, Ordering::SeqCst);
        self.0.changed.notify_waiters();
    }

    /// Hears of every later change.
    pub(super) fn subscribe(&self) -> Listener {
        Listener { seen: self.0.count.load(Ordering::SeqCst), shared: Arc::clone(&self.0) }
    }
}

impl Listener {
    /// Waits for a change since the last that was heard or [seen](Self::see).
    pub(super) async fn changed(&mut self) {
        loop {
            let mut changed = std::pin::pin!(self.shared.changed.notified());
            // Before the count is read: a change in between is heard all the same.
            changed.as_mut().enable();
            let count = self.shared.count.load(Ordering::SeqCst);
            if count != self.seen {
                self.seen = count;
                return;
            }
            changed.await;
        }
    }

    /// Takes note of all changes so far.
    pub(super) fn see(&mut self) {
        self.seen = self.shared.count.load(Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[tokio::test]
    async fn those_who_wait_wake_in_the_order_in_which_they_came() {
        const MANY: usize = 40;
        for _ in 0..5 {
            let (announcer, order) = (Announcer::default(), Arc::new(Mutex::new(Vec::new())));
            let mut tasks = Vec::new();
            for number in 0..MANY {
                let (mut listener, order) = (announcer.subscribe(), order.clone());
                tasks.push(tokio::spawn(async move {
                    listener.changed().await;
                    order.lock().unwrap().push(number);
                }));
            }
            tokio::task::yield_now().await;
            announcer.announce();
            for task in tasks {
                task.await.unwrap();
            }
            assert_eq!(*order.lock().unwrap(), (0..MANY).collect::<Vec<_>>());
        }
    }

    #[tokio::test]
    async fn a_change_between_two_waits_is_heard_and_one_that_was_seen_is_not() {
        let announcer = Announcer::default();
        let mut listener = announcer.subscribe();
        announcer.announce();
        listener.changed().await;
        announcer.announce();
        listener.see();
        let heard = tokio::time::timeout(std::time::Duration::from_millis(1), listener.changed()).await;
        assert!(heard.is_err());
    }
}
