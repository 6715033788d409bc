//! Polling for waiters of a store that does not push: whether their turn has come, and when to poll again.
//!
//! The [`Poller`] has the waiters of one client: the store calls [`Poller::follow`] with each answer to a claim, and [`Poller::forget`] with each
//! release. A task or a thread sleeps for [`Poller::pause`], calls [`Poller::begin`], shows [`survey`] the rows of each lock that has a
//! waiter, and delivers the events that [`Poller::finish`] returns, or the one of [`Poller::fail`].
//!
//! The first waiter of a queue is polled for every few milliseconds, and the others less often, so that many waiters cost no more than a few.
//! Events are hints: a waiter without an event asks again before its place expires.

mod pace;
mod survey;

use std::time::Duration;

use lock_core::{Answer, Claim, LockName, Moment, Owner, StoreEvent, Terms};

use self::pace::{TICK_MAX, pause};
pub use self::survey::survey;

/// A waiter with a place in the queue.
#[derive(Clone, Debug)]
pub struct Waiter {
    /// The lock.
    pub name: LockName,
    /// The waiter's owner.
    pub owner: Owner,
    /// Its terms.
    pub terms: Terms,
    /// Its last known position, 1 for the next waiter.
    pub position: u32,
    /// When its place ends unless it asks again.
    pub place_until: Moment,
}

/// Whether a waiter took a place since the last poll: its turn may have come before it was known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NewWaiters {
    /// No.
    #[default]
    None,
    /// Yes.
    Some,
}

/// The result of a poll.
#[derive(Clone, Debug, Default)]
pub struct Polled {
    /// Events for waiters.
    pub events: Vec<StoreEvent>,
    /// Their positions; 0 without a place.
    pub positions: Vec<(Owner, u32)>,
    /// When a turn may come although nobody writes.
    pub due: Option<Moment>,
}

/// The waiters of one client, and how often to poll for them.
#[derive(Debug)]
pub struct Poller {
    /// The shortest time between two polls for the first waiter.
    tick: Duration,
    waiters: Vec<Waiter>,
    new: NewWaiters,
    /// When the waiters' prospects last changed.
    changed: Moment,
    /// When a turn may come although nobody writes, as the last poll has found.
    due: Option<Moment>,
    /// How long the last poll took.
    cost: Duration,
}

impl Poller {
    /// Without waiters. `tick` is the shortest time between two polls for the first waiter of a queue: a few milliseconds if a poll is cheap.
    pub fn new(tick: Duration) -> Self {
        Self {
            tick,
            waiters: Vec::new(),
            new: NewWaiters::None,
            changed: Moment::ORIGIN,
            due: None,
            cost: Duration::ZERO,
        }
    }

    /// Polls for the claim's owner if it has a place now, and no longer if it has none.
    pub fn follow(&mut self, now: Moment, claim: &Claim, answer: &Answer) {
        let before = self.waiters.len();
        self.forget(claim.owner);
        let Answer::Queued { position, valid_for, .. } = *answer else { return };
        if self.waiters.len() == before {
            self.changed = now;
        }
        let Claim { name, owner, terms, .. } = claim.clone();
        self.waiters.push(Waiter { name, owner, terms, position, place_until: now + valid_for });
        self.new = NewWaiters::Some;
    }

    /// Polls for this owner no longer.
    pub fn forget(&mut self, owner: Owner) {
        self.waiters.retain(|waiter| waiter.owner != owner);
    }

    /// The waiters. The places of some may have expired since the last [`pause`](Self::pause).
    pub fn waiters(&self) -> &[Waiter] {
        &self.waiters
    }

    /// When the waiters' prospects last changed.
    pub fn changed(&self) -> Moment {
        self.changed
    }

    /// How long to sleep until the next poll; `None` if nobody waits.
    pub fn pause(&mut self, now: Moment) -> Option<Duration> {
        self.waiters.retain(|waiter| now < waiter.place_until);
        let foremost = self.waiters.iter().map(|waiter| waiter.position).min()?;
        if self.new == NewWaiters::Some {
            return Some(Duration::ZERO);
        }
        let tick = self.tick.max(self.cost);
        let until_due = self.due.map_or(TICK_MAX, |due| due.since(now).max(tick));
        Some(pause(tick, foremost, now.since(self.changed)).min(until_due))
    }

    /// How long the last poll took. A tick is at least as long, so that waiters rarely poll at the same time, even at a busy store.
    pub fn took(&mut self, cost: Duration) {
        self.cost = cost;
    }

    /// Begins a poll. Returns whether there are new waiters since the last one.
    pub fn begin(&mut self) -> NewWaiters {
        std::mem::take(&mut self.new)
    }

    /// Ends a poll of all locks with waiters, with one result for them all. Returns the events for the waiters that are still there: others
    /// may have left, or been answered, meanwhile.
    pub fn finish(&mut self, now: Moment, found: Polled) -> Vec<StoreEvent> {
        self.due = found.due;
        for (owner, position) in found.positions {
            let moved = self.waiters.iter_mut().find(|waiter| waiter.owner == owner && waiter.position != position);
            if let Some(waiter) = moved {
                (waiter.position, self.changed) = (position, now);
            }
        }
        let mut events = found.events;
        if !events.is_empty() {
            self.changed = now;
            self.waiters.retain(|waiter| now < waiter.place_until);
            events.retain(|event| self.concerns(event));
        }
        events
    }

    /// A poll has failed. Each waiter then asks, and gets the error from the store itself.
    pub fn fail(&mut self, now: Moment) -> StoreEvent {
        (self.changed, self.due) = (now, None);
        StoreEvent::RecheckAll
    }

    /// Whether a waiter needs this event. A waiter that is granted the lock stops waiting.
    fn concerns(&mut self, event: &StoreEvent) -> bool {
        match event {
            StoreEvent::Granted { lease, .. } => {
                let before = self.waiters.len();
                self.forget(lease.owner);
                self.waiters.len() < before
            }
            StoreEvent::Freed { name } => self.waiters.iter().any(|waiter| waiter.name == *name),
            StoreEvent::RecheckAll | _ => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Mode, Ttl};

    use super::*;

    #[test]
    fn a_store_whose_answers_take_long_is_asked_less_often() {
        let (now, tick) = (Moment::ORIGIN, Duration::from_millis(2));
        let terms = Terms { mode: Mode::Exclusive, ttl: Ttl::DEFAULT };
        let (name, owner) = ("a".parse().unwrap(), Owner::from_random([1; 16]));
        let waiter = Waiter { name, owner, terms, position: 4, place_until: now + Duration::from_secs(10) };
        let mut poller = Poller { waiters: vec![waiter], ..Poller::new(tick) };
        assert_eq!(poller.pause(now), Some(tick * 4));
        poller.took(tick / 2);
        assert_eq!(poller.pause(now), Some(tick * 4));
        poller.took(tick * 5);
        assert_eq!(poller.pause(now), Some(tick * 20));
    }
}
