//! Fairness between processes: SQLite gives its write lock to the first that finds it free, and those that wait for it
//! look only every now and then.

use std::thread;
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};

use crate::session::BUSY_RETRY;

/// For how long a client writes without a pause while others want to write, too. Chosen: a few commits.
const TURN: Duration = Duration::from_millis(10);

/// How long it then leaves the file to the others, which look for it twice meanwhile.
const PAUSE: Duration = BUSY_RETRY.saturating_mul(2);

/// For how long others are taken to be there once this client had to wait for them.
const MEMORY: Duration = Duration::from_secs(1);

/// When a client that writes has to leave room for others.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    /// When it last waited or paused.
    since: Option<Moment>,
    /// Until when others are taken to be there.
    contended_until: Option<Moment>,
}

impl Turn {
    /// Pauses if it is somebody else's turn. Returns when that was over.
    pub(crate) fn leave_room(&mut self) -> Moment {
        let now = HostClock.now();
        if !self.is_over(now) {
            return now;
        }
        thread::sleep(PAUSE);
        let now = HostClock.now();
        self.since = Some(now);
        now
    }

    fn is_over(&self, now: Moment) -> bool {
        self.contended_until.is_some_and(|until| now < until) && self.since.is_none_or(|since| now >= since + TURN)
    }

    /// A transaction began that was asked for at that moment. If that took long, others have written meanwhile.
    pub(crate) fn begun(&mut self, asked: Moment, now: Moment) {
        if now >= asked + BUSY_RETRY {
            (self.since, self.contended_until) = (Some(now), Some(now + MEMORY));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_never_waits_never_pauses() {
        let mut turn = Turn::default();
        let begin = HostClock.now();
        turn.begun(begin, begin + BUSY_RETRY / 2);
        assert!([0, 1, 10, 1000].map(|turns| turn.is_over(begin + TURN * turns)).iter().all(|is_over| !is_over));
    }

    #[test]
    fn beside_others_it_pauses_after_each_turn_until_they_are_gone() {
        let mut turn = Turn::default();
        let begin = HostClock.now();
        turn.begun(begin - BUSY_RETRY, begin);
        assert!(!turn.is_over(begin + TURN / 2) && turn.is_over(begin + TURN));
        turn.since = Some(begin - TURN);
        let again = turn.leave_room();
        assert!(again >= begin + PAUSE && !turn.is_over(again) && turn.is_over(again + TURN));
        assert!(!turn.is_over(begin + MEMORY));
    }
}
