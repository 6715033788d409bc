//! Clocks: the host's, and one that tests move.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lock_core::Moment;

/// A clock that never runs backwards and counts the time a machine is suspended.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Moment;

    /// Calls `wake` whenever the clock leaps, so that wake_registry can check it again. A real clock never leaps.
    fn on_leap(&self, _wake: Box<dyn Fn() + Send + Sync>) {}
}

/// A clock that is shared by a client and its backend.
pub type SharedClock = Arc<dyn Clock>;

/// The clock of this host.
///
/// On Linux it counts suspend (`CLOCK_BOOTTIME`); elsewhere `CLOCK_MONOTONIC`, which does on macOS. A virtual machine that
/// its host pauses may have a clock that stands still meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostClock;

#[cfg(any(target_os = "linux", target_os = "android"))]
const COUNTS_SUSPEND: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const COUNTS_SUSPEND: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

impl Clock for HostClock {
    fn now(&self) -> Moment {
        let reading = rustix::time::clock_gettime(COUNTS_SUSPEND);
        let seconds = u64::try_from(reading.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(reading.tv_nsec).unwrap_or(0);
        Moment::ORIGIN + Duration::new(seconds, nanos)
    }
}

/// A clock that stands still until it is moved, for tests.
///
/// ```
/// # mod leasehold { pub use lock_host as clock; }
/// use leasehold::clock::{Clock, ManualClock};
/// use std::time::Duration;
///
/// let clock = ManualClock::new();
/// let before = clock.now();
/// clock.advance(Duration::from_secs(30));
/// assert_eq!(clock.now().since(before), Duration::from_secs(30));
/// ```
#[derive(Clone, Default)]
pub struct ManualClock(Arc<Manual>);

#[derive(Default)]
struct Manual {
    now: Mutex<Duration>,
    wake_registry: Mutex<Vec<Box<dyn Fn() + Send + Sync>>>,
}

impl ManualClock {
    /// A clock that shows an hour after its origin.
    pub fn new() -> Self {
        let clock = Self::default();
        *lock(&clock.0.now) = Duration::from_secs(3600);
        clock
    }

    /// Moves the clock forward and wakes everything that sleeps on it.
    pub fn advance(&self, by: Duration) {
        *lock(&self.0.now) += by;
        for wake in lock(&self.0.wake_registry).iter() {
            wake();
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment::ORIGIN + *lock(&self.0.now)
    }

    fn on_leap(&self, wake: Box<dyn Fn() + Send + Sync>) {
        lock(&self.0.wake_registry).push(wake);
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ManualClock").field(&self.now()).finish()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_host_clock_runs() {
        let before = HostClock.now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(HostClock.now().since(before) >= Duration::from_millis(2));
    }

    #[test]
    fn a_leap_wakes_sleepers() {
        let clock = ManualClock::new();
        let woken = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&woken);
        clock.on_leap(Box::new(move || flag.store(true, Ordering::SeqCst)));
        clock.advance(Duration::from_secs(1));
        assert!(woken.load(Ordering::SeqCst));
    }
}
