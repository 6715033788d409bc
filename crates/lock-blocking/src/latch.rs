//! Waiting until a number of processes has arrived.

use lock_core::Moment;
use lock_host::{NAP_MAX, Wake};

use crate::driver::{Driver, ask};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

lock_host::latch! {
    [] []

    /// # Examples
    /// ```
    /// # mod leasehold { pub use lock_core::latch; }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let store = lock_memory::MemoryStore::default();
    /// # let locks = lock_blocking::Client::new(std::sync::Arc::new(store.blocking()))?;
    /// use std::time::Duration;
    /// use leasehold::latch::LatchError;
    ///
    /// let loaded = locks.latch("load:2026-11-22");
    /// loaded.expect(3)?; // the coordinator
    /// for shard in ["shard-1", "shard-2"] {
    ///     loaded.arrive_as(shard)?; // in other processes; a shard that is loaded again counts once
    /// }
    /// match loaded.wait_for(Duration::from_millis(10)) {
    ///     Err(error @ LatchError::TimedOut { .. }) => assert_eq!(error.missing(), Some(1)),
    ///     other => other?,
    /// }
    /// loaded.arrive_as("shard-3")?;
    /// loaded.wait()?;
    /// # Ok(())
    /// # }
    /// ```
    struct Latch;

    /// # Blocking
    /// Until the store has answered; for at most 10 s and an operation timeout.
    fn expect;

    /// # Blocking
    /// As [`expect`](Self::expect).
    fn arrive;

    /// # Blocking
    /// As [`expect`](Self::expect).
    fn arrive_as;

    /// # Blocking
    /// As [`expect`](Self::expect).
    fn remaining;

    /// # Blocking
    /// As [`expect`](Self::expect).
    fn state;

    /// # Blocking
    /// Until all have arrived, or the client is closed.
    fn wait;

    /// # Blocking
    /// For at most this time and two operation timeouts.
    fn wait_for;

    /// # Blocking
    /// Until the store has answered two requests, each as in [`expect`](Self::expect).
    fn reset;
}

/// What a thread sleeps on.
#[derive(Default)]
struct Bell {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    fn rung(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Bell {
    fn wake(&self) {
        *self.rung() = true;
        self.changed.notify_one();
    }
}

/// Sleeps until this moment, or until the latch may have changed.
fn sleep(call: &Call<'_>, until: Moment) {
    let _alarm = call.alarm(until);
    let bell = call.bell();
    let mut rung = bell.rung();
    while !*rung && call.now() < until {
        // Woken by the alarm, or by our own check if that is late.
        let nap = until.since(call.now()).min(NAP_MAX);
        rung = bell.changed.wait_timeout(rung, nap).unwrap_or_else(PoisonError::into_inner).0;
    }
    *rung = false;
}
