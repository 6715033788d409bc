//! The keys of one lock in the model, each with its expiry.

use std::collections::{BTreeMap, VecDeque};

use lock_core::{FencingToken, Holder, Moment, Note, Owner, TokenRange, Ttl, Width};

/// Where a client is told of its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Inbox(pub u64);

/// What a claim says about a place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seat {
    /// It wants none.
    Unwanted,
    /// It wants one, and is not told of its turn: `-` on the wire.
    Silent,
    /// It wants one, and is told here.
    Told(Inbox),
}

/// Milliseconds on the server's clock.
pub(crate) type Millis = u64;

pub(crate) fn millis(moment: Moment) -> Millis {
    moment.as_nanos() / 1_000_000
}

pub(crate) fn micros(moment: Moment) -> u64 {
    moment.as_nanos() / 1000
}

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

/// An entry of the hash beside the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) owner: Owner,
    /// The server's time at which its place ends.
    pub(crate) over: Millis,
    pub(crate) ttl: Ttl,
    pub(crate) width: Width,
    pub(crate) floor: Option<FencingToken>,
    /// Nobody, where it is not told.
    pub(crate) inbox: Option<Inbox>,
    pub(crate) note: Note,
}

/// Whoever gets a place whose number this divides drops those that are over.
const SWEPT_AT: usize = 16;

/// All keys of one lock. List and hash of the queue have the same members and the same expiry, so they are one here.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keys {
    pub(crate) lock: Option<Kept<Stored>>,
    pub(crate) queue: Option<Kept<VecDeque<Waiter>>>,
    pub(crate) tombstones: BTreeMap<Owner, Millis>,
}

impl Keys {
    pub(crate) fn forget_what_is_over(&mut self, now: Millis) {
        self.lock.take_if(|lock| lock.is_over(now));
        self.queue.take_if(|queue| queue.is_over(now));
        self.tombstones.retain(|_, ends| now <= *ends);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock.is_none() && self.queue.is_none() && self.tombstones.is_empty()
    }

    pub(crate) fn pop(&mut self) -> Option<Waiter> {
        let queue = self.queue.as_mut()?;
        let waiter = queue.value.pop_front();
        self.queue.take_if(|queue| queue.value.is_empty());
        waiter
    }

    /// Drops an owner's place; tells whether it had one.
    pub(crate) fn leave(&mut self, owner: Owner) -> bool {
        let Some(queue) = self.queue.as_mut() else { return false };
        let before = queue.value.len();
        queue.value.retain(|waiter| waiter.owner != owner);
        let left = queue.value.len() < before;
        self.queue.take_if(|queue| queue.value.is_empty());
        left
    }

    /// Appends a place, or refreshes it where it is. Answers its position, from 1.
    pub(crate) fn seat(&mut self, now: Millis, place: Millis, waiter: Waiter) -> usize {
        let queue = self.queue.get_or_insert_with(|| Kept { value: VecDeque::new(), ends: 0 });
        queue.ends = queue.ends.max(now + place);
        let owner = waiter.owner;
        let place = |queue: &VecDeque<Waiter>| queue.iter().position(|other| other.owner == owner);
        match place(&queue.value) {
            Some(index) => queue.value[index] = waiter,
            None => queue.value.push_back(waiter),
        }
        let position = place(&queue.value).map_or(0, |index| index + 1);
        if position % SWEPT_AT != 0 {
            return position;
        }
        queue.value.retain(|waiter| now < waiter.over);
        place(&queue.value).map_or(0, |index| index + 1)
    }

    /// The owner that holds, and those that wait.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        let holder = self.lock.iter().filter_map(|lock| lock.value.owner());
        holder.chain(self.queue.iter().flat_map(|queue| queue.value.iter().map(|waiter| waiter.owner)))
    }
}
