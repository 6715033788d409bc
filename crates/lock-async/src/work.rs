//! The work of a client, and the two loops that do it: one on the runtime that the client was made on, and one beside the keeper,
//! on the keeper's runtime and connection. The second one continues when the first one's runtime has ended, so a guard that is
//! dropped at the end of `main` is still released. (Except for a guard in a task that the runtime drops after the loop: its
//! release is sent, but the process may end first.) It also sends what the first one does not get to.

use std::future::{Future, poll_fn, ready};
use std::mem;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc as threads};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{AsyncBackend, BackendError, Effect, ErrorKind, Operation, ReleaseRequest};
use lock_host::{Inner, panicked};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

use crate::flush_epoch::FlushEpoch;

/// How long a runtime that ends waits for releases. Chosen: the longest time that one request takes by default.
const FINAL_FLUSH_MAX: Duration = Duration::from_secs(1);

/// How much work is received at a time. Chosen: a few dozen share one access to the queue and cost little memory.
const BATCH_MAX: usize = 64;

/// A request to the store, up to its answer. `None` if another loop gets the answer.
pub(crate) type Running = BoxFuture<'static, Option<Answered>>;

/// A station with the tasks that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The way to the backend and to both loops.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn AsyncBackend>,
    pub(crate) runtime: Handle,
    pub(crate) here: WorkSender,
    beside_keeper: WorkSender,
}

impl Driver {
    /// Spawns the loop on the present runtime, and returns what the one beside the keeper needs. Both end once the
    /// client and everything that it started are gone.
    #[track_caller]
    pub(crate) fn spawn(backend: Arc<dyn AsyncBackend>) -> (Self, WorkQueue) {
        let (here, queue) = mpsc::unbounded_channel();
        let (beside_keeper, other_queue) = mpsc::unbounded_channel();
        let runtime = runtime();
        runtime.spawn(drive(Arc::clone(&backend), queue, Some(FinalFlush(Some(beside_keeper.clone())))));
        (Self { backend, runtime, here, beside_keeper }, other_queue)
    }

    /// Gives a request to the loop on the client's runtime.
    pub(crate) fn send(&self, request: Running) -> Result<(), Running> {
        self.here.send(Work::Continue(request)).map_err(|SendError(work)| work.into_request())
    }

    /// Has the loop beside the keeper send a release as well.
    pub(crate) fn send_stalled(&self, release: Job) {
        _ = self.beside_keeper.send(Work::Run(release));
    }

    /// Has the client's loop run a request. If that loop has ended, the request is dropped here: that passes it to the other loop, and
    /// locks its site if it was polled before.
    pub(crate) fn run_in_loop(&self, request: Running) {
        drop(self.send(request));
    }

    /// The same for a request that was polled, while its site is locked: if the client's loop has ended, the other one drops it.
    pub(crate) fn continue_elsewhere(&self, request: Running) {
        let Err(request) = self.send(request) else { return };
        if let Err(request) = self.beside_keeper.send(Work::Drop(request)) {
            // Both loops have ended, and dropping it would lock its site, which may be locked here.
            mem::forget(request);
        }
    }

    /// Gives work that a task does not wait for to the client's loop, or to the other one if that has ended.
    pub(crate) fn do_later(&self, work: Work) {
        if let Err(SendError(work)) = self.here.send(work) {
            _ = self.beside_keeper.send(work);
        }
    }

    /// Waits until everything that was handed over so far is done, but not for what follows from it.
    pub(crate) async fn flush(&self) {
        let both = [&self.here, &self.beside_keeper].map(flushed);
        for flushed in both {
            _ = flushed.await;
        }
        // The other loop may have put the rest of requests that it dropped behind that flush.
        if self.here.is_closed() {
            _ = flushed(&self.beside_keeper).await;
        }
    }
}

/// Answered when a loop has done what it was given so far.
fn flushed(queue: &WorkSender) -> oneshot::Receiver<()> {
    let (done, flushed) = oneshot::channel();
    _ = queue.send(Work::Flush(Box::new(done)));
    flushed
}

/// The tokio runtime of the caller.
///
/// # Panics
/// Outside a tokio runtime. The panic points at the caller.
#[track_caller]
#[expect(clippy::panic, reason = "documented: without a runtime there is nothing to run on")]
pub fn runtime() -> Handle {
    let Ok(runtime) = Handle::try_current() else {
        panic!(
            "leasehold's async API needs a tokio runtime, and this thread has none: call it under #[tokio::main], in \
             Runtime::block_on or after Runtime::enter, or use the blocking API, which needs no runtime"
        );
    };
    runtime
}

/// The way to a loop.
pub(crate) type WorkSender = mpsc::UnboundedSender<Work>;

/// The queue from which a loop takes its work.
pub(crate) type WorkQueue = mpsc::UnboundedReceiver<Work>;

/// Something to do. A request of a station does not get lost if the runtime ends: the other loop gets a release, and a claim that was not
/// sent; the outcome of one that was sent is unknown.
pub(crate) enum Work {
    Run(Job),
    /// A request that a task may have begun.
    Continue(Running),
    /// A request whose runtime has ended. Dropping it does what remains, and needs its site, which was locked elsewhere.
    Drop(Running),
    /// A release whose answer no station needs.
    Release(ReleaseRequest, Duration),
    /// Ends the session, if this site still needs that.
    EndSession(Arc<Site>),
    /// The backend sends what it has put off, because the runtime that it was for has ended.
    FlushBackend,
    /// Answered when everything before it is done.
    Flush(Flushed),
}

/// The waiter for a flush: dropping it is the answer.
pub(crate) type Flushed = Box<dyn Send + Sync>;

impl Work {
    /// The request in it, if there is one.
    fn into_request(self) -> Running {
        match self {
            Self::Continue(request) | Self::Drop(request) => request,
            Self::Run(_) | Self::Release(..) | Self::EndSession(_) | Self::FlushBackend | Self::Flush(_) => {
                Box::pin(ready(None))
            }
        }
    }

    /// Does it, and keeps the epoch alive until it is done.
    #[expect(clippy::manual_async_fn, reason = "its future would hold the work twice")]
    fn run(mut self, backend: &dyn AsyncBackend, epoch: Arc<FlushEpoch<Flushed>>) -> impl Future<Output = ()> {
        async move {
            match &mut self {
                Self::Run(job) => job.run(backend).await.into_iter().for_each(Answered::give),
                Self::Continue(request) => request.await.into_iter().for_each(Answered::give),
                Self::Release(request, within) => {
                    _ = caught(Operation::Release, backend.release(request, *within)).await;
                }
                Self::EndSession(site) => site.end_session(backend),
                Self::FlushBackend => _ = AssertUnwindSafe(backend.flush(FINAL_FLUSH_MAX)).catch_unwind().await,
                Self::Drop(_) | Self::Flush(_) => {}
            }
            // In this order: what is dropped may be passed on, which belongs to the work.
            drop(self);
            drop(epoch);
        }
    }
}

pub(crate) struct Job {
    site: Arc<Site>,
    action: Option<Action>,
    progress: Progress,
    /// The runtime that runs it.
    runtime: Runtime,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
    /// The keeper's, beside the client's, which has not answered for a while.
    KeeperToo,
}

/// Does work until the queue is closed and all of it is done.
pub(crate) async fn drive(backend: Arc<dyn AsyncBackend>, queue: WorkQueue, last: Option<FinalFlush>) {
    // Dropped in the reverse order when the runtime ends: no more work comes in, what is in flight goes to the other
    // loop, and that is waited for.
    let last = last;
    // The futures are polled for the first time in the order in which they were pushed, and so are sent in that order.
    let mut in_flight = FuturesUnordered::new();
    let mut epoch = Arc::<FlushEpoch<Flushed>>::default();
    let mut work = Vec::with_capacity(BATCH_MAX);
    let mut queue = queue;
    poll_fn(|cx| {
        let mut open = true;
        while open && let Poll::Ready(count) = queue.poll_recv_many(cx, &mut work, BATCH_MAX) {
            open = count > 0;
            for item in work.drain(..) {
                if let Work::Flush(flushed) = item {
                    epoch = epoch.flush(flushed);
                } else {
                    in_flight.push(item.run(&*backend, Arc::clone(&epoch)));
                }
            }
        }
        while let Poll::Ready(Some(())) = in_flight.poll_next_unpin(cx) {}
        if open || !in_flight.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    // The client is gone and the runtime is not, so nothing was left to the other loop.
    last.into_iter().for_each(|mut last| last.0 = None);
}

/// The outcome of a claim that was sent over a connection which ended before the answer came.
fn unanswered() -> BackendError {
    let message = "the runtime ended before the answer came";
    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message)
}

/// The answer of a backend. A panic counts as an unknown answer.
pub(crate) fn caught<T>(
    operation: Operation,
    asked: impl Future<Output = Result<T, BackendError>>,
) -> impl Future<Output = Result<T, BackendError>> {
    AssertUnwindSafe(asked).catch_unwind().map(move |answer| answer.unwrap_or_else(|_| Err(panicked(operation))))
}

/// When dropped, waits until the loop beside the keeper has done what was left to it, but not for long.
pub(crate) struct FinalFlush(pub(crate) Option<WorkSender>);

impl Drop for FinalFlush {
    fn drop(&mut self) {
        let Some(beside_keeper) = self.0.take() else { return };
        let (done, flushed) = threads::channel::<()>();
        _ = beside_keeper.send(Work::FlushBackend);
        if beside_keeper.send(Work::Flush(Box::new(done))).is_ok() {
            _ = flushed.recv_timeout(FINAL_FLUSH_MAX);
        }
    }
}

impl Job {
    /// Runs an action over the connection of the client's runtime, wherever it is polled.
    pub(crate) fn here(site: Arc<Site>, action: Action) -> impl Future<Output = Option<Answered>> + Send + 'static {
        let owned = Arc::clone(&site);
        let mut job = Self { site, action: Some(action), progress: Progress::Waiting, runtime: Runtime::Client };
        async move { job.run(&*owned.context().driver.backend).await }
    }

    /// A release that has been in flight for a while, for the loop beside the keeper.
    pub(crate) fn stalled(site: Arc<Site>, action: Action) -> Self {
        Self { site, action: Some(action), progress: Progress::Sent, runtime: Runtime::KeeperToo }
    }

    async fn run(&mut self, backend: &dyn AsyncBackend) -> Option<Answered> {
        let before = mem::replace(&mut self.progress, Progress::Sent);
        let Action { id, request, within, .. } = self.action.as_ref()?;
        let reply = match request {
            Request::Acquire(claim) => {
                Reply::Acquire(caught(Operation::Acquire, backend.acquire(claim, *within)).await)
            }
            Request::Release(request) => {
                let result = caught(Operation::Release, backend.release(request, *within)).await;
                if result.is_err() && has_ended().await {
                    // Its connection may have ended with the runtime. The other loop has one of its own.
                    return None;
                }
                Reply::Release(result.map(|answer| match before {
                    Progress::Waiting => answer,
                    Progress::Sent => answer.repeated(),
                }))
            }
        };
        let answered = self.answered(*id, reply);
        self.action = None;
        Some(answered)
    }

    fn answered(&self, id: ActionId, reply: Reply) -> Answered {
        Answered { site: Arc::clone(&self.site), id, reply, is_repeated: self.runtime == Runtime::KeeperToo }
    }
}

/// The store's answer to a request. The station must get it at once.
#[must_use]
pub(crate) struct Answered {
    site: Arc<Site>,
    id: ActionId,
    reply: Reply,
    /// Whether this was a second try, beside the first one, which is still running.
    is_repeated: bool,
}

impl Answered {
    fn give(self) {
        let site = Arc::clone(&self.site);
        self.give_to(&mut site.lock());
    }

    /// Gives the station the answer.
    pub(crate) fn give_to(self, inner: &mut Inner<<Driver as lock_host::Driver>::Waiters>) {
        let Self { site, id, reply, is_repeated } = self;
        if !is_repeated {
            inner.waiters.requests.answered(id);
        }
        site.feed(inner, Input::Reply(id, reply));
        <Driver as lock_host::Driver>::attend(&site, &mut inner.waiters);
    }
}

/// Whether the runtime that this is polled on has ended.
async fn has_ended() -> bool {
    tokio::spawn(async {}).await.is_err()
}

impl Drop for Job {
    fn drop(&mut self) {
        let Some(action) = self.action.take() else { return };
        if let (Request::Acquire(_), Progress::Sent) = (&action.request, self.progress) {
            // A claim is never sent twice: its outcome is unknown now, and the station releases its owner.
            self.answered(action.id, Reply::Acquire(Err(unanswered()))).give();
        } else if self.runtime == Runtime::Client {
            let (site, progress, runtime) = (Arc::clone(&self.site), self.progress, Runtime::Keeper);
            let job = Self { site, action: Some(action), progress, runtime };
            _ = self.site.context().driver.beside_keeper.send(Work::Run(job));
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

    /// Measured: 248 bytes. Each task that waits for a request keeps one of these.
    #[test]
    fn a_job_in_flight_is_small() {
        fn size_of_what<F>(_runs: impl FnOnce(Arc<Site>, Action) -> F) -> usize {
            size_of::<F>()
        }
        let size = size_of_what(Job::here);
        assert!(size <= 400, "{size} bytes");
    }

    /// A runtime that continues does not wait for the end of a client: nobody would answer here.
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
        let answering = std::thread::spawn(move || {
            matches!(beside_keeper.blocking_recv(), Some(Work::FlushBackend))
                && matches!(beside_keeper.blocking_recv(), Some(Work::Flush(_)))
        });
        assert!(driving.await.is_err() && answering.join().unwrap());
    }
}
