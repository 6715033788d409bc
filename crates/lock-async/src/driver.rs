//! Runs actions against the backend, off the users' futures, in the order in which they came.
//!
//! Two loops of the same kind: one on the runtime that the client was made on, and one beside the keeper, on the
//! keeper's runtime and connection. The second one runs what the first one cannot any more because its runtime has
//! ended: so a guard that is dropped at the end of `main` is released all the same. (Not one that a task still holds
//! when the runtime drops that task after the driver: its release is sent, but the process may end before.)

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc as threads};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{Either, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::{Action, Input, Reply, Request, TurnId};
use lock_core::{AsyncBackend, BackendError, Effect, ErrorKind, Operation, ReleaseRequest};
use lock_host::panicked;
use tokio::sync::{mpsc, oneshot};

use crate::generations::{Flushed, Generation, Generations};
use crate::tasks::{EndSender, Tasks};

/// A station with the tasks that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// How long a runtime that ends is held up for releases. Chosen: the longest time that one request takes by default.
const FINAL_FLUSH_MAX: Duration = Duration::from_secs(1);

/// How much work is taken in at once. Chosen: a few dozen share one look into the queue and cost no memory.
const AT_ONCE: usize = 64;

/// The way to the backend and to both loops.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn AsyncBackend>,
    here: mpsc::UnboundedSender<Work>,
    beside_keeper: mpsc::UnboundedSender<Work>,
}

/// Where the loop beside the keeper finds its work.
pub(crate) type WorkQueue = mpsc::UnboundedReceiver<Work>;

/// Something to do. It does not get lost: when the runtime ends before it is done, the other loop has it.
pub(crate) enum Work {
    Run(Job),
    /// A release that no station is told of.
    Release(ReleaseRequest, Duration),
    /// Answered by being dropped, when everything before it is done.
    Flush(Flushed),
}

pub(crate) struct Job {
    site: Arc<Site>,
    action: Option<Action>,
    progress: Progress,
    /// Where it is run.
    runtime: Runtime,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Waiting,
    Sent,
}

#[derive(PartialEq, Eq)]
enum Runtime {
    /// The one that the client was made on.
    Client,
    /// The keeper's; there is no other one after it.
    Keeper,
}

impl Driver {
    /// Spawns the loop on the present runtime, and gives what the one beside the keeper needs. Both end once the client
    /// and everything it set going are gone.
    pub(crate) fn spawn(backend: Arc<dyn AsyncBackend>) -> (Self, WorkQueue) {
        let (here, queue) = mpsc::unbounded_channel();
        let (beside_keeper, other_queue) = mpsc::unbounded_channel();
        tokio::spawn(drive(Arc::clone(&backend), queue, Some(FinalFlush(Some(beside_keeper.clone())))));
        (Self { backend, here, beside_keeper }, other_queue)
    }

    /// Waits until everything that was handed over so far is done, but not for what follows from it.
    pub(crate) async fn flush(&self) {
        for queue in [&self.here, &self.beside_keeper] {
            let (done, flushed) = oneshot::channel();
            _ = queue.send(Work::Flush(Flushed::Task(done)));
            _ = flushed.await;
        }
    }
}

impl lock_host::Driver for Driver {
    type Waiters = Tasks;

    fn run(site: &Site, _: &mut Tasks, action: Action) {
        let Some(this) = site.this() else { return };
        // What cannot be sent is dropped, and so goes to the other loop.
        _ = site.ports().driver.here.send(Work::Run(Job::new(this, action, Runtime::Client)));
    }

    fn attend(_: &Site, _: &mut Tasks) {
        // Everything was sent to a loop when it came out of the station.
    }

    fn leave(site: &Site, turn: TurnId) {
        leave(site, turn, None);
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        _ = self.here.send(Work::Release(request, within));
    }
}

/// Leaves the line, or ends the hold; `ended` hears how that went, if the turn is still on.
pub(crate) fn leave(site: &Site, turn: TurnId, ended: Option<EndSender>) {
    let mut inner = site.lock();
    if inner.waiters.hear_end(turn, ended) {
        site.feed(&mut inner, Input::Leave(turn));
    }
    inner.waiters.forget_waiting(turn);
}

/// Does work until nobody can send any more and all is done.
pub(crate) async fn drive(backend: Arc<dyn AsyncBackend>, queue: WorkQueue, last: Option<FinalFlush>) {
    // Dropped in the reverse order when the runtime ends: no more work comes in, what is under way goes to the other
    // loop, and that is waited for.
    let last = last;
    // The futures are polled for the first time in the order in which they were pushed, and so are sent in that order.
    let mut under_way = FuturesUnordered::new();
    let mut generations = Generations::default();
    let mut work = Vec::with_capacity(AT_ONCE);
    let mut queue = queue;
    poll_fn(|cx| {
        let mut open = true;
        while open && let Poll::Ready(count) = queue.poll_recv_many(cx, &mut work, AT_ONCE) {
            open = count > 0;
            for item in work.drain(..) {
                match item {
                    Work::Run(job) => under_way.push(Either::Left(job.run(&*backend, generations.begin()))),
                    Work::Release(request, within) => {
                        under_way.push(Either::Right(release(&*backend, request, within, generations.begin())));
                    }
                    Work::Flush(flushed) => generations.flush(flushed),
                }
            }
        }
        while let Poll::Ready(Some(generation)) = under_way.poll_next_unpin(cx) {
            generations.end(generation);
        }
        if open || !under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    // The client is gone and the runtime is not, so nothing was left to the other loop.
    last.into_iter().for_each(FinalFlush::spare);
}

async fn release(
    backend: &dyn AsyncBackend,
    request: ReleaseRequest,
    within: Duration,
    generation: Generation,
) -> Generation {
    _ = caught(Operation::Release, backend.release(&request, within)).await;
    generation
}

/// What a backend answers; one that panics has given an unknown answer.
pub(crate) async fn caught<T>(
    operation: Operation,
    asked: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    AssertUnwindSafe(asked).catch_unwind().await.unwrap_or_else(|_| Err(panicked(operation)))
}

/// Waits, when it is dropped, until the loop beside the keeper has done what it was left, but not for long.
pub(crate) struct FinalFlush(Option<mpsc::UnboundedSender<Work>>);

impl FinalFlush {
    /// Waits for nothing.
    fn spare(mut self) {
        self.0 = None;
    }
}

impl Drop for FinalFlush {
    fn drop(&mut self) {
        let Some(beside_keeper) = self.0.take() else { return };
        let (done, flushed) = threads::channel();
        if beside_keeper.send(Work::Flush(Flushed::Thread(done))).is_ok() {
            _ = flushed.recv_timeout(FINAL_FLUSH_MAX);
        }
    }
}

impl Job {
    fn new(site: Arc<Site>, action: Action, runtime: Runtime) -> Self {
        Self { site, action: Some(action), progress: Progress::Waiting, runtime }
    }

    async fn run(mut self, backend: &dyn AsyncBackend, generation: Generation) -> Generation {
        self.progress = Progress::Sent;
        let Some(Action { id, request, within }) = &self.action else { return generation };
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
        self.site.handle(Input::Reply(id, reply));
        generation
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(action) = self.action.take() else { return };
        match (&action.request, &self.progress, &self.runtime) {
            // A claim is never sent twice: its outcome is not known now, and the station has it released.
            (Request::Acquire(_), Progress::Sent, _) => {
                let message = "the runtime ended before the answer came";
                let error =
                    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message);
                self.site.handle(Input::Reply(action.id, Reply::Acquire(Err(error))));
            }
            (Request::Acquire(_), Progress::Waiting, Runtime::Client) | (Request::Release(_), _, Runtime::Client) => {
                let job = Self::new(Arc::clone(&self.site), action, Runtime::Keeper);
                _ = self.site.ports().driver.beside_keeper.send(Work::Run(job));
            }
            (Request::Acquire(_), Progress::Waiting, Runtime::Keeper) | (Request::Release(_), _, Runtime::Keeper) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_memory::nonblocking::Memory;

    use super::*;

    fn final_flush() -> (FinalFlush, WorkQueue) {
        let (sender, queue) = mpsc::unbounded_channel();
        (FinalFlush(Some(sender)), queue)
    }

    /// A runtime that goes on is not held up by the end of a client: nobody would answer here.
    #[tokio::test]
    async fn the_end_of_a_client_waits_for_nobody() {
        let ((flush, mut beside_keeper), (sender, queue)) = (final_flush(), mpsc::unbounded_channel());
        drop(sender);
        drive(Arc::new(Memory::new()), queue, Some(flush)).await;
        assert!(beside_keeper.recv().await.is_none(), "the loop beside the keeper was asked for a flush");
    }

    #[tokio::test]
    async fn the_end_of_a_runtime_waits_for_the_other_loop() {
        let ((flush, mut beside_keeper), (_sender, queue)) = (final_flush(), mpsc::unbounded_channel());
        let driving = tokio::spawn(drive(Arc::new(Memory::new()), queue, Some(flush)));
        tokio::task::yield_now().await;
        driving.abort();
        // Its drop waits for this answer, on the thread of the runtime.
        let answering = std::thread::spawn(move || matches!(beside_keeper.blocking_recv(), Some(Work::Flush(_))));
        assert!(driving.await.is_err() && answering.join().unwrap());
    }
}
