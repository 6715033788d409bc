//! What is said to a store, and what it answers: the words of acquire, renew, release and fence.

use std::fmt;
use std::time::Duration;

use crate::{FencingToken, LockName, Note, Owner, Terms, TokenRange, Width};

/// Whether a claim would like a place in the store's queue if the lock is held.
///
/// A wish: a store without a queue answers [`Answer::Busy`] all the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queueing {
    /// Take a place, or refresh the one this owner has.
    Wanted,
    /// Answer at once and keep nothing.
    Unwanted,
}

/// A request for a lease.
///
/// Asking again with the same owner gives the same tokens **and re-arms the ttl**; asking again from the queue
/// refreshes the place. That one re-ask is refresh, safety poll and re-check after a reconnect.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The lock.
    pub name: LockName,
    /// Who asks; fresh for every lease.
    pub owner: Owner,
    /// What kind of lease.
    pub terms: Terms,
    /// How many tokens to draw. A claim that repeats one that was granted names the width of that grant.
    pub width: Width,
    /// The highest token that this client had when it first asked as this owner, for the name, or for any where all names share a
    /// counter: a grant has to be above it.
    pub floor: Option<FencingToken>,
    /// Who asks, for people.
    pub note: Note,
    /// Whether to take a place in the queue.
    pub queueing: Queueing,
    /// Grant this and end that lease of the same client in one step, past the queue. Only where the store's capabilities say
    /// [`Ability::Replace`](crate::Ability::Replace).
    ///
    /// The old owner has nothing from then on: the store refuses what arrives late of it, as after a release of unknown
    /// certainty. Where it does not hold the lock, nothing is granted; but if this owner does, it was granted before.
    pub replaces: Option<Owner>,
}

/// What the store granted to an owner: a range of tokens, under the terms that were asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The lock.
    pub name: LockName,
    /// Who holds it.
    pub owner: Owner,
    /// The tokens of the turns under this lease.
    pub tokens: TokenRange,
    /// What a renewal asks the store for.
    pub terms: Terms,
}

/// What an acquire answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The owner holds the lock, for `valid_for` from when the store said so.
    Granted {
        /// The grant.
        lease: Lease,
        /// How long the store keeps it, at most the ttl asked for.
        valid_for: Duration,
        /// Whether others are known to wait for the lock. A hint.
        wanted: bool,
    },
    /// The owner has a place in the queue, for `valid_for`, unless it asks again.
    Queued {
        /// Its place, 1 for the next in line. It may be nearer to the head than that: places that were given up may count.
        position: u32,
        /// How long until the present lease ends, if nobody renews it and the store can tell.
        remaining: Option<Duration>,
        /// How long the store keeps the place.
        valid_for: Duration,
        /// Who holds the lock now.
        holder: Holder,
        /// The highest token that was drawn for the name before this answer, or for any name where all share a counter; `None`
        /// where the store does not say. A grant of a higher token came later than this answer.
        drawn: Option<FencingToken>,
    },
    /// Somebody else holds the lock, and nothing was kept.
    Busy {
        /// How long until the present lease ends, if nobody renews it and the store can tell.
        remaining: Option<Duration>,
        /// Who holds the lock now.
        holder: Holder,
        /// The highest token that was drawn for the name before this answer, or for any name where all share a counter; `None`
        /// where the store does not say. A grant of a higher token came later than this answer.
        drawn: Option<FencingToken>,
    },
}

/// Who holds a lock, as far as the store can tell. For people; it carries no authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A holder of this library's.
    Leasehold {
        /// The tokens of its lease.
        tokens: TokenRange,
        /// What it says of itself.
        note: Note,
    },
    /// Something that keeps a lock in a layout we respect but did not write.
    Foreign,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leasehold { note, .. } => note.fmt(f),
            Self::Foreign => f.write_str("something other than leasehold"),
        }
    }
}

/// What a renewal answers for one lease. A renewal never creates anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease runs for `valid_for` from when the store said so.
    Renewed {
        /// How long the store keeps it.
        valid_for: Duration,
        /// Whether others are known to wait for the lock. A hint.
        wanted: bool,
    },
    /// The store knows no such lease any more.
    NotHeld,
    /// The store cannot tell now, as with an error, but of this lease alone: it is asked again.
    Unsure,
}

/// Whether everything that was asked for an owner has been answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Every request of this owner was answered.
    Answered,
    /// A request of this owner may still be under way: the store should refuse it if it arrives later.
    Unknown,
}

/// A request to give up an owner's lease or its place in the queue, whichever there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The lock.
    pub name: LockName,
    /// Whose hold or place; never anybody else's.
    pub owner: Owner,
    /// The terms of its claims: a late one could do harm for their ttl.
    pub terms: Terms,
    /// Whether a claim of this owner may still be under way.
    pub certainty: Certainty,
    /// Do not free a held lock now: end it by itself after so long, and hand it over then. Only where the store's
    /// capabilities say [`Ability::Keep`](crate::Ability::Keep).
    ///
    /// The owner holds nothing from now on: no renewal and no claim of it extends or revives the lock, which is kept under
    /// [`Owner::kept`]. Asking again never lengthens the time; a release without `keep` ends it.
    pub keep: Option<Duration>,
}

/// What a release answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lock was held by the owner and is free, was handed to the next in line, or is kept as the request asked. Also
    /// where the backend had to ask twice, the answer to the first time was lost, and the second found nothing.
    Released,
    /// The owner left the queue.
    Left,
    /// The owner had neither.
    NotHeld,
}

/// What a fence answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// This is still the stored grant.
    Acknowledged,
    /// The owner holds the lock no more.
    NotHeld,
    /// A higher token is known.
    Higher(FencingToken),
}
