//! A local waiter, and the ends of its wait.

use std::time::Duration;

use super::io::{Join, LongWaits, TurnId};
use crate::{Fairness, Moment, OnUnavailable, Patience, Queueing};

/// A waiter in the queue.
#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) join: Join,
    pub(super) since: Moment,
    /// The number of the answer after which it is rejected.
    pub(super) last_answer: Option<u64>,
    /// How often it was reported that it has waited for long.
    pub(super) reports: u8,
}

/// A waiter that has waited for this long is reported, and again each time that this has doubled. Chosen: waits that are part of
/// normal operation are shorter.
const LONG: Duration = Duration::from_secs(10);

/// The end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitEnd {
    /// The first answer: it does not wait.
    Impatience,
    /// This moment.
    Deadline(Moment),
    /// The answer with this number, unless it is a grant.
    Answer(u64),
    /// An unreachable store.
    Outage,
}

impl Waiter {
    /// One that waits from now on.
    pub(super) fn new(now: Moment, join: Join) -> Self {
        Self { join, since: now, last_answer: None, reports: 0 }
    }

    pub(super) fn long_at(&self) -> Moment {
        self.since + LONG.saturating_mul(2_u32.saturating_pow(self.reports.into()))
    }

    /// When a long wait is to be reported.
    pub(super) fn long(&self) -> Option<(Moment, TurnId)> {
        (self.join.long_waits == LongWaits::Reported).then(|| (self.long_at(), self.join.turn))
    }

    /// Whether it could use a place in the store's queue.
    pub(super) fn queueing(&self) -> Queueing {
        if self.join.patience == Patience::Never { Queueing::Unwanted } else { Queueing::Wanted }
    }

    /// How long it has waited.
    pub(super) fn waited(&self, now: Moment) -> Duration {
        now.since(if let Patience::Until { since, .. } = self.join.patience { since } else { self.since })
    }

    pub(super) fn ends(&self) -> impl Iterator<Item = (WaitEnd, TurnId)> + use<> {
        let patience = match self.join.patience {
            Patience::Never => Some(WaitEnd::Impatience),
            Patience::Until { end, .. } => Some(WaitEnd::Deadline(end)),
            Patience::Forever => None,
        };
        let (turn, last_answer) = (self.join.turn, self.last_answer.map(WaitEnd::Answer));
        let outage = match self.join.on_unavailable {
            OnUnavailable::Fail => Some(WaitEnd::Outage),
            OnUnavailable::Wait => None,
        };
        patience.into_iter().chain(last_answer).chain(outage).map(move |end| (end, turn))
    }

    /// Its turn, if it may be served before earlier waiters.
    pub(super) fn barging(&self) -> Option<TurnId> {
        (self.join.fairness == Fairness::Barging).then_some(self.join.turn)
    }
}
