//! Wakes the task that waits for a latch.

use lock_core::Moment;
use lock_host::{LatchCall, Wake};
use tokio::sync::Notify;

use crate::driver::Driver;

/// Wakes a task.
#[derive(Default)]
pub(crate) struct WakeSignal(Notify);

impl Wake for WakeSignal {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// A call about a latch.
pub(crate) type Call<'a> = LatchCall<'a, Driver, WakeSignal>;

/// Sleeps until this moment, or until the latch may have changed.
pub(crate) async fn sleep(call: &Call<'_>, until: Moment) {
    let _alarm = call.alarm(until);
    call.wake_signal().0.notified().await;
}
