//! The waiters at one lock.

use std::collections::BTreeSet;
use std::time::Duration;

use lock_core::Moment;
use lock_core::station::{ByTurn, TurnId};

use crate::options::LongWaits;
use crate::traced::Acquisition;

/// A waiter that has waited for this long is reported, and again each time that this has doubled. Chosen: waits that
/// are part of normal operation are shorter.
pub(super) const LONG: Duration = Duration::from_secs(10);

/// The waiters, and when each has waited for long.
#[derive(Default)]
pub(super) struct Waits {
    by_turn: ByTurn<Wait>,
    long_at: BTreeSet<(Moment, TurnId)>,
    /// Their first known position in the store's queue.
    pub(super) position: Option<u32>,
    /// Since when others are known to have what they wait for.
    taken_since: Option<Moment>,
}

struct Wait {
    since: Moment,
    /// When that is reported next, counted from `since`.
    long: Duration,
    call: Option<Acquisition>,
}

/// A wait that has ended.
#[derive(Default)]
pub(super) struct Ended {
    pub(super) waited: Duration,
    /// For how much of this time others are known to have had the lock.
    pub(super) contended: Option<Duration>,
    pub(super) call: Option<Acquisition>,
}

impl Waits {
    pub(super) fn begin(&mut self, turn: TurnId, now: Moment, call: Option<Acquisition>, long_waits: LongWaits) {
        self.by_turn.insert(turn, Wait { since: now, long: LONG, call });
        match long_waits {
            LongWaits::Reported => _ = self.long_at.insert((now + LONG, turn)),
            LongWaits::Expected => {}
        }
    }

    /// Others have what they wait for. The store's answer may come when the waiters are gone.
    pub(super) fn taken(&mut self, now: Moment) {
        if !self.by_turn.is_empty() {
            self.taken_since.get_or_insert(now);
        }
    }

    /// The same, and the store has queued them.
    pub(super) fn queued(&mut self, now: Moment, position: u32) {
        self.taken(now);
        if !self.by_turn.is_empty() {
            self.position.get_or_insert(position);
        }
    }

    /// The wait that ends. What is known of all waiters goes with the last one.
    pub(super) fn end(&mut self, turn: TurnId, now: Moment) -> Option<Ended> {
        let Wait { since, long, call } = self.by_turn.remove(turn)?;
        self.long_at.remove(&(since + long, turn));
        let contended = self.taken_since.map(|taken| now.since(taken.max(since)));
        if self.by_turn.is_empty() {
            // An emptied set would keep its memory.
            (self.long_at, self.position, self.taken_since) = (BTreeSet::new(), None, None);
        }
        Some(Ended { waited: now.since(since), contended, call })
    }

    /// How long a waiter that has waited for long has waited, and its call, once for each report.
    pub(super) fn take_long(&mut self, now: Moment) -> Option<(Duration, Option<Acquisition>)> {
        let (_, turn) = self.long_at.first().copied().filter(|(at, _)| *at <= now)?;
        self.long_at.pop_first();
        let wait = self.by_turn.get_mut(turn)?;
        let waited = now.since(wait.since);
        while wait.long <= waited {
            wait.long = wait.long.saturating_mul(2);
        }
        self.long_at.insert((wait.since + wait.long, turn));
        Some((waited, wait.call.clone()))
    }

    /// When the next long wait is to be reported.
    pub(super) fn next_long(&self) -> Option<Moment> {
        self.long_at.first().map(|(at, _)| *at)
    }

    /// Whether nobody waits, and nothing is kept of those who did.
    #[cfg(test)]
    pub(super) fn are_over(&self) -> bool {
        let Self { by_turn, long_at, position, taken_since } = self;
        by_turn.is_empty() && long_at.is_empty() && position.is_none() && taken_since.is_none()
    }
}
