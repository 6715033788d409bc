//! A watch for the loss of a hold.

use lock_host::WeakHeld;

use crate::driver::Driver;
use crate::guard::Guard;

impl<M> Guard<M> {
    /// A handle that waits for the loss of this hold, for instance in another task or thread. [`LossWatch::lost`] has an example. It does not
    /// keep the lock: releasing or dropping the guard ends the wait.
    pub fn watch(&self) -> LossWatch {
        LossWatch(self.0.downgrade())
    }
}

/// Waits for the loss of a hold, and does not keep the lock. Made by [`Guard::watch`].
///
/// It keeps neither the lock nor the client alive, so it can be kept for any time, and cloned into any task or thread.
#[derive(Clone, Debug)]
pub struct LossWatch(pub(crate) WeakHeld<Driver>);

impl LossWatch {
    /// Whether the hold has ended: it was lost, or its guard was dropped or is being released.
    pub fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}
