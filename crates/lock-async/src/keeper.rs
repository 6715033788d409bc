//! Renews leases, on a thread with a runtime and a connection of its own: a starved user runtime does not starve it.
//!
//! The first renewal of a lease that was handed over goes over the client's connection, which is open.

use std::io;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::{AsyncBackend, BackendError, Batch, Effect, ErrorKind, Lease, Operation, Renewed, Via};
use lock_host::{CloseOnDrop, KeeperStep, KeeperView, Stations};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::driver::Driver;
use crate::work::{WorkQueue, caught, drive};

/// Starts the thread, which also does the work that the client's runtime has left. It ends with the client; if it ends
/// earlier, every hold of the client is lost.
pub(crate) fn start(
    stations: &Arc<Stations<Driver>>,
    in_use: Arc<dyn AsyncBackend>,
    changed: Arc<Notify>,
    left_over: WorkQueue,
) -> io::Result<()> {
    let (view, runtime) = (KeeperView::new(stations), stations.context().driver.runtime.clone());
    let (backend, own) = (Arc::downgrade(&in_use), in_use.for_keeper());
    let keeper =
        Keeper { _close_on_drop: view.close_on_drop(), view, in_use: InUse { backend, runtime }, own, changed };
    let both = async move {
        tokio::join!(drive(Arc::clone(&keeper.own), left_over, None), keeper.run());
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::Builder::new().name("leasehold-keeper".into()).spawn(move || {
        // Created on the thread: if the thread cannot be started, a runtime must not be dropped inside another one.
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                _ = sender.send(Ok(()));
                runtime.block_on(both);
            }
            Err(error) => _ = sender.send(Err(error)),
        }
    })?;
    receiver.recv().unwrap_or_else(|_| Err(io::Error::other("the keeper's thread ended at once")))
}

struct Keeper {
    _close_on_drop: CloseOnDrop<Driver>,
    view: KeeperView<Driver>,
    in_use: InUse,
    /// The same store over a connection of the keeper's.
    own: Arc<dyn AsyncBackend>,
    changed: Arc<Notify>,
}

/// The client's backend, whose connections belong to the client's runtime. It ends with the client.
struct InUse {
    backend: Weak<dyn AsyncBackend>,
    runtime: Handle,
}

impl Keeper {
    async fn run(self) {
        let mut in_flight: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        while let Some(nap) = self.send_due(&mut in_flight) {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(nap) => {}
                Some(()) = in_flight.next(), if !in_flight.is_empty() => {}
            }
        }
    }

    /// Sends what is due, and returns how long to sleep; `None` when the keeper has to end.
    fn send_due<'a>(&'a self, in_flight: &mut FuturesUnordered<BoxFuture<'a, ()>>) -> Option<Duration> {
        let queue = self.view.queue();
        let mut state = queue.lock();
        loop {
            match queue.next(&mut state) {
                KeeperStep::Send(batch) => in_flight.push(Box::pin(self.renew(batch))),
                KeeperStep::Lasts(lease) => self.in_use.lasts(lease),
                KeeperStep::Sleep(nap) => return Some(nap),
                KeeperStep::End => return None,
            }
        }
    }

    async fn renew(&self, batch: Batch) {
        let result = match batch.via {
            Via::InUse => self.in_use.renew(batch.clone()).await,
            Via::Own => caught(Operation::Renew, self.own.renew(&batch.leases, batch.within)).await,
        };
        self.view.answered(batch, result);
    }
}

impl InUse {
    /// Subscribes the client to revocations of the lease. Does nothing if it or its runtime has ended.
    fn lasts(&self, lease: Arc<Lease>) {
        if let Some(backend) = self.backend.upgrade() {
            self.runtime.spawn(async move { backend.holds(&lease) });
        }
    }

    /// Renews on the client's runtime. Whatever keeps that busy, there is an outcome in time.
    async fn renew(&self, Batch { leases, within, .. }: Batch) -> Result<Vec<Renewed>, BackendError> {
        let backend = self.backend.upgrade().ok_or_else(not_run)?;
        let mut renewing =
            self.runtime.spawn(async move { caught(Operation::Renew, backend.renew(&leases, within)).await });
        // The store's own error comes first, unless nothing is polled there.
        let outcome = timeout(within + within / 8, &mut renewing).await;
        renewing.abort();
        outcome.ok().and_then(Result::ok).unwrap_or_else(|| Err(not_run()))
    }
}

/// The client's runtime has ended, or is too busy.
fn not_run() -> BackendError {
    let message = "the client's runtime did not run the renewal in time";
    BackendError::new("client", Operation::Renew, ErrorKind::Timeout, Effect::Unknown, message)
}
