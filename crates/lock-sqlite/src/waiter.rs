//! What is known of this client's waiters.

use lock_core::{LockName, Moment, Owner, Terms};

/// A waiter with a place in the queue.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) name: LockName,
    pub(crate) owner: Owner,
    pub(crate) terms: Terms,
    /// Its place as last heard of, 1 for the next in line.
    pub(crate) position: u32,
    pub(crate) place_until: Moment,
}

/// Whether somebody took a place since the last look: it may have been called before it was known here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum News {
    #[default]
    None,
    NewWaiter,
}
