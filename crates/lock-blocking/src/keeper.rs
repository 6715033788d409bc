//! Renews leases, on a thread with a connection of its own: a busy user does not starve it.

use std::fmt;
use std::io;
use std::time::Duration;

use lock_core::station::Input;
use lock_core::{Batch, BlockingBackend, Keeper, Lateness, Lease, Moment, Operation, Owner, Renewal};
use lock_host::{NAP_MAX, SharedClock, StationCell, Stations, Tray};

use crate::cell::Cell;
use crate::driver::caught;
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak, thread};

/// The way to the keeper.
pub(crate) struct KeeperHandle(Arc<Desk>);

struct Desk {
    tray: Tray,
    book: Mutex<Book>,
    changed: Condvar,
}

struct Book {
    keeper: Keeper,
    /// How many batches are under way.
    under_way: usize,
    ended: bool,
}

/// How many batches are under way at most. Chosen: as many can hang, less one, before the others are held up.
const UNDER_WAY_MAX: usize = 4;

impl KeeperHandle {
    /// Starts the thread. It ends with this handle; if it ends before, every hold of the client is lost.
    pub(crate) fn start(
        keeper: Keeper,
        clock: SharedClock,
        backend: Arc<dyn BlockingBackend>,
        stations: Weak<Stations<Cell>>,
    ) -> io::Result<Self> {
        let book = Mutex::new(Book { keeper, under_way: 0, ended: false });
        let desk = Arc::new(Desk { tray: Tray::default(), book, changed: Condvar::new() });
        let leaps = Arc::downgrade(&desk);
        clock.on_leap(Box::new(move || {
            if let Some(desk) = leaps.upgrade() {
                desk.wake();
            }
        }));
        let thread = Thread(Arc::new(Renewing { desk: Arc::clone(&desk), clock, backend, stations }));
        thread::Builder::new().name("leasehold-keeper".into()).spawn(move || thread.run())?;
        Ok(Self(desk))
    }

    pub(crate) fn keep(&self, lease: Lease, asked_at: Moment, valid_for: Duration) {
        if self.0.tray.keep(lease, asked_at, valid_for) {
            self.0.wake();
        }
    }

    pub(crate) fn forget(&self, owner: Owner) {
        self.0.tray.forget(owner);
    }

    pub(crate) fn lateness(&self) -> Lateness {
        self.0.lock().keeper.lateness()
    }
}

impl Drop for KeeperHandle {
    fn drop(&mut self) {
        self.0.lock().ended = true;
        self.0.wake();
    }
}

impl Desk {
    fn wake(&self) {
        // Whoever looks has gone to sleep, or has not begun to look, once it lets this go.
        drop(self.lock());
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keeper's thread: hands batches out when they are due.
struct Thread(Arc<Renewing>);

/// What it takes to renew.
struct Renewing {
    desk: Arc<Desk>,
    clock: SharedClock,
    backend: Arc<dyn BlockingBackend>,
    stations: Weak<Stations<Cell>>,
}

impl Thread {
    fn run(self) {
        let Renewing { desk, clock, .. } = &*self.0;
        let mut book = desk.lock();
        while !book.ended {
            desk.tray.look(&mut book.keeper);
            let (now, is_full) = (clock.now(), book.under_way == UNDER_WAY_MAX);
            if let Some(batch) = if is_full { None } else { book.keeper.take_due(now) } {
                book.under_way += 1;
                drop(book);
                self.send(batch);
                book = desk.lock();
            } else {
                // Where no more can be under way, the end of one of them wakes this thread.
                let nap = if is_full { NAP_MAX } else { desk.tray.nap(&book.keeper, now) };
                book = desk.changed.wait_timeout(book, nap).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// Renews on a thread of its own, so that a batch that is not answered holds up no other.
    fn send(&self, batch: Batch) {
        let batch = Arc::new(batch);
        let (renewing, other) = (Arc::clone(&self.0), Arc::clone(&batch));
        let thread = thread::Builder::new().name("leasehold-renewal".into());
        if thread.spawn(move || renewing.renew(&other)).is_err() {
            self.0.renew(&batch);
        }
    }
}

impl Renewing {
    fn renew(&self, batch: &Batch) {
        let _under_way = UnderWay(&self.desk);
        let result = caught(Operation::Renew, || self.backend.renew(&batch.leases, batch.within));
        let renewals = self.desk.lock().keeper.answered(self.clock.now(), batch.clone(), result);
        let Some(stations) = self.stations.upgrade() else { return };
        for Renewal { name, owner, asked_at, answer } in renewals {
            if let Some(cell) = stations.find(&name) {
                cell.handle(Input::Renewal { owner, asked_at, answer });
            }
        }
    }
}

/// A batch that is under way, however it ends.
struct UnderWay<'a>(&'a Desk);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.lock().under_way -= 1;
        self.0.wake();
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Nobody renews any more, whatever the reason: who holds has to know, and the store as well.
        if let Some(stations) = self.0.stations.upgrade() {
            stations.close().iter().for_each(|cell| cell.hand_over());
        }
    }
}

impl fmt::Debug for KeeperHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases = self.0.tray.len() + self.0.lock().keeper.len();
        f.debug_struct("KeeperHandle").field("leases", &leases).finish()
    }
}
