//! What says which server has a lock now, where a client has several servers or another one may take the place of the first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lock_core::{EventSink, Listeners};

use crate::address::Address;
use crate::failure::Failure;
use crate::hash_slot::HashSlot;
use crate::span::Span;

/// The sentinels of a primary, or the map of a cluster. A client and its keeper share it.
pub(crate) trait Directory: Send + Sync + 'static {
    /// The server that has the locks of a hash slot, if it is known.
    fn primary_of(self: Arc<Self>, hash_slot: HashSlot) -> Option<Arc<Address>>;

    /// All servers that have locks, in a fixed order.
    fn primaries(&self) -> Vec<Arc<Address>>;

    /// Whether a server belongs to these, as far as is known.
    fn knows(&self, address: &Arc<Address>) -> bool;

    /// Whether another server has taken the place of this one. Then its answers are worth no more than a broken connection.
    fn has_replaced(&self, _address: &Arc<Address>) -> bool {
        false
    }

    /// Checks whether a server is still the one to connect to.
    fn confirm(&self, _address: &Arc<Address>, _span: Span) -> Result<(), Failure> {
        Ok(())
    }

    /// How often hash slots have left a server, as far as is known. They may come back with less data.
    fn departures(&self, _address: &Address) -> u64 {
        0
    }

    /// A server said that another one has the locks of a hash slot from now on.
    fn moved(self: Arc<Self>, _hash_slot: HashSlot, _to: Address) {}

    /// Asks where the servers are, unless that was just done.
    fn refresh(&self, span: Span) -> Result<(), Failure>;

    /// Has that asked without waiting for it, if a request failed as it may where another server should have been asked.
    fn doubt(self: Arc<Self>, failure: &Failure);

    /// Those that hear the events of all servers.
    fn listeners(&self) -> &Listeners;

    /// Begins to watch for servers that are replaced, for as long as there are clients.
    fn watch(self: Arc<Self>) {}

    /// Tells this client at once when a server was replaced.
    fn follow(&self, _client: EventSink) {}
}

/// Has a thread do this for a directory, unless one does so already. If none can be started, that remains for the next time.
pub(crate) fn in_background<D: Directory>(directory: &Arc<D>, name: &str, busy: fn(&D) -> &AtomicBool, task: fn(&D)) {
    if busy(directory).swap(true, Ordering::AcqRel) {
        return;
    }
    let asking = Arc::clone(directory);
    let thread = thread::Builder::new().name(name.to_owned()).spawn(move || {
        task(&asking);
        busy(&asking).store(false, Ordering::Release);
    });
    if thread.is_err() {
        busy(directory).store(false, Ordering::Release);
    }
}
