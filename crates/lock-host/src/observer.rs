//! Observers of a client's locks.

use std::fmt;
use std::sync::Arc;

use lock_core::station::Event;

/// Gets the events of a client's locks, for logs and metrics.
///
/// It is called by the threads that run the client: those of its users, the one that renews, and the one that watches
/// deadlines. So it must return quickly, and must not wait for a lock. None of the client's mutexes is held meanwhile,
/// so it may use the client in any other way.
///
/// Each thread reports what it has caused, in order. Calls on two threads may overlap; the tokens of a lock rise, so they
/// show which hold was earlier. A call may come shortly before or after the user's own call returns.
///
/// If it panics, that event counts as reported: the panic does not propagate, no lock is lost, and the next
/// event is reported as usual.
pub trait Observer: Send + Sync + 'static {
    /// Called for each event.
    fn observe(&self, event: &Event);
}

/// An observer that clients share.
pub type SharedObserver = Arc<dyn Observer>;

impl fmt::Debug for dyn Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}
