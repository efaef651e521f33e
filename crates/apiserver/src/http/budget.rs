//! Memory for requests: so many bytes for all users together, and a share for each.
//!
//! A request enters with what it may take; a [`Charge`] leaves, which gives it back when the request is done. Who finds
//! nothing left waits for a moment, in order, and is then asked to come again.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::guard::too_many;
use crate::error::Result;

/// Bytes are counted in units of this size.
const UNIT: usize = 1024;

/// How long a request waits for memory that others have.
const WAIT: Duration = Duration::from_secs(5);

/// Bytes for requests in flight.
#[derive(Debug)]
pub(super) struct Budget {
    all: Arc<Semaphore>,
    share: usize,
    users: Arc<Mutex<Users>>,
}

/// The share of each user, and how many of its requests have or want some of it.
type Users = BTreeMap<Arc<str>, (Arc<Semaphore>, usize)>;

/// Bytes that a request has, for as long as it is held.
#[derive(Debug)]
pub(super) struct Charge {
    all: OwnedSemaphorePermit,
    own: OwnedSemaphorePermit,
    _holder: Holder,
}

/// A request of a user. The share of a user without any is forgotten: there can be any number of names.
#[derive(Debug)]
struct Holder {
    user: Arc<str>,
    users: Arc<Mutex<Users>>,
}

impl Budget {
    /// So many bytes, of which one user may have `share`.
    pub(super) fn new(all: usize, share: usize) -> Self {
        let room = Arc::new(Semaphore::new(all.div_ceil(UNIT)));
        Self { all: room, share: share.min(all).div_ceil(UNIT), users: Arc::default() }
    }

    /// Bytes for a request of a user; never more than the user's share.
    pub(super) async fn charge(&self, user: &str, bytes: usize) -> Result<Charge> {
        // What is free is not what somebody waits for: that is set aside for them bit by bit.
        if let Some(charge) = self.charge_now(user, bytes) {
            return Ok(charge);
        }
        let units = u32::try_from(bytes.div_ceil(UNIT).min(self.share)).unwrap_or(u32::MAX);
        let (holder, room) = self.hold(user);
        // Its own share first: who has none left does not stand in the way of others.
        let both = async {
            let own = room.acquire_many_owned(units).await.ok()?;
            let all = Arc::clone(&self.all).acquire_many_owned(units).await.ok()?;
            Some((own, all))
        };
        match tokio::time::timeout(WAIT, both).await {
            Ok(Some((own, all))) => Ok(Charge { all, own, _holder: holder }),
            _ => Err(too_many(format!(
                "Too many requests, please try again later: the requests of user \"{user}\" take as much memory as they \
                 may"
            ))),
        }
    }

    /// The same for who cannot wait.
    pub(super) fn charge_now(&self, user: &str, bytes: usize) -> Option<Charge> {
        let units = u32::try_from(bytes.div_ceil(UNIT).min(self.share)).unwrap_or(u32::MAX);
        let (holder, room) = self.hold(user);
        let own = room.try_acquire_many_owned(units).ok()?;
        let all = Arc::clone(&self.all).try_acquire_many_owned(units).ok()?;
        Some(Charge { all, own, _holder: holder })
    }

    fn hold(&self, name: &str) -> (Holder, Arc<Semaphore>) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let user = match users.get_key_value(name) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(name),
        };
        let entry = users.entry(Arc::clone(&user));
        let (room, holders) = entry.or_insert_with(|| (Arc::new(Semaphore::new(self.share)), 0));
        *holders += 1;
        (Holder { user, users: Arc::clone(&self.users) }, Arc::clone(room))
    }
}

impl Charge {
    /// Gives back what is beyond `bytes`.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let units = bytes.div_ceil(UNIT);
        for permit in [&mut self.all, &mut self.own] {
            let more = permit.num_permits().saturating_sub(units);
            drop(permit.split(more));
        }
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((_, holders)) = users.get_mut(&self.user) else { return };
        *holders -= 1;
        if *holders == 0 {
            users.remove(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_user_cannot_take_what_others_need() {
        let budget = Budget::new(100 * UNIT, 40 * UNIT);
        let mut eve = budget.charge("eve", 40 * UNIT).await.unwrap();
        let refused = budget.charge("eve", UNIT).await.unwrap_err();
        assert_eq!(refused.code, 429);
        let mary = budget.charge("mary", 1000 * UNIT).await.unwrap();
        eve.shrink(UNIT);
        budget.charge("eve", 20 * UNIT).await.unwrap();
        drop((eve, mary));
        assert_eq!(budget.all.available_permits(), 100);
        assert!(budget.users.lock().unwrap().is_empty(), "{budget:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_that_comes_back_in_time_is_waited_for() {
        let budget = Budget::new(10 * UNIT, 10 * UNIT);
        let held = budget.charge("eve", 10 * UNIT).await.unwrap();
        let mut next = Box::pin(budget.charge("mary", 5 * UNIT));
        assert!(futures::poll!(&mut next).is_pending());
        drop(held);
        next.await.unwrap();
        assert!(budget.users.lock().unwrap().is_empty(), "{budget:?}");
    }
}
