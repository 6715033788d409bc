//! Fairness between processes. SQLite gives its write lock to the first process that finds it free, and a waiting process
//! looks only every few milliseconds. So a busy process has to leave room for others.

use std::thread;
use std::time::Duration;

use lock_core::Moment;
use lock_host::{Clock, HostClock};

use crate::session::BUSY_RETRY;

/// How long a client writes without a pause while others want to write. Chosen: a few commits.
const TURN: Duration = Duration::from_millis(10);

/// How long the pause is: long enough for a waiting process to look twice.
const PAUSE: Duration = BUSY_RETRY.saturating_mul(2);

/// How long a client that had to wait for others assumes that they still want to write.
const MEMORY: Duration = Duration::from_secs(1);

/// Whose turn it is to write, as far as this client can tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// When this client last waited or paused.
    since: Option<Moment>,
    /// Until when others are assumed to want to write.
    contended_until: Option<Moment>,
}

impl Turn {
    /// Pauses if this client's turn is over.
    pub(crate) fn leave_room(&mut self) {
        if self.is_over(HostClock.now()) {
            thread::sleep(PAUSE);
            self.since = Some(HostClock.now());
        }
    }

    fn is_over(&self, now: Moment) -> bool {
        self.contended_until.is_some_and(|until| now < until) && self.since.is_none_or(|since| now >= since + TURN)
    }

    /// Others had to be waited for, whether or not a transaction began then.
    pub(crate) fn waited(&mut self, now: Moment) {
        (self.since, self.contended_until) = (Some(now), Some(now + MEMORY));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_never_waits_never_pauses() {
        let turn = Turn::default();
        let begin = HostClock.now();
        assert!([0, 1, 10, 1000].map(|turns| turn.is_over(begin + TURN * turns)).iter().all(|is_over| !is_over));
    }

    #[test]
    fn beside_others_it_pauses_after_each_turn_until_they_are_gone() {
        let mut turn = Turn::default();
        let begin = HostClock.now();
        turn.waited(begin);
        assert!(!turn.is_over(begin + TURN / 2) && turn.is_over(begin + TURN));
        turn.since = Some(begin - TURN);
        turn.leave_room();
        let again = turn.since.unwrap();
        assert!(again >= begin + PAUSE && !turn.is_over(again) && turn.is_over(again + TURN));
        assert!(!turn.is_over(begin + MEMORY));
    }
}
