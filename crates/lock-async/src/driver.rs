//! Runs actions against the backend, in the order in which stations return them.
//!
//! A task runs the request that it waits for if nothing else is under way at the site ([`answer`]). A loop runs
//! everything else. There are two loops: one on the runtime that the client was made on, and one beside the keeper, on
//! the keeper's runtime and connection. The second one continues when the first one's runtime has ended, so a guard
//! that is dropped at the end of `main` is still released. (Except for a guard in a task that the runtime drops after
//! the driver: its release is sent, but the process may end first.)

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::future::FutureExt;
use lock_core::station::{Action, Leaving, TurnId};
use lock_core::{AsyncBackend, Mode, ReleaseRequest};
use lock_host::{End, Held, Turns, Verdict};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};

use crate::tasks::{Hear, Running, Tasks};
use crate::work::{FinalFlush, Job, Loops, Runtime, Work, WorkQueue, WorkSender, drive};

/// A station with the tasks that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The way to the backend and to both loops.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn AsyncBackend>,
    runtime: Handle,
    here: WorkSender<Self>,
    beside_keeper: WorkSender<Self>,
}

impl Driver {
    /// Spawns the loop on the present runtime, and returns what the one beside the keeper needs. Both end once the
    /// client and everything that it started are gone.
    #[track_caller]
    pub(crate) fn spawn(backend: Arc<dyn AsyncBackend>) -> (Self, WorkQueue<Self>) {
        let (here, queue) = mpsc::unbounded_channel();
        let (beside_keeper, other_queue) = mpsc::unbounded_channel();
        let runtime = runtime();
        runtime.spawn(drive(Arc::clone(&backend), queue, Some(FinalFlush(Some(beside_keeper.clone())))));
        (Self { backend, runtime, here, beside_keeper }, other_queue)
    }

    /// Gives a request to the loop on the client's runtime.
    fn send(&self, request: Running) -> Result<(), Running> {
        self.here.send(Work::Continue(request)).map_err(|SendError(work)| work.into_request())
    }

    /// Has the loop beside the keeper drop a request whose runtime has ended.
    fn drop_elsewhere(&self, request: Running) -> Result<(), Running> {
        self.beside_keeper.send(Work::Drop(request)).map_err(|SendError(work)| work.into_request())
    }

    /// Waits until everything that was handed over so far is done, but not for what follows from it.
    pub(crate) async fn flush(&self) {
        for queue in [&self.here, &self.beside_keeper] {
            let (done, flushed) = oneshot::channel::<()>();
            _ = queue.send(Work::Flush(Box::new(done)));
            _ = flushed.await;
        }
    }
}

impl Loops for Driver {
    fn backend(&self) -> &Arc<dyn AsyncBackend> {
        &self.backend
    }

    fn beside_keeper(&self) -> &WorkSender<Self> {
        &self.beside_keeper
    }
}

impl lock_host::Driver for Driver {
    type Waiters = Tasks;

    fn run(site: &Site, tasks: &mut Tasks, action: Action) {
        let Some(this) = site.this() else { return };
        tasks.own.push(action.id, Box::pin(Job::new(this, action, Runtime::Client).run_here()));
    }

    fn attend(site: &Site, tasks: &mut Tasks) {
        let driver = &site.ports().driver;
        tasks.own.hand_over(|request| driver.send(request));
        tasks.own.give_away_stranded(|request| driver.drop_elsewhere(request));
    }

    fn leave(site: &Site, turn: TurnId) {
        let mut inner = site.lock();
        if inner.leave_at_once(turn) {
            return;
        }
        site.abandon(&mut inner, turn);
        inner.waiters.own.hand_over(|request| site.ports().driver.send(request));
        let stranded = inner.waiters.own.take_stranded();
        drop(inner);
        drop(stranded);
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        _ = self.here.send(Work::Release(request, within));
    }
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

/// Waits for the verdict of a turn that has joined the line; `None` if the turn ends first.
pub(crate) async fn verdict(site: &Site, turn: TurnId) -> Option<Verdict> {
    answer(site, turn, Turns::poll_verdict).await
}

/// Ends a hold, and waits for the outcome.
pub(crate) async fn end(site: &Site, leaving: Leaving) -> End {
    let begun = site.end(&mut site.lock(), leaving);
    match begun {
        Poll::Ready(end) => end,
        Poll::Pending => answer(site, leaving.turn, Turns::poll_end).await,
    }
}

/// Asks for a hold to go on in another mode, and waits for the verdict; `None` if it is lost first.
pub(crate) async fn change<M>(held: &Held<Driver, M>, mode: Mode) -> Option<Verdict> {
    held.change(mode);
    verdict(held.site(), held.turn()).await
}

/// Waits until a turn hears something, and runs the request that leads to it while that is the only one at the site. If
/// this is dropped, the caller has to leave the turn, so that a loop continues the request.
async fn answer<T>(site: &Site, turn: TurnId, hear: Hear<T>) -> T {
    poll_fn(|cx| match poll_own(site, turn, cx) {
        // Whatever takes the request away wakes this task. If the task also waited for the answer, it would wake twice.
        Own::Pending => Poll::Pending,
        Own::Done => site.lock().waiters.hear(turn, hear, cx),
    })
    .await
}

/// What the task of a turn has to do with the requests of its site.
enum Own {
    /// It polls one, and will be woken.
    Pending,
    /// It has none to poll.
    Done,
}

/// Polls the request that the task of a turn runs, if there is one.
fn poll_own(site: &Site, turn: TurnId, cx: &mut Context<'_>) -> Own {
    let driver = &site.ports().driver;
    let Some(mut request) = site.lock().waiters.own.take(turn, |request| driver.send(request)) else {
        return Own::Done;
    };
    let mut polled = Polled { site: Some(site), turn };
    // Timers and connections belong to the client's runtime, wherever this is polled. If that runtime has ended, the
    // request is dropped, which hands the rest of its work to the keeper's runtime.
    let _entered = driver.runtime.enter();
    if driver.here.is_closed() || request.poll_unpin(cx).is_ready() {
        return Own::Done;
    }
    polled.settle(Some((request, cx.waker().clone())))
}

/// A poll of a request by the task of a turn. It is over when this is dropped, also by a panic.
struct Polled<'a> {
    site: Option<&'a Site>,
    turn: TurnId,
}

impl Polled<'_> {
    /// Ends the poll. An unfinished request goes back to the site.
    fn settle(&mut self, left: Option<(Running, Waker)>) -> Own {
        let Some(site) = self.site.take() else { return Own::Done };
        let driver = &site.ports().driver;
        let stays = site.lock().waiters.own.settle(self.turn, left, |request| driver.send(request));
        if stays { Own::Pending } else { Own::Done }
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        self.settle(None);
    }
}
