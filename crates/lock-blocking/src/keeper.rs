//! Renews leases, on a thread with a connection of its own: a busy user does not starve it.

use std::fmt;
use std::io;
use std::time::Duration;

use lock_core::station::Input;
use lock_core::{Batch, BlockingBackend, Keeper, Lateness, Lease, Moment, Owner, Tidings};
use lock_host::{SharedClock, StationCell, Stations, Tray};

use crate::cell::Cell;
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
    ended: bool,
}

impl KeeperHandle {
    /// Starts the thread. It ends with this handle; if it ends before, every hold of the client is lost.
    pub(crate) fn start(
        keeper: Keeper,
        clock: SharedClock,
        backend: Arc<dyn BlockingBackend>,
        stations: Weak<Stations<Cell>>,
    ) -> io::Result<Self> {
        let book = Mutex::new(Book { keeper, ended: false });
        let desk = Arc::new(Desk { tray: Tray::default(), book, changed: Condvar::new() });
        let leaps = Arc::downgrade(&desk);
        clock.on_leap(Box::new(move || {
            if let Some(desk) = leaps.upgrade() {
                desk.wake();
            }
        }));
        let thread = Thread { desk: Arc::clone(&desk), clock, backend, stations };
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

struct Thread {
    desk: Arc<Desk>,
    clock: SharedClock,
    backend: Arc<dyn BlockingBackend>,
    stations: Weak<Stations<Cell>>,
}

impl Thread {
    fn run(self) {
        let mut book = self.desk.lock();
        while !book.ended {
            self.desk.tray.look(&mut book.keeper);
            let now = self.clock.now();
            if let Some(batch) = book.keeper.take_due(now) {
                drop(book);
                self.renew(batch);
                book = self.desk.lock();
            } else {
                let nap = self.desk.tray.nap(&book.keeper, now);
                book = self.desk.changed.wait_timeout(book, nap).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    fn renew(&self, batch: Batch) {
        let result = self.backend.renew(&batch.leases, batch.within);
        let tidings = self.desk.lock().keeper.answered(self.clock.now(), batch, result);
        let Some(stations) = self.stations.upgrade() else { return };
        for Tidings { name, owner, asked_at, standing } in tidings {
            if let Some(cell) = stations.find(&name) {
                cell.handle(Input::Standing { owner, asked_at, standing });
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // Nobody renews any more, whatever the reason: who holds has to know.
        if let Some(stations) = self.stations.upgrade() {
            stations.close();
        }
    }
}

impl fmt::Debug for KeeperHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let leases = self.0.tray.len() + self.0.lock().keeper.len();
        f.debug_struct("KeeperHandle").field("leases", &leases).finish()
    }
}
