//! The one source of random numbers for the whole world. It decides everything.

use std::time::Duration;

/// The dice. The same seed always throws the same numbers.
#[derive(Debug)]
pub(crate) struct Dice(fastrand::Rng);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Any number.
    pub(crate) fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// The secret from which a station draws its owners.
    pub(crate) fn secret(&mut self) -> [u8; 32] {
        [(); 32].map(|()| self.0.u8(..))
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn from(&mut self, low: usize, high: usize) -> usize {
        self.0.usize(low..=high)
    }

    /// True this many times in a thousand.
    pub(crate) fn chance(&mut self, per_mille: u32) -> bool {
        self.0.u32(0..1000) < per_mille
    }

    /// A time from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.0.u64(nanos(low)..=nanos(high.max(low))))
    }

    /// The same in milliseconds.
    pub(crate) fn millis(&mut self, low: u64, high: u64) -> Duration {
        self.between(Duration::from_millis(low), Duration::from_millis(high))
    }

    /// How fast a clock runs, in millionths too fast. Two clocks stay within the drift that the machine allows for.
    pub(crate) fn rate(&mut self) -> i64 {
        self.0.i64(-4000..=4000)
    }

    /// One of several.
    pub(crate) fn pick<T: Clone>(&mut self, among: &[T]) -> Option<T> {
        self.0.choice(among).cloned()
    }
}
