//! Time in the world, and the clocks that show it differently.

use std::ops::Add;
use std::time::Duration;

use lock_core::Moment;

use crate::dice::Dice;

/// A time of the world. No clock in the world shows exactly this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time(u64);

impl Time {
    pub(crate) const START: Self = Self(0);

    pub(crate) fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this one; zero if it is not earlier.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// A machine's clock: it starts at any value, and runs a little too fast or too slowly.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: i128,
    /// Millionths too fast.
    rate: i64,
}

const MILLION: i128 = 1_000_000;

impl Clock {
    /// A clock that shows `origin` when the world begins.
    pub(crate) fn new(origin: Moment, rate: i64) -> Self {
        Self { origin: i128::from(origin.as_nanos()), rate }
    }

    /// A process's clock: it starts at any value, and its rate is a little off.
    pub(crate) fn any(dice: &mut Dice) -> Self {
        Self::new(Moment::ORIGIN + dice.millis(1_000_000, 9_000_000), dice.rate())
    }

    pub(crate) fn read(self, at: Time) -> Moment {
        let time = i128::from(at.0);
        let shown = self.origin + time + time * i128::from(self.rate) / MILLION;
        Moment::from_nanos(u64::try_from(shown).unwrap_or(0))
    }

    /// The first time at which it shows this.
    pub(crate) fn when(self, shown: Moment) -> Time {
        let gone = (i128::from(shown.as_nanos()) - self.origin).max(0);
        let near = gone * MILLION / (MILLION + i128::from(self.rate));
        let mut time = Time(u64::try_from(near).unwrap_or(u64::MAX).saturating_sub(2));
        while self.read(time) < shown && time.0 < u64::MAX {
            time.0 += 1;
        }
        time
    }

    pub(crate) fn set_forward(&mut self, by: Duration) {
        self.origin += i128::try_from(by.as_nanos()).unwrap_or(0);
    }

    /// From `at` on it runs too fast by this many millionths.
    pub(crate) fn run_at(&mut self, at: Time, rate: i64) {
        let shown = i128::from(self.read(at).as_nanos());
        let time = i128::from(at.0);
        self.rate = rate;
        self.origin = shown - time - time * i128::from(rate) / MILLION;
    }

    pub(crate) fn set_back(&mut self, by: Duration) {
        self.origin -= i128::try_from(by.as_nanos()).unwrap_or(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_a_moment_first_at_its_time() {
        for rate in [-4000, 0, 1, 4000] {
            let clock = Clock::new(Moment::from_nanos(7_000_000_000), rate);
            for nanos in [0, 1, 999, 1_000_000_007, 123_456_789_012] {
                let shown = Moment::from_nanos(7_000_000_000 + nanos);
                let time = clock.when(shown);
                assert!(clock.read(time) >= shown);
                assert!(time.0 == 0 || clock.read(Time(time.0 - 1)) < shown, "{rate} {nanos}");
            }
        }
    }
}
