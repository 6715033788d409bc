//! What a task sleeps on until a latch may have changed.

use lock_core::Moment;
use lock_host::{LatchCall, Wake};
use tokio::sync::Notify;

use crate::driver::Driver;

/// What a task sleeps on.
#[derive(Default)]
pub(crate) struct Bell(Notify);

impl Wake for Bell {
    fn wake(&self) {
        self.0.notify_one();
    }
}

/// A call about a latch.
pub(crate) type Call<'a> = LatchCall<'a, Driver, Bell>;

/// Sleeps until this moment, or until the latch may have changed.
pub(crate) async fn sleep(call: &Call<'_>, until: Moment) {
    let _alarm = call.alarm(until);
    call.bell().0.notified().await;
}
