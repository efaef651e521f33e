//! What goes wrong on purpose, for one user and nobody else: the API is slow or fails, as it may at any time.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::error::{Error, Reason, Result};

/// What a user meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Every request waits so long before anything is done for it.
    Slow(Duration),
    /// Every request fails as it does when the server cannot be used. Watches that are open go on.
    Unavailable,
}

/// Whose requests are slow or fail. Clones share it; without any fault a request costs the load of an atomic.
#[derive(Debug, Clone, Default)]
pub struct Faults(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    any: AtomicBool,
    users: Mutex<BTreeMap<String, Fault>>,
}

impl Faults {
    /// From now on this user meets that fault, or none.
    pub fn set(&self, user: &str, fault: Option<Fault>) {
        let mut users = self.0.users.lock().unwrap_or_else(PoisonError::into_inner);
        match fault {
            Some(fault) => users.insert(user.to_owned(), fault),
            None => users.remove(user),
        };
        self.0.any.store(!users.is_empty(), Ordering::Relaxed);
    }

    /// What a user meets.
    pub fn of(&self, user: &str) -> Option<Fault> {
        if !self.0.any.load(Ordering::Relaxed) {
            return None;
        }
        self.0.users.lock().unwrap_or_else(PoisonError::into_inner).get(user).copied()
    }

    /// Lets a request of this user meet it.
    pub(super) async fn meet(&self, user: &str) -> Result<()> {
        match self.of(user) {
            None => Ok(()),
            Some(Fault::Slow(wait)) => {
                tokio::time::sleep(wait).await;
                Ok(())
            }
            Some(Fault::Unavailable) => {
                let why = "the server is currently unable to handle the request";
                Err(Error::new(Reason::ServiceUnavailable, why))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn one_user_meets_a_fault_and_nobody_else() {
        let faults = Faults::default();
        faults.set("a", Some(Fault::Unavailable));
        assert_eq!(faults.meet("a").await.unwrap_err().code, 503);
        assert!(faults.meet("b").await.is_ok());
        faults.set("a", Some(Fault::Slow(Duration::from_secs(3))));
        let begin = tokio::time::Instant::now();
        assert!(faults.meet("a").await.is_ok());
        assert_eq!(begin.elapsed(), Duration::from_secs(3));
        faults.set("a", None);
        assert!(faults.of("a").is_none() && faults.meet("a").await.is_ok());
    }
}
