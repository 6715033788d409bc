//! Runs actions against the backend, off the users' futures, in the order in which they came.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{AsyncBackend, BackendError, Effect, ErrorKind, Operation};
use lock_host::StationCell;
use tokio::sync::{mpsc, oneshot};

use crate::cell::Cell;

/// The way to the driver: a task on the runtime that the client was made on.
pub(crate) struct Driver {
    errands: mpsc::UnboundedSender<Errand>,
}

enum Errand {
    Run(Arc<Cell>, Action),
    /// Answered when everything before it is done.
    Flush(oneshot::Sender<()>),
}

impl Driver {
    /// Spawns the driver. It ends once the client and everything it set going are gone.
    pub(crate) fn spawn(backend: Arc<dyn AsyncBackend>) -> Self {
        let (errands, inbox) = mpsc::unbounded_channel();
        tokio::spawn(drive(backend, inbox));
        Self { errands }
    }

    /// Has an action run. Where there is no runtime any more, gives its reply back at once.
    pub(crate) fn run(&self, cell: Arc<Cell>, action: Action) -> Result<(), Input> {
        self.errands.send(Errand::Run(cell, action)).map_err(|refused| match refused.0 {
            Errand::Run(_, action) => runtime_gone(&action),
            Errand::Flush(_) => Input::Tick,
        })
    }

    /// Waits until everything that was handed over so far is done.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        if self.errands.send(Errand::Flush(done)).is_ok() {
            // An error means that the driver is gone, and everything with it.
            _ = flushed.await;
        }
    }
}

async fn drive(backend: Arc<dyn AsyncBackend>, mut inbox: mpsc::UnboundedReceiver<Errand>) {
    // The futures are polled for the first time in the order in which they were pushed, and so are sent in that order.
    let mut under_way: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
    let mut flushes = Vec::new();
    loop {
        if under_way.is_empty() {
            flushes.clear();
        }
        tokio::select! {
            errand = inbox.recv() => match errand {
                Some(Errand::Run(cell, action)) => under_way.push(Box::pin(run(Arc::clone(&backend), cell, action))),
                Some(Errand::Flush(done)) => flushes.push(done),
                None => break,
            },
            Some(()) = under_way.next(), if !under_way.is_empty() => {}
        }
    }
    while under_way.next().await.is_some() {}
}

async fn run(backend: Arc<dyn AsyncBackend>, cell: Arc<Cell>, action: Action) {
    let Action { id, request, within } = action;
    let reply = match request {
        Request::Acquire(claim) => Reply::Acquire(backend.acquire(&claim, within).await),
        Request::Release(parting) => Reply::Release(backend.release(&parting, within).await),
    };
    cell.handle(Input::Reply(id, reply));
}

fn runtime_gone(action: &Action) -> Input {
    let error = |operation| {
        BackendError::new(
            "client",
            operation,
            ErrorKind::Unsupported,
            Effect::None,
            "the runtime it was made on has ended",
        )
        .with_remedy("make the client on a runtime that lives as long as it does")
    };
    let reply = match action.request {
        Request::Acquire(_) => Reply::Acquire(Err(error(Operation::Acquire))),
        Request::Release(_) => Reply::Release(Err(error(Operation::Release))),
    };
    Input::Reply(action.id, reply)
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}
