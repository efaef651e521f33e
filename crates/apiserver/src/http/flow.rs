//! Requests in flight: how many there may be, and whose turn is next.
//!
//! A request enters with its user and a [`Kind`]; a [`Seat`] leaves, or the refusal that there is none. Reads and writes
//! have seats of their own. A user has a share of them; whoever has taken it waits in a line of its own, and the lines
//! are served in turn, so that nobody waits longer because somebody else asks more often. Whoever belongs to
//! `system:masters`, whoever asks after the server's health and whoever is in this process waits for nobody.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::sync::oneshot;

use super::guard::too_many;
use crate::error::Result;

/// What a request does, as far as its seat is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ReadOnly,
    Mutating,
}

/// How many requests of one kind may be answered at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct Width {
    /// By all users together.
    pub(super) all: usize,
    /// By one of them.
    pub(super) user: usize,
    /// How many more of one user may wait.
    pub(super) waiting: usize,
    /// For how long.
    pub(super) timeout: Duration,
}

/// The seats of a server.
#[derive(Debug)]
pub(super) struct Flow {
    read_only: Arc<Seats>,
    mutating: Arc<Seats>,
}

/// The seats for one kind of request, and what has become of those who wanted one.
#[derive(Debug)]
pub(super) struct Seats {
    width: Width,
    lines: Mutex<Lines>,
    pub(super) exempt: AtomicU64,
    pub(super) exempt_dispatched: AtomicU64,
    pub(super) dispatched: AtomicU64,
    pub(super) queue_full: AtomicU64,
    pub(super) timed_out: AtomicU64,
}

#[derive(Debug, Default)]
struct Lines {
    executing: usize,
    waiting: usize,
    users: BTreeMap<Arc<str>, Line>,
    /// Whose line is served next. A user is in here once as long as somebody stands in its line.
    turns: VecDeque<Arc<str>>,
}

#[derive(Debug, Default)]
struct Line {
    executing: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
}

/// Leave to be answered, for as long as it is held.
#[derive(Debug)]
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Whose share it is taken from; nobody's if it is exempt.
    user: Option<Arc<str>>,
}

impl Flow {
    pub(super) fn new(read_only: Width, mutating: Width) -> Self {
        Self { read_only: Seats::new(read_only), mutating: Seats::new(mutating) }
    }

    pub(super) fn seats(&self, kind: Kind) -> &Arc<Seats> {
        match kind {
            Kind::ReadOnly => &self.read_only,
            Kind::Mutating => &self.mutating,
        }
    }

    /// A seat that waits for nobody.
    pub(super) fn exempt(&self, kind: Kind) -> Seat {
        let seats = Arc::clone(self.seats(kind));
        seats.exempt.fetch_add(1, Ordering::Relaxed);
        seats.exempt_dispatched.fetch_add(1, Ordering::Relaxed);
        Seat { seats, user: None }
    }

    /// A seat for a user's request, at once or in its turn.
    pub(super) async fn seat(&self, kind: Kind, user: &str) -> Result<Seat> {
        let seats = self.seats(kind);
        let (user, turn) = match seats.enter(user) {
            Entered::Seated(seat) => return Ok(seat),
            Entered::Full => {
                seats.queue_full.fetch_add(1, Ordering::Relaxed);
                return Err(crowded(user));
            }
            Entered::Waiting(user, turn) => (user, turn),
        };
        let mut waiting = Waiting { seats: Arc::clone(seats), user, turn: Some(turn) };
        match tokio::time::timeout(seats.width.timeout, waiting.turn()).await {
            Ok(()) => Ok(waiting.seated()),
            Err(_) => {
                seats.timed_out.fetch_add(1, Ordering::Relaxed);
                Err(crowded(&waiting.user))
            }
        }
    }
}

fn crowded(user: &str) -> crate::error::Error {
    too_many(format!(
        "Too many requests, please try again later: as many requests of user \"{user}\" are waiting for an answer as \
         may wait at once"
    ))
}

enum Entered {
    Seated(Seat),
    Waiting(Arc<str>, oneshot::Receiver<()>),
    Full,
}

impl Seats {
    fn new(width: Width) -> Arc<Self> {
        Arc::new(Self {
            width,
            lines: Mutex::default(),
            exempt: AtomicU64::new(0),
            exempt_dispatched: AtomicU64::new(0),
            dispatched: AtomicU64::new(0),
            queue_full: AtomicU64::new(0),
            timed_out: AtomicU64::new(0),
        })
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many requests have a seat that is counted, and how many wait for one.
    pub(super) fn occupied(&self) -> (usize, usize) {
        let lines = self.lines();
        (lines.executing, lines.waiting)
    }

    fn enter(self: &Arc<Self>, user: &str) -> Entered {
        let mut lines = self.lines();
        let name = match lines.users.get_key_value(user) {
            Some((name, _)) => Arc::clone(name),
            None => Arc::from(user),
        };
        let free = lines.executing < self.width.all;
        let line = lines.users.entry(Arc::clone(&name)).or_default();
        if free && line.executing < self.width.user && line.waiting.is_empty() {
            line.executing += 1;
            lines.executing += 1;
            self.dispatched.fetch_add(1, Ordering::Relaxed);
            return Entered::Seated(Seat { seats: Arc::clone(self), user: Some(name) });
        }
        if line.waiting.len() >= self.width.waiting {
            return Entered::Full;
        }
        let (seat, turn) = oneshot::channel();
        line.waiting.push_back(seat);
        if line.waiting.len() == 1 {
            lines.turns.push_back(Arc::clone(&name));
        }
        lines.waiting += 1;
        Entered::Waiting(name, turn)
    }

    /// Gives a seat back, and gives what is free to those whose turn it is.
    fn free_seat(&self, user: &str) {
        let mut lines = self.lines();
        lines.executing -= 1;
        if let Some(line) = lines.users.get_mut(user) {
            line.executing -= 1;
            if line.executing == 0 && line.waiting.is_empty() {
                lines.users.remove(user);
            }
        }
        self.serve(&mut lines);
    }

    fn serve(&self, lines: &mut Lines) {
        let mut passed = 0;
        while lines.executing < self.width.all && passed < lines.turns.len() {
            let Some(user) = lines.turns.pop_front() else { return };
            let Some(line) = lines.users.get_mut(&user) else { continue };
            if line.executing >= self.width.user {
                // It has its share; its line keeps its place behind the others.
                lines.turns.push_back(user);
                passed += 1;
                continue;
            }
            passed = 0;
            while let Some(next) = line.waiting.pop_front() {
                lines.waiting -= 1;
                // Whoever has gone away does not answer.
                if next.send(()).is_ok() {
                    line.executing += 1;
                    lines.executing += 1;
                    self.dispatched.fetch_add(1, Ordering::Relaxed);
                    break;
                }
            }
            if !line.waiting.is_empty() {
                lines.turns.push_back(user);
            } else if line.executing == 0 {
                lines.users.remove(&user);
            }
        }
    }

    /// Takes those out of a line who have gone away.
    fn forget_gone(&self, user: &str) {
        let mut lines = self.lines();
        let Some(line) = lines.users.get_mut(user) else { return };
        let before = line.waiting.len();
        line.waiting.retain(|one| !one.is_closed());
        let (gone, empty, idle) = (before - line.waiting.len(), line.waiting.is_empty(), line.executing == 0);
        lines.waiting -= gone;
        if empty && gone > 0 {
            lines.turns.retain(|one| &**one != user);
            if idle {
                lines.users.remove(user);
            }
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        match &self.user {
            Some(user) => self.seats.free_seat(user),
            None => drop(self.seats.exempt.fetch_sub(1, Ordering::Relaxed)),
        }
    }
}

/// A place in a line. Whoever goes away gives it up, and the seat too if that came at the same moment.
struct Waiting {
    seats: Arc<Seats>,
    user: Arc<str>,
    turn: Option<oneshot::Receiver<()>>,
}

impl Waiting {
    async fn turn(&mut self) {
        if let Some(turn) = &mut self.turn
            && turn.await.is_err()
        {
            // The line lives as long as the server, which is answering this request.
            std::future::pending::<()>().await;
        }
    }

    fn seated(&mut self) -> Seat {
        self.turn = None;
        Seat { seats: Arc::clone(&self.seats), user: Some(Arc::clone(&self.user)) }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        turn.close();
        if turn.try_recv().is_ok() {
            self.seats.free_seat(&self.user);
        } else {
            self.seats.forget_gone(&self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(all: usize, user: usize, waiting: usize) -> Flow {
        let width = Width { all, user, waiting, timeout: Duration::from_secs(15) };
        Flow::new(width, width)
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_a_share_and_a_line_and_no_more() {
        let flow = flow(4, 2, 1);
        let one = flow.seat(Kind::Mutating, "eve").await.unwrap();
        let _two = flow.seat(Kind::Mutating, "eve").await.unwrap();
        let mut third = Box::pin(flow.seat(Kind::Mutating, "eve"));
        assert!(futures::poll!(&mut third).is_pending());
        let refused = flow.seat(Kind::Mutating, "eve").await.unwrap_err();
        assert_eq!((refused.code, refused.details.unwrap().retry_after_seconds), (429, 1));
        // Others have theirs, and reads are none of it.
        flow.seat(Kind::Mutating, "mary").await.unwrap();
        flow.seat(Kind::ReadOnly, "eve").await.unwrap();
        drop(one);
        third.await.unwrap();
        assert_eq!(flow.seats(Kind::Mutating).occupied(), (1, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_served_in_turn() {
        let flow = flow(1, 1, 100);
        let first = flow.seat(Kind::ReadOnly, "eve").await.unwrap();
        let mut waiting = Vec::new();
        for user in ["eve", "eve", "eve", "eve", "mary", "jane"] {
            let mut seat = Box::pin(flow.seat(Kind::ReadOnly, user));
            assert!(futures::poll!(&mut seat).is_pending());
            waiting.push((user, seat));
        }
        let mut order = Vec::new();
        let mut held = first;
        while !waiting.is_empty() {
            drop(held);
            let mut ready = None;
            for (at, (user, seat)) in waiting.iter_mut().enumerate() {
                if let std::task::Poll::Ready(seat) = futures::poll!(seat) {
                    order.push(*user);
                    ready = Some((at, seat.unwrap()));
                    break;
                }
            }
            let (at, seat) = ready.expect("a free seat must be given to somebody");
            drop(waiting.remove(at));
            held = seat;
        }
        assert_eq!(order, ["eve", "mary", "jane", "eve", "eve", "eve"]);
        drop(held);
        let lines = flow.seats(Kind::ReadOnly).lines();
        assert!(lines.users.is_empty() && lines.turns.is_empty() && lines.waiting == 0);
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_too_long_or_goes_away_leaves_nothing_behind() {
        let flow = flow(1, 1, 100);
        let held = flow.seat(Kind::ReadOnly, "eve").await.unwrap();
        assert_eq!(flow.seat(Kind::ReadOnly, "eve").await.unwrap_err().code, 429);
        let mut gone = Box::pin(flow.seat(Kind::ReadOnly, "mary"));
        assert!(futures::poll!(&mut gone).is_pending());
        drop(gone);
        // A seat that comes at the moment at which its user goes is not lost.
        let mut late = Box::pin(flow.seat(Kind::ReadOnly, "jane"));
        assert!(futures::poll!(&mut late).is_pending());
        drop(held);
        drop(late);
        assert_eq!(flow.seats(Kind::ReadOnly).occupied(), (0, 0));
        assert!(flow.seats(Kind::ReadOnly).lines().users.is_empty());
        flow.seat(Kind::ReadOnly, "eve").await.unwrap();
    }
}
