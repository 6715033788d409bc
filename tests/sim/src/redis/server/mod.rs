//! The model of one Redis with our scripts: what it stores, who listens, and how it starts again.

mod database;
mod keys;
mod queue;
mod scripts;
mod units;

use std::collections::BTreeSet;

use lock_core::inspect::Revoked;
use lock_core::{
    Answer, Claim, Event, Fenced, FencingToken, Lease, LockName, Moment, ReleaseRequest, Released, Renewed,
};

use database::RunId;
pub(crate) use database::{Database, Detail};
pub(crate) use keys::{Kept, Stored};
pub use scripts::Refused;
use scripts::{Listeners, Script};
pub(crate) use units::millis;
pub use units::{Inbox, Seat};

use crate::network::ConnId;
use crate::redis::Mistake;

/// What a client asks over a connection.
#[derive(Clone, Debug)]
pub enum Ask {
    /// The first words: verify the counter, and listen to this inbox.
    Hello(Option<Inbox>),
    /// The first verb.
    Acquire(Claim, Seat),
    /// The second verb.
    Renew(Vec<Lease>),
    /// The third verb.
    Release(ReleaseRequest),
    /// The fourth verb.
    Fence(Lease),
    /// An operator ends the lease that spans a token.
    Revoke(LockName, FencingToken),
}

/// What the server says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Say {
    /// To [`Ask::Hello`].
    Hello,
    /// To [`Ask::Acquire`].
    Acquire(Result<Answer, Refused>),
    /// To [`Ask::Renew`].
    Renew(Vec<Renewed>),
    /// To [`Ask::Release`].
    Release(Released),
    /// To [`Ask::Fence`].
    Fence(Fenced),
    /// To [`Ask::Revoke`].
    Revoke(Revoked),
}

/// What follows from one script.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) say: Say,
    pub(crate) published: Vec<(Inbox, Event)>,
    /// What was newly granted.
    pub(crate) granted: Vec<Lease>,
}

/// One Redis.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) data: Database,
    run_id: RunId,
    listeners: Listeners,
    mistake: Option<Mistake>,
    detail: Detail,
}

impl Server {
    pub(crate) fn new(mistake: Option<Mistake>) -> Self {
        Self { data: Database::default(), run_id: 1, listeners: Listeners::new(), mistake, detail: Detail::default() }
    }

    pub(crate) fn telling(mut self, detail: Detail) -> Self {
        self.detail = detail;
        self
    }

    /// Runs what is asked. `now` is the server's clock.
    pub(crate) fn run(&mut self, now: Moment, conn: ConnId, ask: &Ask) -> Outcome {
        if let Ask::Hello(Some(inbox)) = ask {
            self.listeners.entry(*inbox).or_default().insert(conn);
        }
        let run_id = self.run_id;
        let (published, granted) = (Vec::new(), Vec::new());
        let (data, listeners, mistake, detail) = (&mut self.data, &self.listeners, self.mistake, self.detail);
        let mut script = Script { data, now, listeners, mistake, detail, published, granted };
        let say = match ask {
            Ask::Hello(_) => {
                script.verify(run_id);
                Say::Hello
            }
            Ask::Acquire(claim, seat) => Say::Acquire(script.acquire(claim, *seat)),
            Ask::Renew(leases) => Say::Renew(script.renew(leases)),
            Ask::Release(request) => Say::Release(script.release(request)),
            Ask::Fence(lease) => Say::Fence(script.fence(lease)),
            Ask::Revoke(name, token) => Say::Revoke(script.revoke(name, *token)),
        };
        Outcome { say, published: script.published, granted: script.granted }
    }

    /// The connections that listen to an inbox.
    pub(crate) fn heard_on(&self, inbox: Inbox) -> BTreeSet<ConnId> {
        self.listeners.get(&inbox).cloned().unwrap_or_default()
    }

    /// A connection is gone, and its subscriptions with it.
    pub(crate) fn closed(&mut self, conn: ConnId) {
        for conns in self.listeners.values_mut() {
            conns.remove(&conn);
        }
        self.listeners.retain(|_, conns| !conns.is_empty());
    }

    /// Starts again, as another run of the server, with these data.
    pub(crate) fn start_again(&mut self, data: Database) {
        self.data = data;
        self.listeners.clear();
        self.run_id += 1;
    }

    /// A client of the plain layout: `SET key value NX PX life`. Returns whether the lock was free.
    pub(crate) fn foreign_set(&mut self, now: Moment, name: &LockName, value: u64, life: u64) -> bool {
        let now = millis(now);
        let keys = self.data.locks.entry(name.clone()).or_default();
        keys.forget_what_is_over(now);
        let free = keys.lock.is_none();
        if free {
            keys.lock = Some(Kept { value: Stored::Foreign(value), ends: now + life });
        }
        free
    }

    /// A client of the plain layout: compare and delete. Returns whether it was there.
    pub(crate) fn foreign_delete(&mut self, name: &LockName, value: u64) -> bool {
        let keys = self.data.locks.get_mut(name);
        keys.and_then(|keys| keys.lock.take_if(|lock| lock.value == Stored::Foreign(value))).is_some()
    }

    /// Drops what has expired. Redis does so when a key is read; keys that nobody reads do not matter.
    pub(crate) fn forget_what_is_over(&mut self, now: Moment) {
        for keys in self.data.locks.values_mut() {
            keys.forget_what_is_over(millis(now));
        }
        self.data.locks.retain(|_, keys| !keys.is_empty());
    }
}
