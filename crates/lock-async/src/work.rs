//! The work of a client, and the loop that does it.

use std::future::{Future, poll_fn, ready};
use std::mem;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, mpsc as threads};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use lock_core::station::{Action, ActionId, Input, Reply, Request};
use lock_core::{AsyncBackend, BackendError, Effect, ErrorKind, Operation, ReleaseRequest, Released};
use lock_host::{Driver, Generation, Site, panicked};
use tokio::sync::mpsc;

use crate::tasks::{Running, Tasks};

/// How long a runtime that ends waits for releases. Chosen: the longest time that one request takes by default.
const FINAL_FLUSH_MAX: Duration = Duration::from_secs(1);

/// How much work is received at a time. Chosen: a few dozen share one access to the queue and cost no memory.
const AT_ONCE: usize = 64;

/// A driver with two loops.
pub(crate) trait Loops: Driver<Waiters = Tasks> {
    /// The backend of the client's runtime.
    fn backend(&self) -> &Arc<dyn AsyncBackend>;

    /// The way to the loop beside the keeper.
    fn beside_keeper(&self) -> &WorkSender<Self>;
}

/// The way to a loop.
pub(crate) type WorkSender<D> = mpsc::UnboundedSender<Work<D>>;

/// Where a loop finds its work.
pub(crate) type WorkQueue<D> = mpsc::UnboundedReceiver<Work<D>>;

/// Something to do. It does not get lost: if the runtime ends before it is done, the other loop gets it.
pub(crate) enum Work<D: Loops> {
    Run(Job<D>),
    /// A request that a task may have begun.
    Continue(Running),
    /// A request whose runtime has ended. Dropping it does what remains, and needs its site, which was locked elsewhere.
    Drop(Running),
    /// A release whose answer no station needs.
    Release(ReleaseRequest, Duration),
    /// The backend sends what it has put off, because the runtime that it was for has ended.
    FlushBackend,
    /// Answered when everything before it is done.
    Flush(Flushed),
}

/// Who waits for a flush: dropping it is the answer.
pub(crate) type Flushed = Box<dyn Send + Sync>;

impl<D: Loops> Work<D> {
    /// The request in it, if there is one.
    pub(crate) fn into_request(self) -> Running {
        match self {
            Self::Continue(request) | Self::Drop(request) => request,
            Self::Run(_) | Self::Release(..) | Self::FlushBackend | Self::Flush(_) => Box::pin(ready(())),
        }
    }

    /// Does it, and keeps the generation alive until it is done.
    #[expect(clippy::manual_async_fn, reason = "its future would hold the work twice")]
    fn run(mut self, backend: &dyn AsyncBackend, generation: Arc<Generation<Flushed>>) -> impl Future<Output = ()> {
        async move {
            match &mut self {
                Self::Run(job) => job.run(backend).await,
                Self::Continue(request) => request.await,
                Self::Release(request, within) => {
                    _ = caught(Operation::Release, backend.release(request, *within)).await;
                }
                Self::FlushBackend => _ = AssertUnwindSafe(backend.flush(FINAL_FLUSH_MAX)).catch_unwind().await,
                Self::Drop(_) | Self::Flush(_) => {}
            }
            // In this order: what is dropped may be passed on, which belongs to the work.
            drop(self);
            drop(generation);
        }
    }
}

pub(crate) struct Job<D: Loops> {
    site: Arc<Site<D>>,
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

impl Progress {
    /// The meaning of the answer to a release that had come so far before. If the repetition finds nothing, the first one
    /// has ended the hold.
    fn released(self, answer: Released) -> Released {
        match (self, answer) {
            (Self::Sent, Released::NotHeld) => Released::Released,
            (Self::Sent | Self::Waiting, Released::NotHeld | Released::Released | Released::Left) => answer,
        }
    }
}

#[derive(PartialEq, Eq)]
pub(crate) enum Runtime {
    /// The one that the client was made on.
    Client,
    /// The keeper's; there is no other one after it.
    Keeper,
}

/// Does work until no more can be sent and all of it is done.
pub(crate) async fn drive<D: Loops>(backend: Arc<dyn AsyncBackend>, queue: WorkQueue<D>, last: Option<FinalFlush<D>>) {
    // Dropped in the reverse order when the runtime ends: no more work comes in, what is under way goes to the other
    // loop, and that is waited for.
    let last = last;
    // The futures are polled for the first time in the order in which they were pushed, and so are sent in that order.
    let mut under_way = FuturesUnordered::new();
    let mut generation = Arc::<Generation<Flushed>>::default();
    let mut work = Vec::with_capacity(AT_ONCE);
    let mut queue = queue;
    poll_fn(|cx| {
        let mut open = true;
        while open && let Poll::Ready(count) = queue.poll_recv_many(cx, &mut work, AT_ONCE) {
            open = count > 0;
            for item in work.drain(..) {
                match item {
                    Work::Flush(flushed) => generation = generation.flush(flushed),
                    work @ (Work::Run(_)
                    | Work::Continue(_)
                    | Work::Drop(_)
                    | Work::Release(..)
                    | Work::FlushBackend) => {
                        under_way.push(work.run(&*backend, Arc::clone(&generation)));
                    }
                }
            }
        }
        while let Poll::Ready(Some(())) = under_way.poll_next_unpin(cx) {}
        if open || !under_way.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    // The client is gone and the runtime is not, so nothing was left to the other loop.
    last.into_iter().for_each(FinalFlush::spare);
}

/// What a backend answers; one that panics has given an unknown answer.
pub(crate) async fn caught<T>(
    operation: Operation,
    asked: impl Future<Output = Result<T, BackendError>>,
) -> Result<T, BackendError> {
    AssertUnwindSafe(asked).catch_unwind().await.unwrap_or_else(|_| Err(panicked(operation)))
}

/// When dropped, waits until the loop beside the keeper has done what was left to it, but not for long.
pub(crate) struct FinalFlush<D: Loops>(pub(crate) Option<WorkSender<D>>);

impl<D: Loops> FinalFlush<D> {
    /// Waits for nothing.
    fn spare(mut self) {
        self.0 = None;
    }
}

impl<D: Loops> Drop for FinalFlush<D> {
    fn drop(&mut self) {
        let Some(beside_keeper) = self.0.take() else { return };
        let (done, flushed) = threads::channel::<()>();
        _ = beside_keeper.send(Work::FlushBackend);
        if beside_keeper.send(Work::Flush(Box::new(done))).is_ok() {
            _ = flushed.recv_timeout(FINAL_FLUSH_MAX);
        }
    }
}

impl<D: Loops> Job<D> {
    pub(crate) fn new(site: Arc<Site<D>>, action: Action, runtime: Runtime) -> Self {
        Self { site, action: Some(action), progress: Progress::Waiting, runtime }
    }

    /// Runs the action over the connection of the client's runtime, wherever it is polled. Not an `async fn`: its future
    /// would hold the job twice.
    pub(crate) fn run_here(mut self) -> impl Future<Output = ()> + Send + 'static {
        let backend = Arc::clone(self.site.ports().driver.backend());
        async move { self.run(&*backend).await }
    }

    async fn run(&mut self, backend: &dyn AsyncBackend) {
        let before = mem::replace(&mut self.progress, Progress::Sent);
        let Some(Action { id, request, within }) = &self.action else { return };
        let reply = match request {
            Request::Acquire(claim) => {
                Reply::Acquire(caught(Operation::Acquire, backend.acquire(claim, *within)).await)
            }
            Request::Release(request) => {
                let result = caught(Operation::Release, backend.release(request, *within)).await;
                if result.is_err() && has_ended().await {
                    // Its connection may have ended with the runtime. The other loop has one of its own.
                    return;
                }
                Reply::Release(result.map(|answer| before.released(answer)))
            }
        };
        let id = *id;
        self.action = None;
        self.answer(id, reply);
    }

    /// Gives the station the answer.
    fn answer(&self, id: ActionId, reply: Reply) {
        let mut inner = self.site.lock();
        inner.waiters.own.answered(id);
        self.site.feed(&mut inner, Input::Reply(id, reply));
        D::attend(&self.site, &mut inner.waiters);
    }
}

/// Whether the runtime that this is polled on has ended.
async fn has_ended() -> bool {
    tokio::spawn(async {}).await.is_err()
}

impl<D: Loops> Drop for Job<D> {
    fn drop(&mut self) {
        let Some(action) = self.action.take() else { return };
        match (&action.request, &self.progress, &self.runtime) {
            // A claim is never sent twice: its outcome is unknown now, and the station releases its owner.
            (Request::Acquire(_), Progress::Sent, _) => {
                let message = "the runtime ended before the answer came";
                let error =
                    BackendError::new("client", Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, message);
                self.answer(action.id, Reply::Acquire(Err(error)));
            }
            (Request::Acquire(_), Progress::Waiting, Runtime::Client) | (Request::Release(_), _, Runtime::Client) => {
                let (site, progress, runtime) = (Arc::clone(&self.site), self.progress, Runtime::Keeper);
                let job = Self { site, action: Some(action), progress, runtime };
                _ = self.site.ports().driver.beside_keeper().send(Work::Run(job));
            }
            (Request::Acquire(_), Progress::Waiting, Runtime::Keeper) | (Request::Release(_), _, Runtime::Keeper) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use lock_memory::nonblocking::Memory;

    use super::*;

    fn final_flush() -> (FinalFlush<crate::driver::Driver>, WorkQueue<crate::driver::Driver>) {
        let (sender, queue) = mpsc::unbounded_channel();
        (FinalFlush(Some(sender)), queue)
    }

    /// Measured: 272 bytes. Each task that waits for a request keeps one of these.
    #[test]
    fn a_job_under_way_is_small() {
        fn size_of_what<F>(_runs: impl FnOnce(Job<crate::driver::Driver>) -> F) -> usize {
            size_of::<F>()
        }
        let size = size_of_what(Job::run_here);
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
