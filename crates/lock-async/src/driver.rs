//! Runs actions against the backend, in the order in which stations return them.
//!
//! A task runs the request that it waits for if nothing else is under way at the site ([`answer`]). A loop (`work`) runs
//! everything else.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use futures_util::future::FutureExt;
use lock_core::station::{Action, Leaving, TurnId};
use lock_core::{AsyncBackend, BackendError, LockName, Mode, Operation, ReleaseRequest};
use lock_host::{End, Held, Ports, Turns, Verdict};

use crate::tasks::{Hear, Running, Tasks};
pub(crate) use crate::work::{Driver, Site};
use crate::work::{Job, Work, caught};

/// How long the user's runtime has for a release that nobody waits for. A task that computes without a break may keep the loop
/// there, or the connection, from being polled; then the keeper sends the release as well. Chosen: longer than most stores take to
/// answer, so that few are sent twice, and short beside a lease.
const STALLED_AFTER: Duration = Duration::from_millis(100);

impl lock_host::Driver for Driver {
    type Waiters = Tasks;

    fn run(site: &Arc<Site>, tasks: &mut Tasks, action: Action) {
        tasks.own.push(action.id, Box::pin(Job::here(Arc::clone(site), action)));
    }

    fn attend(site: &Arc<Site>, tasks: &mut Tasks) {
        let driver = &site.ports().driver;
        tasks.own.hand_over(|request| driver.send(request));
        tasks.own.give_away_stranded(|request| driver.drop_elsewhere(request));
    }

    fn leave(site: &Arc<Site>, turn: TurnId) {
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

    const STALLED_AFTER: Option<Duration> = Some(STALLED_AFTER);

    fn run_stalled(site: &Arc<Site>, release: Action) {
        site.ports().driver.send_stalled(Job::stalled(Arc::clone(site), release));
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        _ = self.here.send(Work::Release(request, within));
    }
}

/// Sends a request that the station did not ask for, as carefully as the station's: it is polled on the client's runtime, a backend
/// that panics has given an unknown answer, and observers hear of a failure. If the caller drops the future, the request is dropped
/// with it.
pub(crate) async fn ask<'a, T, F>(
    ports: &'a Ports<Driver>,
    name: &LockName,
    operation: Operation,
    request: impl FnOnce(&'a dyn AsyncBackend) -> F,
) -> Result<T, BackendError>
where
    F: Future<Output = Result<T, BackendError>>,
{
    let Driver { backend, runtime, .. } = &ports.driver;
    let mut asked = pin!(caught(operation, async { request(&**backend).await }));
    let answer = poll_fn(|cx| {
        let _entered = runtime.enter();
        asked.as_mut().poll(cx)
    })
    .await;
    ports.answered(name, &answer);
    answer
}

/// Waits for the verdict of a turn that has joined the line; `None` if the turn ends first.
pub(crate) fn verdict(site: &Arc<Site>, turn: TurnId) -> impl Future<Output = Option<Verdict>> {
    answer(site, turn, Turns::poll_verdict)
}

/// Ends a hold, and waits for the outcome.
pub(crate) async fn end(site: &Arc<Site>, leaving: Leaving) -> End {
    site.leave(&mut site.lock(), leaving);
    answer(site, leaving.turn, Turns::poll_end).await
}

/// Asks for a hold to go on in another mode, and waits for the verdict; `None` if it is lost first.
pub(crate) async fn change<M>(held: &Held<Driver, M>, mode: Mode) -> Option<Verdict> {
    held.change(mode);
    verdict(held.site(), held.turn()).await
}

/// Waits until a turn hears something, and runs the request that leads to it while that is the only one at the site. If
/// this is dropped, the caller has to leave the turn, so that a loop continues the request. Not an `async fn`, whose future would
/// hold the arguments twice: each task that waits has one.
fn answer<T>(site: &Arc<Site>, turn: TurnId, hear: Hear<T>) -> impl Future<Output = T> {
    poll_fn(move |cx| {
        // Whatever takes the request away wakes this task. If the task also waited for the answer, it would wake twice.
        ready!(poll_own(site, turn, cx));
        site.lock().waiters.hear(turn, hear, cx)
    })
}

/// Polls the request that the task of a turn runs, if there is one. Pending if the task keeps it, and will be woken.
fn poll_own(site: &Arc<Site>, turn: TurnId, cx: &mut Context<'_>) -> Poll<()> {
    let driver = &site.ports().driver;
    let Some(mut request) = site.lock().waiters.own.take(turn, |request| driver.send(request)) else {
        return Poll::Ready(());
    };
    let mut polled = Polled { site: Some(site), turn };
    // Timers and connections belong to the client's runtime, wherever this is polled. If that runtime has ended, the
    // request is dropped, which hands the rest of its work to the keeper's runtime.
    let _entered = driver.runtime.enter();
    if driver.here.is_closed() || request.poll_unpin(cx).is_ready() {
        return Poll::Ready(());
    }
    polled.settle(Some((request, cx.waker().clone())))
}

/// A poll of a request by the task of a turn. It is over when this is dropped, also by a panic.
struct Polled<'a> {
    site: Option<&'a Arc<Site>>,
    turn: TurnId,
}

impl Polled<'_> {
    /// Ends the poll. An unfinished request goes back to the site.
    fn settle(&mut self, left: Option<(Running, Waker)>) -> Poll<()> {
        let Some(site) = self.site.take() else { return Poll::Ready(()) };
        let driver = &site.ports().driver;
        let stays = site.lock().waiters.own.settle(self.turn, left, |request| driver.send(request));
        if stays { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Drop for Polled<'_> {
    fn drop(&mut self) {
        _ = self.settle(None);
    }
}
