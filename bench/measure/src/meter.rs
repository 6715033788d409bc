//! Clock and processor time.

use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

/// Nanoseconds on the monotonic clock, which all processes of a machine share.
pub fn now() -> u64 {
    let reading = clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |time| time.num_nanoseconds());
    u64::try_from(reading).unwrap_or(0)
}

/// Measures how long something took, and how much processor time this process spent on it.
#[derive(Debug)]
pub struct Meter {
    begun: u64,
    spent: Duration,
}

impl Meter {
    /// Begins now.
    pub fn start() -> Self {
        Self { begun: now(), spent: processor_time() }
    }

    /// When it began.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// How long it took until now, and the processor time of all threads meanwhile.
    pub fn read(&self) -> (Duration, Duration) {
        (Duration::from_nanos(now() - self.begun), processor_time().saturating_sub(self.spent))
    }
}

fn processor_time() -> Duration {
    let Ok(usage) = getrusage(UsageWho::RUSAGE_SELF) else { return Duration::ZERO };
    let microseconds = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Duration::from_micros(u64::try_from(microseconds).unwrap_or(0))
}
