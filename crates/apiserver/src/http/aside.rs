//! Heavy requests, answered beside the threads that serve everybody.
//!
//! A request enters with the room for heavy ones; its answer leaves. Each stretch of its work (from one `await` to the
//! next) waits for a place in that room and then runs where tokio lets a thread be busy: the other requests of the
//! thread go on elsewhere meanwhile. On a runtime of one thread nothing is moved, so that a run can be repeated.

use std::{future::Future, pin::pin, sync::Arc, task::Poll};

use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::Semaphore,
};
use tokio_util::sync::PollSemaphore;

/// What a request weighs, in bytes that it makes the server look at, from which on it is heavy: this much takes
/// milliseconds.
pub(super) const HEAVY: usize = 64 * 1024;

/// What an object in a list weighs: it is compared with a selector and referred to.
pub(super) const LISTED: usize = 32;

/// Room for heavy requests: half of the processors, so that the other half is always there for light ones.
pub(super) fn room() -> Arc<Semaphore> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new((processors / 2).max(1)))
}

/// Does the work; a stretch of it at a time in the room.
pub(super) async fn heavy<T>(room: &Arc<Semaphore>, work: impl Future<Output = T>) -> T {
    if !Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread) {
        return work.await;
    }
    let mut room = PollSemaphore::new(Arc::clone(room));
    let mut work = pin!(work);
    std::future::poll_fn(|context| {
        let place = match room.poll_acquire(context) {
            Poll::Ready(place) => place,
            Poll::Pending => return Poll::Pending,
        };
        let outcome = tokio::task::block_in_place(|| work.as_mut().poll(context));
        drop(place);
        outcome
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Work that keeps a thread until it is told to end.
    async fn busy(end: std::sync::mpsc::Receiver<()>) -> u32 {
        tokio::task::yield_now().await;
        end.recv().expect("somebody must end it");
        7
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn heavy_work_does_not_keep_the_thread_that_serves_others() {
        let (end, ended) = std::sync::mpsc::channel();
        let room = Arc::new(Semaphore::new(1));
        let work = tokio::spawn(async move { heavy(&room, busy(ended)).await });
        // With one worker, this task runs only if the other one does not hold it.
        tokio::spawn(async { tokio::time::sleep(Duration::from_millis(20)).await }).await.unwrap();
        tokio::spawn(async move { end.send(()).unwrap() }).await.unwrap();
        assert_eq!(work.await.unwrap(), 7);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn the_room_holds_nobody_who_waits() {
        let room = Arc::new(Semaphore::new(1));
        let sleeper = tokio::spawn({
            let room = Arc::clone(&room);
            async move { heavy(&room, std::future::pending::<()>()).await }
        });
        tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(heavy(&room, async { 1 }).await, 1, "who waits for somebody else is not in the way");
        sleeper.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn on_one_thread_nothing_is_moved() {
        let thread = std::thread::current().id();
        let work = async {
            tokio::time::sleep(Duration::from_hours(1)).await;
            std::thread::current().id()
        };
        assert_eq!(heavy(&room(), work).await, thread);
    }
}
