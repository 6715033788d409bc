//! The queue of one lock in the model: a list of owners, and beside it what each of them asked for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lock_core::{FencingToken, Note, Owner, Ttl, Width};

use crate::one::{Inbox, Millis};

/// The longest that a place lasts.
pub(crate) const PLACE_MAX: Millis = 10_000;
/// How many places are swept together, at which lengths, and how far apart the windows are.
const WINDOW: usize = 16;
const EVERY: usize = 4;
const STRIDE: usize = 7919;
/// How many more entries than waiters may be in the list.
const SLACK: usize = 8;

/// An entry of the hash beside the list.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) owner: Owner,
    /// The server's time at which its place ends.
    pub(crate) over: Millis,
    pub(crate) ttl: Ttl,
    pub(crate) width: Width,
    pub(crate) floor: Option<FencingToken>,
    /// `None` if it is not notified.
    pub(crate) inbox: Option<Inbox>,
    pub(crate) note: Note,
}

impl Waiter {
    pub(crate) fn is_over(&self, now: Millis) -> bool {
        self.over <= now || self.inbox.is_none() && self.over > now + PLACE_MAX
    }
}

/// The list and the hash. An owner that left or was swept stays in the list until it is at the head, or the list is shortened.
#[derive(Clone, Debug, Default)]
pub(crate) struct Queue {
    list: VecDeque<Owner>,
    /// What each asked for, and its number.
    entries: BTreeMap<Owner, (u64, Waiter)>,
    /// The number that was given last.
    last: u64,
}

impl Queue {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn owners(&self) -> impl Iterator<Item = Owner> {
        self.entries.keys().copied()
    }

    pub(super) fn waiters(&self) -> impl Iterator<Item = &Waiter> {
        self.entries.values().map(|(_, waiter)| waiter)
    }

    /// The first owner that counts, or is this one; those before it are dropped.
    fn first(&mut self, me: Option<Owner>, counts: impl Fn(&Waiter) -> bool) -> Option<Owner> {
        while let Some(owner) = self.list.front().copied() {
            let waiter = self.entries.get(&owner);
            if waiter.is_some_and(|(_, waiter)| Some(owner) == me || counts(waiter)) {
                return Some(owner);
            }
            self.list.pop_front();
            self.entries.remove(&owner);
        }
        None
    }

    pub(super) fn take_first(&mut self, me: Option<Owner>, counts: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        let owner = self.first(me, counts)?;
        self.list.pop_front();
        self.entries.remove(&owner).map(|(_, waiter)| waiter)
    }

    pub(super) fn leave(&mut self, owner: Owner) -> bool {
        self.entries.remove(&owner).is_some()
    }

    /// Drops expired places from the head, except this one.
    pub(super) fn drop_what_is_over(&mut self, now: Millis, me: Owner) {
        self.first(Some(me), |waiter| !waiter.is_over(now));
    }

    /// Appends a place, or refreshes it where it is. Returns its position, from 1.
    pub(super) fn seat(&mut self, now: Millis, waiter: Waiter) -> usize {
        let owner = waiter.owner;
        let head = self.list.front().copied().and_then(|head| Some((head, self.entries.get(&head)?.0)));
        let first = head.map_or(0, |(_, number)| number);
        let own = self.entries.get(&owner).map(|(number, _)| *number).filter(|number| *number >= first);
        let number = own.unwrap_or_else(|| self.next_number(now, first));
        self.entries.insert(owner, (number, waiter));
        if own.is_none() {
            self.list.push_back(owner);
        }
        let position = match head {
            Some((head, _)) if head != owner || own.is_none() => {
                usize::try_from(number - first + 1).unwrap_or(usize::MAX).min(self.list.len()).max(2)
            }
            Some(_) | None => 1,
        };
        if own.is_none() {
            self.sweep(now);
        }
        position
    }

    fn next_number(&mut self, now: Millis, first: u64) -> u64 {
        self.last += 1;
        if self.last <= first.max(1) {
            self.last = now.max(first + 1);
        }
        self.last
    }

    /// Drops expired places in one window. If most owners in the list have no entry, those in the window leave the list.
    fn sweep(&mut self, now: Millis) {
        let length = self.list.len();
        if !length.is_multiple_of(EVERY) {
            return;
        }
        let from = length / EVERY * STRIDE % length.div_ceil(WINDOW) * WINDOW;
        for owner in self.list.iter().skip(from).take(WINDOW) {
            if self.entries.get(owner).is_some_and(|(_, waiter)| waiter.is_over(now)) {
                self.entries.remove(owner);
            }
        }
        if length > 2 * self.entries.len() + SLACK {
            let (mut seen, mut places) = (BTreeSet::new(), 0..);
            let window = from..from + WINDOW;
            self.list.retain(|owner| {
                let is_outside = places.next().is_none_or(|place| !window.contains(&place));
                is_outside || self.entries.contains_key(owner) && seen.insert(*owner)
            });
        }
    }
}
