//! The keys of one lock in the model, each with its expiry.

use std::collections::BTreeMap;

use lock_core::{FencingToken, Holder, Note, Owner, TokenRange};

use super::queue::{Queue, Waiter};
use crate::one::Millis;

/// A key with an expiry. Redis keeps a key for all of its last millisecond.
#[derive(Clone, Debug)]
pub(crate) struct Kept<T> {
    pub(crate) value: T,
    pub(crate) ends: Millis,
}

impl<T> Kept<T> {
    pub(crate) fn is_over(&self, now: Millis) -> bool {
        now > self.ends
    }
}

/// What the key of a lock holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Ours {
        owner: Owner,
        tokens: TokenRange,
        note: Note,
    },
    /// Something that another library wrote.
    Foreign(u64),
}

impl Stored {
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Ours { owner, .. } => Some(*owner),
            Self::Foreign(_) => None,
        }
    }

    pub(crate) fn tokens(&self) -> Option<TokenRange> {
        match self {
            Self::Ours { tokens, .. } => Some(*tokens),
            Self::Foreign(_) => None,
        }
    }

    pub(crate) fn shown(&self) -> Holder {
        match self {
            Self::Ours { tokens, note, .. } => Holder::Leasehold { tokens: *tokens, note: note.clone() },
            Self::Foreign(_) => Holder::Foreign,
        }
    }
}

/// All keys of one lock. What the queue consists of has one expiry, so it is one here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) lock: Option<Kept<Stored>>,
    pub(crate) queue: Option<Kept<Queue>>,
    pub(crate) tombstones: BTreeMap<Owner, Millis>,
    /// Until when it is remembered who revoked the lease with this highest token.
    pub(crate) revocations: BTreeMap<FencingToken, Millis>,
}

impl Keys {
    pub(crate) fn forget_what_is_over(&mut self, now: Millis) {
        self.lock.take_if(|lock| lock.is_over(now));
        self.queue.take_if(|queue| queue.is_over(now));
        self.tombstones.retain(|_, ends| now <= *ends);
        self.revocations.retain(|_, ends| now <= *ends);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock.is_none() && self.queue.is_none() && self.tombstones.is_empty() && self.revocations.is_empty()
    }

    /// Removes the first owner that counts, or is this one, from the queue; those before it are dropped.
    pub(crate) fn take_first(&mut self, me: Option<Owner>, counts: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        let waiter = self.queue.as_mut()?.value.take_first(me, counts);
        self.queue.take_if(|queue| queue.value.is_empty());
        waiter
    }

    /// Drops an owner's place; returns whether it had one.
    pub(crate) fn leave(&mut self, owner: Owner) -> bool {
        let left = self.queue.as_mut().is_some_and(|queue| queue.value.leave(owner));
        self.queue.take_if(|queue| queue.value.is_empty());
        left
    }

    /// Appends a place, or refreshes it where it is. Returns its position, from 1.
    pub(crate) fn seat(&mut self, now: Millis, place: Millis, waiter: Waiter) -> usize {
        let mut queue = self.queue.take().unwrap_or(Kept { value: Queue::default(), ends: 0 });
        queue.value.drop_what_is_over(now, waiter.owner);
        let ends = if queue.value.is_empty() { 0 } else { queue.ends };
        let position = queue.value.seat(now, waiter);
        self.queue = Some(Kept { value: queue.value, ends: ends.max(now + place) });
        position
    }

    /// The owner that holds, and those that wait.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let holder = self.lock.iter().filter_map(|lock| lock.value.owner());
        holder.chain(self.queue.iter().flat_map(|queue| queue.value.owners()))
    }
}
