//! How many clusters run at once in a test program.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How many of them run at once. Chosen: servers that wait for the processor for a second take each other for dead.
const CLUSTERS_MAX: usize = 2;
/// How long those may take together that come first. Only bounds a hang.
const PATIENCE: Duration = Duration::from_secs(600);

static RUNNING: Mutex<usize> = Mutex::new(0);
static ENDED: Condvar = Condvar::new();

/// The right to run a cluster whose servers replace each other. Dropping this lets the next one start.
#[derive(Debug)]
pub(crate) struct Permit(());

impl Permit {
    /// Waits until enough other clusters have ended.
    pub(crate) fn wait() -> Self {
        let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |running: &mut usize| *running >= CLUSTERS_MAX;
        let waited = ENDED.wait_timeout_while(running, PATIENCE, full);
        let (mut running, outcome) = waited.unwrap_or_else(PoisonError::into_inner);
        assert!(!outcome.timed_out(), "waited {} s in vain for other clusters to end", PATIENCE.as_secs());
        *running += 1;
        Self(())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ENDED.notify_one();
    }
}
