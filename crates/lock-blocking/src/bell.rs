//! What a thread sleeps on until a latch may have changed.

use lock_core::Moment;
use lock_host::{LatchCall, NAP_MAX, Wake};

use crate::driver::Driver;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a thread sleeps on.
#[derive(Default)]
pub(crate) struct Bell {
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

/// A call about a latch.
pub(crate) type Call<'a> = LatchCall<'a, Driver, Bell>;

/// Sleeps until this moment, or until the latch may have changed.
pub(crate) fn sleep(call: &Call<'_>, until: Moment) {
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
