//! Renews leases, on a thread with a runtime and a connection of its own: a starved user runtime does not starve it.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::Input;
use lock_core::{AsyncBackend, Batch, Keeper, Lateness, Lease, Moment, Operation, Owner, Renewal};
use lock_host::{SharedClock, StationCell, Stations, Tray};
use tokio::sync::Notify;

use crate::cell::Cell;
use crate::driver::{self, Inbox, caught};

/// The way to the keeper.
pub(crate) struct KeeperHandle(Arc<Desk>);

struct Desk {
    tray: Tray,
    book: Mutex<Book>,
    changed: Notify,
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
        backend: Arc<dyn AsyncBackend>,
        stations: Weak<Stations<Cell>>,
        errands: Inbox,
    ) -> io::Result<Self> {
        let book = Mutex::new(Book { keeper, ended: false });
        let desk = Arc::new(Desk { tray: Tray::default(), book, changed: Notify::new() });
        let leaps = Arc::downgrade(&desk);
        clock.on_leap(Box::new(move || {
            if let Some(desk) = leaps.upgrade() {
                desk.wake();
            }
        }));
        let thread = Thread { desk: Arc::clone(&desk), clock, backend, stations };
        let both = async move {
            tokio::join!(driver::drive(Arc::clone(&thread.backend), errands, None), thread.run());
        };
        let (tell, told) = mpsc::channel();
        std::thread::Builder::new().name("leasehold-keeper".into()).spawn(move || {
            // Made here: where a thread cannot be started, a runtime must not be dropped inside of another one.
            match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    _ = tell.send(Ok(()));
                    runtime.block_on(both);
                }
                Err(error) => _ = tell.send(Err(error)),
            }
        })?;
        told.recv().unwrap_or_else(|_| Err(io::Error::other("the keeper's thread ended at once")))?;
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
        self.changed.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Thread {
    desk: Arc<Desk>,
    clock: SharedClock,
    backend: Arc<dyn AsyncBackend>,
    stations: Weak<Stations<Cell>>,
}

impl Thread {
    async fn run(self) {
        let mut under_way: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        while let Some(nap) = self.send_due(&mut under_way) {
            tokio::select! {
                () = self.desk.changed.notified() => {}
                () = tokio::time::sleep(nap) => {}
                Some(()) = under_way.next(), if !under_way.is_empty() => {}
            }
        }
    }

    /// Sends what is due, and tells how long to sleep; `None` when all is over.
    fn send_due<'a>(&'a self, under_way: &mut FuturesUnordered<BoxFuture<'a, ()>>) -> Option<Duration> {
        let mut book = self.desk.lock();
        if book.ended {
            return None;
        }
        self.desk.tray.look(&mut book.keeper);
        let now = self.clock.now();
        while let Some(batch) = book.keeper.take_due(now) {
            under_way.push(Box::pin(self.renew(batch)));
        }
        Some(self.desk.tray.nap(&book.keeper, now))
    }

    async fn renew(&self, batch: Batch) {
        let result = caught(Operation::Renew, self.backend.renew(&batch.leases, batch.within)).await;
        let renewals = self.desk.lock().keeper.answered(self.clock.now(), batch, result);
        let Some(stations) = self.stations.upgrade() else { return };
        for Renewal { name, owner, asked_at, answer } in renewals {
            if let Some(cell) = stations.find(&name) {
                cell.handle(Input::Renewal { owner, asked_at, answer });
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
