//! The database, which counts its calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};

/// How long a call takes, once the faults that it provokes have happened.
const WORK: Duration = Duration::from_millis(20);
/// How long a call waits for others at most. Only a machine that is too busy takes as long; then less is seen.
const AT_MOST: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(1);

/// A database with one value, or without it.
#[derive(Debug)]
pub(crate) struct Database {
    value: Option<u64>,
    calls: AtomicU64,
    running: AtomicU64,
    most: AtomicU64,
}

impl Database {
    pub(crate) fn with(value: Option<u64>) -> Self {
        Self { value, calls: AtomicU64::new(0), running: AtomicU64::new(0), most: AtomicU64::new(0) }
    }

    /// Asks for the value. The call is not over before the others have done what shows the fault.
    pub(crate) fn call(&self, have_done: impl Fn() -> bool) -> Option<u64> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(running, Ordering::Relaxed);
        let until = HostClock.now() + AT_MOST;
        while !have_done() && HostClock.now() < until {
            thread::sleep(POLL);
        }
        thread::sleep(WORK);
        self.running.fetch_sub(1, Ordering::Relaxed);
        self.value
    }

    /// The number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// How many of them ran at the same time.
    pub(crate) fn at_once(&self) -> u64 {
        self.most.load(Ordering::Relaxed)
    }
}
