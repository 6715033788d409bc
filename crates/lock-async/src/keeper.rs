//! Renews leases, on a thread with a runtime and a connection of its own: a starved user runtime does not starve it.

use std::io;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::{AsyncBackend, Batch, Operation};
use lock_host::{Keeping, Net, Next, Stations};
use tokio::sync::Notify;

use crate::driver::Driver;
use crate::work::{WorkQueue, caught, drive};

/// Starts the thread, which also does the work that the client's runtime has left. It ends with the client; if it ends
/// earlier, every hold of the client is lost.
pub(crate) fn start(
    stations: &Arc<Stations<Driver>>,
    backend: Arc<dyn AsyncBackend>,
    changed: Arc<Notify>,
    left_over: WorkQueue,
) -> io::Result<()> {
    let keeping = Keeping::new(stations);
    let keeper = Keeper { _net: keeping.net(), keeping, backend, changed };
    let both = async move {
        tokio::join!(drive(Arc::clone(&keeper.backend), left_over, None), keeper.run());
    };
    let (tell, told) = mpsc::channel();
    std::thread::Builder::new().name("leasehold-keeper".into()).spawn(move || {
        // Created on the thread: if the thread cannot be started, a runtime must not be dropped inside another one.
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => {
                _ = tell.send(Ok(()));
                runtime.block_on(both);
            }
            Err(error) => _ = tell.send(Err(error)),
        }
    })?;
    told.recv().unwrap_or_else(|_| Err(io::Error::other("the keeper's thread ended at once")))
}

struct Keeper {
    _net: Net<Driver>,
    keeping: Keeping<Driver>,
    backend: Arc<dyn AsyncBackend>,
    changed: Arc<Notify>,
}

impl Keeper {
    async fn run(self) {
        let mut under_way: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
        while let Some(nap) = self.send_due(&mut under_way) {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(nap) => {}
                Some(()) = under_way.next(), if !under_way.is_empty() => {}
            }
        }
    }

    /// Sends what is due, and returns how long to sleep; `None` when the keeper has to end.
    fn send_due<'a>(&'a self, under_way: &mut FuturesUnordered<BoxFuture<'a, ()>>) -> Option<Duration> {
        let queue = self.keeping.queue();
        let mut book = queue.lock();
        loop {
            match queue.next(&mut book) {
                Next::Send(batch) => under_way.push(Box::pin(self.renew(batch))),
                Next::Sleep(nap) => return Some(nap),
                Next::End => return None,
            }
        }
    }

    async fn renew(&self, batch: Batch) {
        let result = caught(Operation::Renew, self.backend.renew(&batch.leases, batch.within)).await;
        self.keeping.answered(batch, result);
    }
}
