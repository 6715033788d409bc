//! Renews leases, on a thread with a connection of its own: a busy user does not starve it.
//!
//! The first renewal of a lease that was handed over goes over the client's connection, which is open.

use std::io;

use lock_core::{Batch, BlockingBackend, Lease, Operation, Via};
use lock_host::{CloseOnDrop, KeeperStep, KeeperView, NAP_MAX, Stations};

use crate::driver::{Driver, caught};
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, PoisonError, Weak, thread};

/// How many batches are in flight at most. Chosen: all but one of them can hang without delaying the others.
const IN_FLIGHT_MAX: usize = 4;

/// Starts the thread. It ends with the client; if it ends earlier, every hold of the client is lost.
pub(crate) fn start(
    stations: &Arc<Stations<Driver>>,
    in_use: Arc<dyn BlockingBackend>,
    changed: Arc<Condvar>,
) -> io::Result<()> {
    let (view, in_flight) = (KeeperView::new(stations), AtomicUsize::new(0));
    let (close_on_drop, in_use, own) = (view.close_on_drop(), Arc::downgrade(&in_use), in_use.for_keeper());
    let keeper = Keeper {
        _close_on_drop: close_on_drop,
        changed,
        renewing: Arc::new(Renewing { view, in_use, own, in_flight }),
    };
    thread::Builder::new().name("leasehold-keeper".into()).spawn(move || keeper.run())?;
    Ok(())
}

/// The keeper's thread: hands batches out when they are due.
struct Keeper {
    _close_on_drop: CloseOnDrop<Driver>,
    changed: Arc<Condvar>,
    renewing: Arc<Renewing>,
}

/// The connections that renew, and the queue.
struct Renewing {
    view: KeeperView<Driver>,
    /// The client's backend. It ends with the client, and its drop waits for what it still has to send.
    in_use: Weak<dyn BlockingBackend>,
    /// The same store over a connection of the keeper's.
    own: Arc<dyn BlockingBackend>,
    /// How many batches are in flight.
    in_flight: AtomicUsize,
}

impl Keeper {
    fn run(self) {
        let queue = self.renewing.view.queue();
        let mut state = queue.lock();
        loop {
            // If no more can be in flight, the end of one of them wakes this thread.
            let is_full = self.renewing.in_flight.load(Ordering::SeqCst) == IN_FLIGHT_MAX;
            match if is_full { KeeperStep::Sleep(NAP_MAX) } else { queue.next(&mut state) } {
                KeeperStep::Send(batch) => {
                    drop(state);
                    self.send(batch);
                    state = queue.lock();
                }
                KeeperStep::Lasts(lease) => {
                    drop(state);
                    self.renewing.lasts(&lease);
                    state = queue.lock();
                }
                KeeperStep::Sleep(nap) => {
                    state = self.changed.wait_timeout(state, nap).unwrap_or_else(PoisonError::into_inner).0;
                }
                KeeperStep::End => return,
            }
        }
    }

    /// Renews on a thread of its own, so that an unanswered batch delays no other.
    fn send(&self, batch: Batch) {
        self.renewing.in_flight.fetch_add(1, Ordering::SeqCst);
        let batch = Arc::new(batch);
        let (renewing, other) = (Arc::clone(&self.renewing), Arc::clone(&batch));
        let thread = thread::Builder::new().name("leasehold-renewal".into());
        if thread.spawn(move || renewing.renew(&other)).is_err() {
            self.renewing.renew(&batch);
        }
    }
}

impl Renewing {
    /// Subscribes the client to revocations of the lease. Does nothing if it has ended.
    fn lasts(&self, lease: &Lease) {
        if let Some(in_use) = self.in_use.upgrade() {
            // Without it, the next renewal tells.
            _ = caught(Operation::Renew, || {
                in_use.holds(lease);
                Ok(())
            });
        }
    }

    fn renew(&self, batch: &Batch) {
        let _in_flight = InFlight(self);
        let in_use = match batch.via {
            Via::InUse => self.in_use.upgrade(),
            Via::Own => None,
        };
        let backend = in_use.as_ref().unwrap_or(&self.own);
        let result = caught(Operation::Renew, || backend.renew(&batch.leases, batch.within));
        self.view.answered(batch.clone(), result);
    }
}

/// A batch that is in flight, however it ends.
struct InFlight<'a>(&'a Renewing);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::SeqCst);
        self.0.view.queue().wake();
    }
}
