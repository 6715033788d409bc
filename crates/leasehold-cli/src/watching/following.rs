//! Following the locks of a store from look to look.

use std::time::Duration;

use leasehold::kit::Slot;
use lock_core::inspect::{Entry, Held, watch};
use lock_core::{Holder, LockName, Moment};
use lock_host::{Clock, HostClock};

use super::events::{Change, Way};
use crate::exit::Failure;
use crate::looks::{Look, Looks};

/// The shortest pause before a lease is about to end. Chosen: so that it is seen whether it was renewed.
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// How many times as long as a look the pause after it is at least, unless `--every` is shorter. Chosen: so that the store is busy with
/// looks for a tenth of the time.
const PAUSE_PER_LOOK: u32 = 9;

/// What was seen at the last look, and what will be compared with it.
pub(crate) struct Following {
    looks: Looks,
    last: Look,
    /// How long the last look took; `None` if the store did not answer.
    took: Option<Duration>,
}

impl Following {
    /// Looks for the first time. A store that does not answer is an error.
    pub(crate) fn begin(mut looks: Looks) -> Result<Self, Failure> {
        let last = looks.first()?;
        Ok(Self { looks, last, took: Some(Duration::ZERO) })
    }

    /// What there was at the last look, as if it had happened then.
    pub(crate) fn already(&self) -> Vec<Change> {
        let seen = watch::changes(&[], &self.last.entries, Duration::ZERO);
        seen.into_iter().map(|seen| Change { already: true, ..Change::of(seen, |_, _, way| way) }).collect()
    }

    /// When the last look was that the store answered.
    pub(crate) fn at(&self) -> Moment {
        self.last.at
    }

    /// What was seen then.
    pub(crate) fn locks(&self) -> &[Entry] {
        &self.last.entries
    }

    /// What is shown in place of the remaining time of a lease that has none.
    pub(crate) fn endless(&self) -> &'static str {
        self.looks.endless()
    }

    /// Why the store did not answer now; `None` if it did.
    pub(crate) fn away(&self) -> Option<&str> {
        self.looks.away()
    }

    /// Looks again, and returns what has happened since; nothing while the store is away.
    pub(crate) fn again(&mut self) -> Result<Vec<Change>, Failure> {
        self.took = None;
        let began = HostClock.now();
        let Some(next) = self.looks.again()? else { return Ok(Vec::new()) };
        self.took = Some(HostClock.now().since(began));
        // The remaining time may have been read when the request was sent, and the end when the answer came.
        let between = next.at.since(self.last.asked);
        let mut answers = true;
        let mut way = |name: &LockName, held: &Held, seen| self.way(name, held, seen, &mut answers);
        let seen = watch::changes(&self.last.entries, &next.entries, between);
        let changes = seen.into_iter().map(|seen| Change::of(seen, &mut way)).collect();
        self.last = next;
        Ok(changes)
    }

    /// How long to pause before the next look.
    pub(crate) fn pause(&self, every: Duration) -> Duration {
        self.took.map_or(every, |took| until_next(every, self.next_end(), took))
    }

    /// How long until a lease ends that nobody renews.
    fn next_end(&self) -> Option<Duration> {
        self.last.entries.iter().flat_map(|entry| &entry.holders).filter_map(|held| held.remaining).min()
    }

    /// How a lease ended that is not there any more. A store that stops answering is asked no more: there may be thousands of such
    /// leases, and each question takes as long as the store is given.
    fn way(&self, name: &LockName, held: &Held, seen: Way, answers: &mut bool) -> Way {
        let token = match held.holder {
            Holder::Leasehold { tokens, .. } => Some(tokens.high()),
            Holder::Foreign => None,
        };
        let broken = token.filter(|_| *answers).map_or(Ok(None), |token| self.looks.broken_by(name, token));
        *answers &= broken.is_ok();
        match broken {
            Ok(Some(by)) => Way::Broken(by),
            _ if self.looks.was_away() || !*answers => Way::Ended,
            _ if self.was_mark(name) => Way::Released,
            _ => seen,
        }
    }

    /// Whether the lock was kept for a set time, so that its end is no loss.
    fn was_mark(&self, name: &LockName) -> bool {
        let entries = &self.last.entries;
        entries.binary_search_by(|entry| entry.name.cmp(name)).is_ok_and(|at| Slot::marked_by(&entries[at]).is_some())
    }
}

/// How long to pause after a look that took this long. A lease that is about to end shortens the pause, but not so far that many
/// looks keep the store busy.
fn until_next(every: Duration, next_end: Option<Duration>, took: Duration) -> Duration {
    let least = took.saturating_mul(PAUSE_PER_LOOK).max(PAUSE_MIN);
    next_end.map_or(every, |end| (end / 2).max(least).min(every))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_about_to_end_shortens_the_pause_but_looks_that_take_long_do_not_follow_each_other() {
        let pause = |end: Option<u64>, took| {
            until_next(Duration::from_secs(10), end.map(Duration::from_millis), Duration::from_millis(took)).as_millis()
        };
        assert_eq!(pause(None, 0), 10_000);
        assert_eq!((pause(Some(2000), 1), pause(Some(0), 1), pause(Some(60_000), 1)), (1000, 50, 10_000));
        assert_eq!((pause(Some(0), 600), pause(Some(0), 60_000)), (5400, 10_000));
    }
}
