//! All connections of a listener: who they belong to, and who has to go when there are too many.
//!
//! A connection enters as a stranger. It stays one until a certificate or a token has shown whose it is, and there is
//! room for few strangers: for each that is too many, the oldest goes that has said nothing, or else the oldest. Users
//! have a share of the rest; who has taken it gives up a connection that is idle, and is refused if none is. Members of
//! `system:masters` always find room.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::connection::Connection;
use crate::auth::Identity;

/// How many connections there may be, and how long they may be silent.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// How many connections of known users there may be.
    pub connections: usize,
    /// How many of them one user may have, unless it belongs to `system:masters`.
    pub connections_per_user: usize,
    /// How many connections may be open on which nobody has shown who they are.
    pub strangers: usize,
    /// How many of those may come from one address.
    pub strangers_per_address: usize,
    /// How long a TLS handshake may take, and the head of a request from its first byte to its last.
    pub patience: Duration,
    /// How long a connection may wait for its next request.
    pub idle: Duration,
    /// The same as long as nobody has shown who they are.
    pub stranger_idle: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub unread: Duration,
    /// How often a client of HTTP/2 is asked whether it is still there, and how long it may take to answer.
    pub probe: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        // Clients give up connections that were idle for 90 seconds; the server must not be the first to. A stranger
        // costs up to 200 KB, mostly for a head that it never ends.
        Self {
            connections: 4096,
            connections_per_user: 2048,
            strangers: 256,
            strangers_per_address: 192,
            patience: Duration::from_secs(10),
            idle: Duration::from_mins(3),
            stranger_idle: Duration::from_secs(30),
            unread: Duration::from_mins(1),
            probe: Duration::from_secs(30),
        }
    }
}

/// The connections of a listener.
#[derive(Debug)]
pub(super) struct Connections {
    pub(super) limits: Limits,
    open: Mutex<Open>,
}

/// Connections by their number: the oldest first.
#[derive(Debug, Default)]
struct Open {
    last: u64,
    strangers: BTreeMap<u64, Arc<Connection>>,
    known: BTreeMap<u64, Owned>,
    addresses: BTreeMap<IpAddr, usize>,
    users: BTreeMap<Arc<str>, usize>,
}

#[derive(Debug)]
struct Owned {
    user: Arc<str>,
    master: bool,
    connection: Arc<Connection>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in a connection of which nothing is known yet but where it comes from.
    pub(super) fn accept(self: &Arc<Self>, address: IpAddr) -> Arc<Connection> {
        let mut guard = self.open();
        let open = &mut *guard;
        open.last += 1;
        let connection = Arc::new(Connection::new(open.last, address, Arc::clone(self)));
        open.strangers.insert(open.last, Arc::clone(&connection));
        let from_there = open.addresses.entry(address).or_default();
        *from_there += 1;
        if *from_there > self.limits.strangers_per_address {
            open.send_away_stranger(Some(address));
        } else if open.strangers.len() > self.limits.strangers {
            open.send_away_stranger(None);
        }
        connection
    }

    /// Makes room by sending a stranger away, or somebody who is idle: the system gives out no more connections.
    pub(super) fn relieve(&self) {
        let mut open = self.open();
        if !open.send_away_stranger(None) {
            open.send_away_idle(|_| true);
        }
    }

    /// Notes whose connection it is. Fails if that user has too many.
    pub(super) fn shown(&self, connection: &Arc<Connection>, who: &Identity) -> Result<(), String> {
        let (number, master) = (connection.number, who.is_master());
        let mut open = self.open();
        if open.known.get(&number).is_some_and(|known| *known.user == *who.name) {
            return Ok(());
        }
        if !open.strangers.contains_key(&number) && !open.known.contains_key(&number) {
            return Err("the connection was closed to make room for others".to_owned());
        }
        let own = open.users.get(&*who.name).copied().unwrap_or_default();
        if !master
            && own >= self.limits.connections_per_user
            && !open.send_away_idle(|one| *one.user == *who.name)
        {
            let limit = self.limits.connections_per_user;
            return Err(format!("Too many connections of user \"{}\": at most {limit}", who.name));
        }
        if open.known.len() >= self.limits.connections {
            let found = open.send_away_idle(|one| !one.master) || (master && open.send_away_busy());
            if !found && !master {
                return Err(format!("Too many connections: at most {}", self.limits.connections));
            }
        }
        open.forget(number);
        let user: Arc<str> = match open.users.get_key_value(&*who.name) {
            Some((user, _)) => Arc::clone(user),
            None => who.name.as_str().into(),
        };
        *open.users.entry(Arc::clone(&user)).or_default() += 1;
        open.known.insert(number, Owned { user, master, connection: Arc::clone(connection) });
        Ok(())
    }

    /// Forgets a connection that has ended.
    pub(super) fn ended(&self, number: u64) {
        self.open().forget(number);
    }
}

impl Open {
    fn forget(&mut self, number: u64) {
        if let Some(stranger) = self.strangers.remove(&number) {
            lessen(&mut self.addresses, &stranger.address);
        }
        if let Some(known) = self.known.remove(&number) {
            lessen(&mut self.users, &known.user);
        }
    }

    fn send_away(&mut self, found: Option<(u64, Arc<Connection>)>) -> bool {
        let Some((number, connection)) = found else { return false };
        self.forget(number);
        connection.cut();
        true
    }

    /// Sends the oldest stranger away, of one address or of any: who has had time to say something and has not, before
    /// who is saying something. Whoever has just come is never meant: it could not have spoken yet.
    fn send_away_stranger(&mut self, address: Option<IpAddr>) -> bool {
        let last = self.last;
        let there = || {
            let strangers = self.strangers.iter().filter(|(number, _)| **number != last);
            strangers.filter(|(_, one)| address.is_none_or(|address| one.address == address))
        };
        let found = there().find(|(_, one)| one.is_silent()).or_else(|| there().next());
        let found = found.map(|(number, connection)| (*number, Arc::clone(connection)));
        self.send_away(found)
    }

    /// Sends the oldest connection away on which nothing happens.
    fn send_away_idle(&mut self, of: impl Fn(&Owned) -> bool) -> bool {
        let found = self.known.iter().find(|(_, one)| of(one) && one.connection.is_idle());
        let found = found.map(|(number, one)| (*number, Arc::clone(&one.connection)));
        self.send_away(found)
    }

    /// Sends the oldest connection away of the user who has most of them.
    fn send_away_busy(&mut self) -> bool {
        let mut most: Option<(&Arc<str>, usize)> = None;
        for one in self.known.values().filter(|one| !one.master) {
            let count = self.users.get(&one.user).copied().unwrap_or_default();
            if most.is_none_or(|(_, before)| count > before) {
                most = Some((&one.user, count));
            }
        }
        let Some((user, _)) = most else { return false };
        let found = self.known.iter().find(|(_, one)| one.user == *user && !one.master);
        let found = found.map(|(number, one)| (*number, Arc::clone(&one.connection)));
        self.send_away(found)
    }
}

fn lessen<K: Ord + Clone>(counts: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::connection::SPEECHLESS, *};

    fn connections() -> Arc<Connections> {
        Connections::new(Limits {
            connections: 3,
            connections_per_user: 2,
            strangers: 4,
            strangers_per_address: 2,
            ..Limits::default()
        })
    }

    fn from(last: u8) -> IpAddr {
        IpAddr::from([127, 0, 0, last])
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_make_room_for_strangers_the_silent_ones_first() {
        let all = connections();
        let one = all.accept(from(1));
        one.heard(1);
        let two = all.accept(from(1));
        tokio::time::sleep(SPEECHLESS * 2).await;
        let three = all.accept(from(1));
        assert!(!one.is_cut() && two.is_cut() && !three.is_cut());
        // The third has not had the time to say anything, so the first goes, which is older.
        let four = all.accept(from(1));
        assert!(one.is_cut() && !three.is_cut() && !four.is_cut());
        let others = [all.accept(from(2)), all.accept(from(3)), all.accept(from(4))];
        assert!(three.is_cut() && !four.is_cut() && others.iter().all(|one| !one.is_cut()));
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_just_come_is_not_sent_away_for_who_came_before() {
        let all = connections();
        for _ in 0..10 {
            let new = all.accept(from(1));
            assert!(!new.is_cut());
            new.heard(1);
        }
    }

    #[tokio::test]
    async fn a_user_gives_up_what_is_idle_and_is_refused_when_nothing_is() {
        let (all, eve) = (connections(), Identity::new("eve", []));
        let (one, two) = (all.accept(from(1)), all.accept(from(1)));
        let busy = one.begin();
        all.shown(&one, &eve).unwrap();
        all.shown(&one, &eve).unwrap();
        all.shown(&two, &eve).unwrap();
        let three = all.accept(from(1));
        all.shown(&three, &eve).unwrap();
        assert!(two.is_cut() && !one.is_cut());
        let more = three.begin();
        let refused = all.shown(&all.accept(from(1)), &eve).unwrap_err();
        assert!(refused.contains("of user \"eve\": at most 2"), "{refused}");
        drop((busy, more));
    }

    #[tokio::test]
    async fn an_administrator_finds_room_where_nobody_else_does() {
        let all = connections();
        let users = ["eve", "eve", "mary"].map(|user| {
            let connection = all.accept(from(1));
            all.shown(&connection, &Identity::new(user, [])).unwrap();
            (connection.begin(), connection)
        });
        let refused = all.shown(&all.accept(from(1)), &Identity::new("jane", [])).unwrap_err();
        assert!(refused.contains("at most 3"), "{refused}");
        let admin = all.accept(from(1));
        all.shown(&admin, &Identity::admin()).unwrap();
        let cut = users.each_ref().map(|(_, connection)| connection.is_cut());
        assert_eq!(cut, [true, false, false], "the oldest of who has most must go");
        assert!(!admin.is_cut());
        for (_, connection) in &users {
            all.ended(connection.number);
        }
        all.ended(admin.number);
        let open = all.open();
        assert!(open.known.is_empty() && open.users.is_empty(), "{open:?}");
    }
}
