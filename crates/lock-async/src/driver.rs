//! Runs actions against the backend, off the users' futures, in the order in which they came.
//!
//! Two loops of the same kind: one on the runtime that the client was made on, and one beside the keeper, on the
//! keeper's runtime and connection. The second one runs what the first one no longer can because its runtime has ended:
//! so a guard that is dropped at the end of `main` is still released. (Except for a guard in a task that the runtime
//! drops after the driver: its release is sent, but the process may end first.)

use std::sync::Arc;
use std::time::Duration;

use lock_core::station::{Action, Input, Leaving, TurnId};
use lock_core::{AsyncBackend, ReleaseRequest};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::generations::Flushed;
use crate::tasks::{EndSender, Tasks};
use crate::work::{FinalFlush, Job, Loops, Runtime, Work, WorkQueue, WorkSender, drive};

/// A station with the tasks that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The way to the backend and to both loops.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn AsyncBackend>,
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
        runtime().spawn(drive(Arc::clone(&backend), queue, Some(FinalFlush(Some(beside_keeper.clone())))));
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

impl Loops for Driver {
    fn beside_keeper(&self) -> &WorkSender<Self> {
        &self.beside_keeper
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
        // Everything was sent to a loop when the station returned it.
    }

    fn leave(site: &Site, turn: TurnId) {
        leave(site, turn, None);
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

/// Leaves the line, or ends the hold; `ended` gets the outcome, if the turn has not ended yet.
pub(crate) fn leave(site: &Site, turn: TurnId, ended: Option<EndSender>) {
    let mut inner = site.lock();
    if inner.waiters.hear_end(turn, ended) {
        site.feed(&mut inner, Input::Leave(Leaving::now(turn)));
    }
    inner.waiters.forget_waiting(turn);
}
