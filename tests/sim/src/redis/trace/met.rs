//! What a trace has met.

use lock_core::inspect::Revoked;
use lock_core::{Answer, Fenced, Holder, Released, Renewed};

use crate::one::{Refused, Say, operator};

/// What a trace must have met to be meaningful.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Met {
    /// A fresh grant, or an old one.
    Granted,
    /// A place in the queue that is not the first.
    QueuedBehind,
    /// Somebody else holds.
    Busy,
    /// A claim behind a client of the plain layout.
    BehindForeign,
    /// A claim was refused for a tombstone.
    GivenUp,
    /// A claim for a free lock was refused during a dwell.
    Dwells,
    /// A waiter was notified of a hand-over.
    Told,
    /// A lease was renewed.
    Renewed,
    /// A lease was not there to be renewed.
    NotRenewed,
    /// A lease that an operator ended is not renewed, and its holder learns that.
    RenewalRevoked,
    /// A place was given up.
    Left,
    /// A lease was ended by its token.
    Revoked,
    /// A lease was still the stored one.
    Acknowledged,
    /// A higher token is known.
    Higher,
}

impl Met {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Granted,
        Self::QueuedBehind,
        Self::Busy,
        Self::BehindForeign,
        Self::GivenUp,
        Self::Dwells,
        Self::Told,
        Self::Renewed,
        Self::NotRenewed,
        Self::RenewalRevoked,
        Self::Left,
        Self::Revoked,
        Self::Acknowledged,
        Self::Higher,
    ];
}

pub(super) fn met_in(say: &Say) -> Option<Met> {
    match say {
        Say::Acquire(Ok(Answer::Granted { .. })) => Some(Met::Granted),
        Say::Acquire(Ok(
            Answer::Queued { holder: Holder::Foreign, .. } | Answer::Busy { holder: Holder::Foreign, .. },
        )) => Some(Met::BehindForeign),
        Say::Acquire(Ok(Answer::Queued { position: 2.., .. })) => Some(Met::QueuedBehind),
        Say::Acquire(Ok(Answer::Busy { .. })) => Some(Met::Busy),
        Say::Acquire(Err(Refused::GivenUp)) => Some(Met::GivenUp),
        Say::Acquire(Err(Refused::Dwells)) => Some(Met::Dwells),
        Say::Renew(answers) if answers.contains(&Renewed::NotHeld) => Some(Met::NotRenewed),
        Say::Renew(answers) if answers.contains(&Renewed::Revoked { by: operator() }) => Some(Met::RenewalRevoked),
        Say::Renew(_) => Some(Met::Renewed),
        Say::Release(Ok(Released::Left)) => Some(Met::Left),
        Say::Revoke(Revoked::Revoked) => Some(Met::Revoked),
        Say::Fence(Fenced::Acknowledged) => Some(Met::Acknowledged),
        Say::Fence(Fenced::Higher(_)) => Some(Met::Higher),
        Say::Acquire(_)
        | Say::Release(_)
        | Say::Revoke(_)
        | Say::Fence(Fenced::NotHeld)
        | Say::Hello
        | Say::Foreign(_)
        | Say::Latch(_)
        | Say::Primary(..)
        | Say::NotPrimary
        | Say::SessionOver
        | Say::SessionMoved
        | Say::TooFew
        | Say::Silence
        | Say::Granted(..)
        | Say::KeptAlive(_)
        | Say::Txn(..)
        | Say::NoLease => None,
    }
}
