//! Runs actions against the backend, off the users' futures, in the order in which they came.
//!
//! Two loops of the same kind: one on the runtime that the client was made on, and one beside the keeper, on the
//! keeper's runtime and connection. The second one runs what the first one cannot any more because its runtime has
//! ended: so a guard that is dropped at the end of `main` is released all the same. (Not one that a task still holds
//! when the runtime drops that task after the driver: its release is sent, but the process may end before.)

use std::fmt;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc as threads};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::{Action, Input, Reply, Request};
use lock_core::{AsyncBackend, BackendError, Effect, ErrorKind, Operation, ReleaseRequest};
use lock_host::StationCell;
use tokio::sync::{mpsc, oneshot};

use crate::cell::Cell;
use crate::eras::{Era, Eras};

/// How long a runtime that ends is held up for releases. Chosen: the longest time that one request takes by default.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);

/// How many errands are taken in at once. Chosen: a few dozen share one look into the inbox and cost no memory.
const AT_ONCE: usize = 64;

/// The way to both loops.
pub(crate) struct Driver {
    here: mpsc::UnboundedSender<Errand>,
    beside_keeper: mpsc::UnboundedSender<Errand>,
}

/// Where the loop beside the keeper finds its errands.
pub(crate) type Inbox = mpsc::UnboundedReceiver<Errand>;

/// Something to do. It does not get lost: when the runtime ends before it is done, the other loop has it.
pub(crate) enum Errand {
    Run(Job),
    /// A release that no station is told of.
    Release(ReleaseRequest, Duration),
    /// Answered by being dropped, when everything before it is done.
    Flush(Flushed),
}

/// Who waits for a flush.
pub(crate) enum Flushed {
    Task(#[expect(dead_code, reason = "dropping it is the answer")] oneshot::Sender<()>),
    Thread(#[expect(dead_code, reason = "dropping it is the answer")] threads::Sender<()>),
}

pub(crate) struct Job {
    cell: Arc<Cell>,
    action: Option<Action>,
    progress: Progress,
    /// Where it is run.
    place: Place,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Waiting,
    Sent,
}

#[derive(PartialEq, Eq)]
enum Place {
    /// On the client's runtime.
    Here,
    /// On the keeper's; there is no other one after it.
    BesideKeeper,
}

impl Driver {
    /// Spawns the loop on the present runtime, and gives what the one beside the keeper needs. Both end once the client
    /// and everything it set going are gone.
    pub(crate) fn spawn(backend: Arc<dyn AsyncBackend>) -> (Self, Inbox) {
        let (here, inbox) = mpsc::unbounded_channel();
        let (beside_keeper, other_inbox) = mpsc::unbounded_channel();
        tokio::spawn(drive(backend, inbox, Some(LastWords(Some(beside_keeper.clone())))));
        (Self { here, beside_keeper }, other_inbox)
    }

    /// Has an action run.
    pub(crate) fn run(&self, cell: Arc<Cell>, action: Action) {
        // What cannot be sent is dropped, and so goes to the other loop.
        _ = self.here.send(Errand::Run(Job::new(cell, action, Place::Here)));
    }

    /// Has a lease or a place released, once.
    pub(crate) fn release(&self, request: ReleaseRequest, within: Duration) {
        _ = self.here.send(Errand::Release(request, within));
    }

    /// Waits until everything that was handed over so far is done, but not for what follows from it.
    pub(crate) async fn flush(&self) {
        for errands in [&self.here, &self.beside_keeper] {
            let (done, flushed) = oneshot::channel();
            _ = errands.send(Errand::Flush(Flushed::Task(done)));
            _ = flushed.await;
        }
    }
}

/// Runs errands until nobody can send any more and all are done.
pub(crate) async fn drive(backend: Arc<dyn AsyncBackend>, inbox: Inbox, last_words: Option<LastWords>) {
    // Dropped in the reverse order when the runtime ends: no more errands come in, those under way go to the other
    // loop, and that is waited for.
    let last_words = last_words;
    // The futures are polled for the first time in the order in which they were pushed, and so are sent in that order.
    let mut under_way = FuturesUnordered::new();
    let mut eras = Eras::default();
    let mut errands = Vec::with_capacity(AT_ONCE);
    let mut inbox = inbox;
    poll_fn(|cx| {
        let mut open = true;
        while open && let Poll::Ready(count) = inbox.poll_recv_many(cx, &mut errands, AT_ONCE) {
            open = count > 0;
            for errand in errands.drain(..) {
                match errand {
                    Errand::Run(job) => under_way.push(Either::Left(job.run(&*backend, eras.begin()))),
                    Errand::Release(request, within) => {
                        under_way.push(Either::Right(release(&*backend, request, within, eras.begin())));
                    }
                    Errand::Flush(flushed) => eras.flush(flushed),
                }
            }
        }
        while let Poll::Ready(Some(era)) = under_way.poll_next_unpin(cx) {
            eras.end(era);
        }
        if open || !under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    // The client is gone and the runtime is not, so nothing was left to the other loop.
    last_words.into_iter().for_each(LastWords::spare);
}

async fn release(backend: &dyn AsyncBackend, request: ReleaseRequest, within: Duration, era: Era) -> Era {
    _ = caught(Operation::Release, backend.release(&request, within)).await;
    era
}

/// What a backend answers; one that panics has given an unknown answer.
pub(crate) async fn caught<T>(
    operation: Operation,
    asked: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    AssertUnwindSafe(asked).catch_unwind().await.unwrap_or_else(|_| {
        Err(BackendError::new("client", operation, ErrorKind::Protocol, Effect::Unknown, "the backend panicked"))
    })
}

/// Waits, when it is dropped, until the loop beside the keeper has done what it was left, but not for long.
pub(crate) struct LastWords(Option<mpsc::UnboundedSender<Errand>>);

impl LastWords {
    /// Waits for nothing.
    fn spare(mut self) {
        self.0 = None;
    }
}

impl Drop for LastWords {
    fn drop(&mut self) {
        let Some(beside_keeper) = self.0.take() else { return };
        let (done, flushed) = threads::channel();
        if beside_keeper.send(Errand::Flush(Flushed::Thread(done))).is_ok() {
            _ = flushed.recv_timeout(LAST_WORDS_MAX);
        }
    }
}

impl Job {
    fn new(cell: Arc<Cell>, action: Action, place: Place) -> Self {
        Self { cell, action: Some(action), progress: Progress::Waiting, place }
    }

    async fn run(mut self, backend: &dyn AsyncBackend, era: Era) -> Era {
        self.progress = Progress::Sent;
        let Some(Action { id, request, within }) = &self.action else { return era };
        let reply = match request {
            Request::Acquire(claim) => {
                Reply::Acquire(caught(Operation::Acquire, backend.acquire(claim, *within)).await)
            }
            Request::Release(request) => {
                Reply::Release(caught(Operation::Release, backend.release(request, *within)).await)
            }
        };
        let id = *id;
        self.action = None;
        self.cell.handle(Input::Reply(id, reply));
        era
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(action) = self.action.take() else { return };
        match (&action.request, &self.progress, &self.place) {
            // A claim is never sent twice: its outcome is not known now, and the station has it released.
            (Request::Acquire(_), Progress::Sent, _) => {
                let message = "the runtime ended before the answer came";
                let error =
                    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message);
                self.cell.handle(Input::Reply(action.id, Reply::Acquire(Err(error))));
            }
            (Request::Acquire(_), Progress::Waiting, Place::Here) | (Request::Release(_), _, Place::Here) => {
                let job = Self::new(Arc::clone(&self.cell), action, Place::BesideKeeper);
                _ = self.cell.driver().beside_keeper.send(Errand::Run(job));
            }
            (Request::Acquire(_), Progress::Waiting, Place::BesideKeeper)
            | (Request::Release(_), _, Place::BesideKeeper) => {}
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Driver")
    }
}

#[cfg(test)]
mod tests {
    use lock_memory::nonblocking::Memory;

    use super::*;

    fn last_words() -> (LastWords, Inbox) {
        let (sender, inbox) = mpsc::unbounded_channel();
        (LastWords(Some(sender)), inbox)
    }

    /// A runtime that goes on is not held up by the end of a client: nobody would answer here.
    #[tokio::test]
    async fn the_end_of_a_client_waits_for_nobody() {
        let ((words, mut beside_keeper), (errands, inbox)) = (last_words(), mpsc::unbounded_channel());
        drop(errands);
        drive(Arc::new(Memory::new()), inbox, Some(words)).await;
        assert!(beside_keeper.recv().await.is_none(), "the loop beside the keeper was asked for a flush");
    }

    #[tokio::test]
    async fn the_end_of_a_runtime_waits_for_the_other_loop() {
        let ((words, mut beside_keeper), (_errands, inbox)) = (last_words(), mpsc::unbounded_channel());
        let driving = tokio::spawn(drive(Arc::new(Memory::new()), inbox, Some(words)));
        tokio::task::yield_now().await;
        driving.abort();
        // Its drop waits for this answer, on the thread of the runtime.
        let answering = std::thread::spawn(move || matches!(beside_keeper.blocking_recv(), Some(Errand::Flush(_))));
        assert!(driving.await.is_err() && answering.join().unwrap());
    }
}
