//! The requests to a store and its answers: acquire, renew, release and fence.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    BackendError, FencingToken, Holder, LockName, Mode, NameKind, Note, Owner, Slots, Terms, TokenRange, Width,
};

/// Whether a claim would like a place in the store's queue if the lock is held.
///
/// Only a wish: a store without a queue answers [`Answer::Busy`] regardless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queueing {
    /// Take a place, or refresh the one that this owner has.
    Wanted,
    /// Answer at once and keep nothing.
    Unwanted,
}

/// Whether a claim respects the waiters before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Fairness {
    /// It is granted after all waiters before it.
    #[default]
    Fair,
    /// It is granted whenever it fits beside the present holders, although others wait that do not. Otherwise it waits like any other.
    Barging,
}

/// A request for a lease.
///
/// Asking again with the same owner gives the same tokens **and re-arms the ttl** (at a quorum, the tokens may be higher);
/// asking again from the queue refreshes the place. The same request serves as refresh, as poll and as check after a reconnect.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The lock.
    pub name: LockName,
    /// The owner; fresh for every lease.
    pub owner: Owner,
    /// The terms of the lease.
    pub terms: Terms,
    /// How many tokens to draw: of a claim for permits, one for each. A repeated claim names the width of its grant.
    pub width: Width,
    /// The highest token that this client had had when it first asked as this owner, for this name, or for any name if
    /// all names share a counter. The token of a grant must be above it.
    pub floor: Option<FencingToken>,
    /// The claimant's note, for display.
    pub note: Note,
    /// Whether to take a place in the queue.
    pub queueing: Queueing,
    /// Grant this and end that lease of the same client in one step, past the queue. See [`Ability::Replace`](crate::Ability).
    ///
    /// - An exclusive lease is replaced by an exclusive one, or by a shared one.
    /// - A shared lease is replaced by a shared one; or by an exclusive one if no other lease holds the lock. Otherwise the
    ///   answer is [`Answer::Busy`], and nothing changes.
    /// - Permits are replaced by as many or fewer permits of the same limit, which keep the first of the slots.
    ///
    /// Anything else is refused as a violation of the protocol. What is no longer held is handed over. The old owner has
    /// nothing from then on: the store refuses what arrives late of it, as after a release of unknown certainty. If it does not
    /// hold the lock, the error is [`ErrorKind::NotHeld`](crate::ErrorKind::NotHeld), unless this claim was granted before. So
    /// of several claims that replace one lease, only one is granted: a [`Ticket`](crate::Ticket) is adopted at most once.
    pub replaces: Option<Owner>,
    /// Whether it may be granted ahead of waiters. It has no effect with [`Claim::replaces`].
    pub fairness: Fairness,
    /// What the name is used as. Only stores with [`WriteSide::Apart`](crate::WriteSide::Apart) need it: for the others, the mode says enough.
    pub kind: NameKind,
}

impl Claim {
    /// The same claim in another mode.
    #[must_use]
    pub fn in_mode(&self, mode: Mode) -> Self {
        Self { terms: Terms { mode, ..self.terms }, ..self.clone() }
    }

    /// A request to give up whatever this claim has led to, of which nothing more is known.
    pub fn release(&self, certainty: Certainty) -> ReleaseRequest {
        let Self { name, owner, terms, .. } = self.clone();
        ReleaseRequest { name, owner, terms, certainty, keep: None, evidence: Evidence::Nothing }
    }

    /// The lease that grants these tokens to this claim, without slots.
    pub fn lease(&self, tokens: TokenRange) -> Lease {
        self.lease_of(tokens, Slots::NONE)
    }

    /// The lease that grants these tokens and slots to this claim.
    pub fn lease_of(&self, tokens: TokenRange, slots: Slots) -> Lease {
        let terms = Terms { mode: self.terms.mode.covering(&slots), ..self.terms };
        Lease { name: self.name.clone(), owner: self.owner, tokens, terms, slots }
    }
}

/// A lease that the store granted to an owner: a range of tokens, under the requested terms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// The lock.
    pub name: LockName,
    /// The holder.
    pub owner: Owner,
    /// The tokens of the turns under this lease.
    pub tokens: TokenRange,
    /// The terms for which a renewal asks the store. Those of the claim; only the limit of permits may be another one, because it
    /// was [changed](crate::limit) since.
    pub terms: Terms,
    /// The slots of its permits, as many as the mode counts; [`Slots::NONE`] in any other mode.
    pub slots: Slots,
}

impl Lease {
    /// Whether both are the same grant. Its limit may have been changed since.
    pub(crate) fn is_that_of(&self, other: &Self) -> bool {
        let same_terms = self.terms.are_like(other.terms) && self.slots == other.slots;
        same_terms && (&self.name, self.owner, self.tokens) == (&other.name, other.owner, other.tokens)
    }

    /// Whether it has the slots and the tokens that its mode takes.
    pub(crate) fn has_its_slots(&self) -> bool {
        let (mode, slots, tokens) = (self.terms.mode, self.slots.get(), self.tokens.width());
        match mode {
            Mode::Exclusive | Mode::Shared => slots.is_empty(),
            Mode::Permits { limit, .. } => {
                let in_range = slots.last().is_some_and(|last| *last < limit.get());
                in_range && tokens == mode.width() && u64::try_from(slots.len()) == Ok(tokens.get())
            }
        }
    }
}

/// The answer to an acquire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The owner holds the lock for `valid_for`, counted from the store's answer.
    Granted {
        /// The grant.
        lease: Lease,
        /// How long the store keeps it; at most the requested ttl.
        valid_for: Duration,
        /// Whether others are known to wait for the lock. A hint.
        wanted: bool,
    },
    /// The owner has a place in the queue, for `valid_for`, unless it asks again.
    Queued {
        /// Its position, 1 for the next waiter. It may be nearer to the head, because places that were given up may
        /// count.
        position: u32,
        /// How long until the first waiter, or this claim if nobody waits, could be served at the earliest: until enough
        /// leases have ended, unless they are renewed. `None` if the store cannot tell.
        remaining: Option<Duration>,
        /// How long the store keeps the place.
        valid_for: Duration,
        /// The current holder: of several, the one whose lease ends last.
        holder: Holder,
        /// The highest token that was drawn for the name before this answer, or for any name if all share a counter;
        /// `None` if the store does not report it. A grant with a higher token is later than this answer.
        drawn: Option<FencingToken>,
    },
    /// Other owners hold the lock or wait for it, and the store keeps no place for this one.
    Busy {
        /// As in [`Answer::Queued`].
        remaining: Option<Duration>,
        /// The current holder: of several, the one whose lease ends last.
        holder: Holder,
        /// As in [`Answer::Queued`].
        drawn: Option<FencingToken>,
    },
}

/// The answer of a renewal for one lease. A renewal never creates anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Renewed {
    /// The lease lasts for `valid_for`, counted from the store's answer.
    Renewed {
        /// How long the store keeps it.
        valid_for: Duration,
        /// Whether others are known to wait for the lock. A hint.
        wanted: bool,
    },
    /// The store no longer knows the lease.
    NotHeld,
    /// Somebody [revoked](crate::AsyncBackend::revoke) the lease, and the store still remembers who.
    Revoked {
        /// The operator, by their own description.
        by: Note,
    },
    /// The store cannot tell now, and why. This is like an error, but for this lease only, which is then asked for again.
    Unsure(BackendError),
}

/// Whether every request of an owner was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Certainty {
    /// Every request of this owner was answered.
    Answered,
    /// A request of this owner may still be in flight: the store should refuse it if it arrives later.
    Unknown,
}

/// The client's evidence of the hold that a release ends.
///
/// It matters only to a store that may have forgotten some of its leases: see [`ReleaseRequest::evidence`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// The hold was still valid when this release, the first one of this owner, was handed out. So nobody else has held the
    /// lock exclusively since it was granted.
    ValidHold,
    /// Nothing: an earlier release was not answered, the hold may have expired, or it is a place or a claim that ends.
    Nothing,
}

/// A request to give up an owner's lease or its place in the queue, whichever exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReleaseRequest {
    /// The lock.
    pub name: LockName,
    /// The owner of the hold or place. Nobody else's is touched.
    pub owner: Owner,
    /// The terms of its claims: a late claim could do harm for their ttl.
    pub terms: Terms,
    /// Whether a claim of this owner may still be in flight.
    pub certainty: Certainty,
    /// Do not free a held lock now: let it expire after this time, and hand it over then. Only for exclusive leases, and only
    /// if the store's capabilities include [`Ability::Keep`](crate::Ability::Keep).
    ///
    /// The owner holds nothing from now on: none of its renewals or claims extends or revives the lock, which is kept
    /// under [`Owner::kept`]. Asking again never lengthens the time; a release without `keep` ends it.
    pub keep: Option<Duration>,
    /// What is known about the hold. A store that may have forgotten leases, and so grants no free lock, hands an exclusive
    /// lock over to the next waiter only on the evidence of a valid hold. Otherwise the lock becomes free.
    pub evidence: Evidence,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The lock was held by the owner and is free, was handed to the next waiter, or is kept as requested. Also the answer if the backend
    /// had to ask twice, because the first answer was lost, and the second request found nothing.
    Released,
    /// The owner left the queue.
    Left,
    /// The owner had neither.
    NotHeld,
}

impl Released {
    /// The meaning of this answer to a request that was sent before: if the repetition finds nothing, the first one has ended the hold.
    #[must_use]
    pub fn repeated(self) -> Self {
        if self == Self::Left { Self::Left } else { Self::Released }
    }
}

/// The answer to a fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fenced {
    /// This is still the stored grant.
    Acknowledged,
    /// The owner no longer holds the lock.
    NotHeld,
    /// A higher token is known.
    Higher(FencingToken),
}
