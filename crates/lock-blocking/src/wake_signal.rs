//! Wakes the thread that waits for a latch.

use lock_core::Moment;
use lock_host::{LatchCall, NAP_MAX, Wake};

use crate::driver::Driver;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Wakes a thread.
#[derive(Default)]
pub(crate) struct WakeSignal {
    rung: Mutex<bool>,
    changed: Condvar,
}

impl WakeSignal {
    fn rung(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for WakeSignal {
    fn wake(&self) {
        *self.rung() = true;
        self.changed.notify_one();
    }
}

/// A call about a latch.
pub(crate) type Call<'a> = LatchCall<'a, Driver, WakeSignal>;

/// Sleeps until this moment, or until the latch may have changed.
pub(crate) fn sleep(call: &Call<'_>, until: Moment) {
    let _alarm = call.alarm(until);
    let signal = call.wake_signal();
    let mut rung = signal.rung();
    while !*rung && call.now() < until {
        // Woken by the alarm, or by our own check if that is late.
        let nap = until.since(call.now()).min(NAP_MAX);
        rung = signal.changed.wait_timeout(rung, nap).unwrap_or_else(PoisonError::into_inner).0;
    }
    *rung = false;
}
