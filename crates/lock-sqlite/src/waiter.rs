//! What is known about this client's waiters.

use lock_core::{LockName, Moment, Owner, Terms};

/// A waiter with a place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) name: LockName,
    pub(crate) owner: Owner,
    pub(crate) terms: Terms,
    /// Its last known position, 1 for the next in line.
    pub(crate) position: u32,
    pub(crate) place_until: Moment,
}

/// Whether a waiter took a place since the last look: its turn may have come before it was known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum News {
    #[default]
    None,
    NewWaiter,
}
