//! Rows of a store behind a network: what one request needs of a lock is loaded in one round trip, and what it decides is committed in
//! another one.
//!
//! No lock is held in between, so a client that stalls delays nobody. Instead, a commit compares what its decision depends on, and writes
//! nothing if that has changed; then its request loads the lock again:
//!
//! - the `version` of the lock, which rises with every change except renewals and arrivals;
//! - its `tail`, the number of the last waiter that has arrived. Most decisions about a busy lock do not depend on it;
//! - the ends of leases, because a renewal changes nothing else;
//! - the store's clock: what the request acts on must not have expired before the commit.
//!
//! A [`Request`] does no I/O. Its store asks it for the next [`Step`], takes that, and tells it the outcome:
//!
//! ```
//! # use lock_core::*;
//! # use lock_rules::window::*;
//! # struct Server;
//! # impl WindowStore for Server { const BACKEND: &'static str = "server"; type Client = (); }
//! # impl Server {
//! # fn load(&self, _: &LockName, _: Needs) -> Result<Window<()>, BackendError> { todo!() }
//! # fn commit(&self, _: &LockName, _: Commit<()>) -> Result<Committed, BackendError> { todo!() }
//! fn run<T>(&self, name: &LockName, mut request: Request<'_, Self, T>) -> Result<T, BackendError> {
//!     let mut step = request.begin();
//!     loop {
//!         step = match step {
//!             Step::Load(needs) => request.loaded(self.load(name, needs)?),
//!             Step::Commit(commit) => request.committed(self.commit(name, commit)?),
//!             Step::Done(answer) => return answer,
//!         };
//!     }
//! }
//!
//! fn acquire(&self, claim: &Claim) -> Result<Answer, BackendError> {
//!     self.run(&claim.name, acquire((), claim))
//! }
//! # }
//! ```
//!
//! The store sets the time limit: when it is over, it drops the request, and no commit is sent later. A store may answer common requests by
//! one statement, which may only answer what these rules would have answered.

mod decision;
mod latches;
mod request;

use lock_core::limit::Record;
use lock_core::{BackendError, Claim, FencingToken, Lease, Moment, Note, Owner, Queueing, ReleaseRequest};

pub use self::latches::{LatchCommit, LatchWindow, ask_latch};
pub use self::request::{Request, acquire, fence, limit, release, renew, revoke, survey};
use crate::position::COUNTED_MAX;
use crate::rows::{Hold, Notice, Place, Write};

/// How many expired leases a window holds at most. Chosen: more than usually expire between two requests to a lock, and little to load.
pub const EXPIRED_MAX: usize = 64;

/// A store behind a network.
pub trait WindowStore {
    /// The store's name in errors.
    const BACKEND: &'static str;
    /// The address at which a waiter is notified.
    type Client: Clone;
}

/// The next step of the store for a [`Request`].
#[derive(Debug)]
pub enum Step<C, T> {
    /// Load what the request needs, all as it was at one moment, and read the clock at that moment or later. (In PostgreSQL, this is
    /// `clock_timestamp()` after the rows, and never `now()`.)
    Load(Needs),
    /// Write this, or nothing.
    Commit(Commit<C>),
    /// Answer the request.
    Done(Result<T, BackendError>),
}

/// The outcome of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Committed {
    /// All changes are written.
    Written,
    /// The lock had changed, and nothing is written.
    Conflict,
}

/// The part of a lock that a request reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The owners whose leases, places and tombstones it reads.
    pub owners: Vec<Owner>,
    /// The token whose lease or revocation it reads.
    pub token: Option<FencingToken>,
    /// How many free slots it reads.
    pub slots: u32,
    /// It reads the leases that end first, as many as free this many permits.
    pub ends: u32,
    /// How many of the first places it reads in full.
    pub places: u32,
    /// How many of the first places it reads only the numbers of, to count the waiters before one.
    pub numbers: u32,
    /// It reads the places that ask for more permits than this.
    pub above: Option<u32>,
}

impl Needs {
    pub(crate) fn of_claim(claim: &Claim) -> Self {
        let owners = [claim.owner].into_iter().chain(claim.replaces).collect();
        let numbers = match claim.queueing {
            Queueing::Wanted => COUNTED_MAX,
            Queueing::Unwanted => 0,
        };
        let permits = claim.terms.mode.count();
        Self { owners, slots: permits, ends: permits, places: 2, numbers, ..Self::default() }
    }

    pub(crate) fn of_release(request: &ReleaseRequest) -> Self {
        let owners = vec![request.owner, request.owner.kept()];
        let permits = request.terms.mode.count();
        Self { owners, slots: permits, ends: permits, places: 2, ..Self::default() }
    }

    pub(crate) fn of_lease(lease: &Lease) -> Self {
        Self { owners: vec![lease.owner], places: 1, ..Self::default() }
    }
}

/// The part of a lock that was loaded.
///
/// A row that has expired at `now` is in none of these fields but `expired`. The modes of leases and places are under the limit in force.
#[derive(Clone, Debug)]
pub struct Window<C> {
    /// The needs of the request.
    pub needs: Needs,
    /// The store's clock.
    pub now: Moment,
    /// Rises with every change except renewals and arrivals, also if the store removes expired leases by itself. A load that finds no row of
    /// the lock makes one, so that a commit has a row to compare; its version begins at the clock's microseconds, above that of a row that
    /// was removed.
    pub version: u64,
    /// The highest number that a place ever had, even if nobody waits now; 0 in a new row.
    pub tail: u64,
    /// The number above which the next token is drawn. Each lock has its own, because a commit compares nothing else. It is the larger one of
    /// the stored number and the clock's microseconds, since a replica or a backup may have an old number.
    pub last_token: u64,
    /// The limit that was set.
    pub limit: Option<Record>,
    /// How many permits are taken, those of expired leases included.
    pub permits: u32,
    /// Leases that have expired and are still stored: those that ended first, at most [`EXPIRED_MAX`].
    pub expired: Vec<Hold>,
    /// The two leases that end last, the last one first.
    pub last: Vec<Hold>,
    /// The ends of the leases that end first, each with its number of permits: just enough for `needs.ends`.
    pub first_ends: Vec<(Moment, u32)>,
    /// The lowest slots that no stored lease has, as many as `needs.slots`.
    pub free_slots: Vec<u32>,
    /// What is stored for each of `needs.owners`.
    pub owners: Vec<OfOwner<C>>,
    /// The lease whose tokens include `needs.token`.
    pub with_token: Option<Hold>,
    /// The operator who revoked the lease whose highest token is `needs.token`.
    pub revoked_by: Option<Note>,
    /// The first `needs.places` places, in their order.
    pub places: Vec<Place<C>>,
    /// The numbers of the first `needs.numbers` places, in their order.
    pub numbers: Vec<u64>,
    /// The places that ask for more permits than `needs.above`.
    pub above: Vec<Place<C>>,
}

/// The rows of one owner.
#[derive(Clone, Debug)]
pub struct OfOwner<C> {
    /// The owner.
    pub owner: Owner,
    /// Its lease.
    pub hold: Option<Hold>,
    /// Its place.
    pub place: Option<Place<C>>,
    /// Whether its late claims are refused.
    pub is_given_up: bool,
}

/// The decision of a request, and the rows that it depends on.
///
/// In one step, a store
/// 1. locks the row of the lock, if there is a `version`, and then the rows of `leases` in the order of their owners; it reads these rows and
///    its clock;
/// 2. answers [`Committed::Conflict`] unless the version and the tail, if present, and all leases are as they were loaded, and its clock
///    shows less than `before`;
/// 3. makes the changes in their order. The version rises if there are `permits`, and a place with a number above the tail raises the
///    tail to it.
///
/// It may compare only what it has read under those row locks: in many databases, a statement that has waited for a row lock still reads other
/// rows as they were before. So this is a transaction of several statements, or a function of the database. If the database ends it
/// because of a deadlock or a serialization failure, nothing is written: that is a conflict. A commit whose answer is lost is an error, and
/// is not repeated.
#[derive(Clone, Debug)]
pub struct Commit<C> {
    /// The version that was loaded. `None` if the decision depends on `leases` alone.
    pub version: Option<u64>,
    /// The tail that was loaded, if the decision depends on the end of the queue.
    pub tail: Option<u64>,
    /// The leases to compare: those that the request is about, and if there is a version, those that had expired.
    pub leases: Vec<Compared>,
    /// When the first expires of what the decision acts on: the request's own leases, and places. Other leases may expire meanwhile: they
    /// were counted as held, and the next request removes them.
    pub before: Option<Moment>,
    /// The changed rows, in this order. There are none if the commit only compares.
    pub writes: Vec<Write<C>>,
    /// The clients to notify once the rows are written.
    pub notices: Vec<Notice<C>>,
    /// The permits of all leases that are stored afterwards, expired ones included: a number to keep with the lock, 0 if it is no semaphore.
    /// `None` if the version stays as it is, after renewals and arrivals.
    pub permits: Option<u32>,
}

/// A lease that a commit compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The holder's owner.
    pub owner: Owner,
    /// The highest token of the lease.
    pub highest: FencingToken,
    /// When it ends, or has ended.
    pub until: Moment,
}

impl From<&Hold> for Compared {
    fn from(hold: &Hold) -> Self {
        Self { owner: hold.owner, highest: hold.tokens.high(), until: hold.until }
    }
}
