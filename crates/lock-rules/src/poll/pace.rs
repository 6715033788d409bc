//! How often a store is polled.

use std::time::Duration;

/// How many times less often a store is polled once nothing has changed for long. Chosen: a waiter that has waited for long does not mind.
const CALM: u32 = 8;

/// A poll may be late by one part in this many of the time without a change, so a waiter waits at most a sixteenth longer.
const CALM_PART: u32 = 16;

/// At least, so that many waiters that leave at once are noticed.
pub(super) const TICK_MAX: Duration = Duration::from_millis(250);

/// How long to sleep between two polls for a waiter at this position, after so long without a change. The next waiter is polled for once in a
/// tick.
///
/// Each hand-over before it takes a tick or so, so that it was polled again by the time it is the next waiter. A hundred
/// waiters are polled as often as five at the head would be.
pub(super) fn pause(tick: Duration, position: u32, calm: Duration) -> Duration {
    (tick * position.max(1)).max((calm / CALM_PART).min(tick * CALM)).min(TICK_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICK: Duration = Duration::from_millis(5);

    fn tick(position: u32, calm: Duration) -> Duration {
        pause(TICK, position, calm)
    }

    #[test]
    fn a_hundred_idle_waiters_look_as_often_as_a_few_at_the_head_would() {
        let looks_per_second = |position| 1000 / u64::try_from(tick(position, Duration::ZERO).as_millis()).unwrap();
        assert_eq!(looks_per_second(1), 200);
        assert!((1..=99).map(looks_per_second).sum::<u64>() < 6 * looks_per_second(1));
        assert_eq!(tick(0, Duration::ZERO), TICK);
        assert_eq!(tick(u32::MAX, Duration::ZERO), TICK_MAX);
    }

    #[test]
    fn the_longer_nothing_has_changed_the_less_often_the_next_waiter_looks() {
        let seconds = Duration::from_secs;
        assert_eq!([0, 80, 320].map(Duration::from_millis).map(|calm| tick(1, calm).as_millis()), [5, 5, 20]);
        assert_eq!([seconds(1), seconds(1000)].map(|calm| tick(1, calm)), [TICK * CALM; 2]);
        assert_eq!(tick(20, seconds(1)), tick(20, Duration::ZERO));
    }
}
