//! Runs actions against the backend, in the order in which stations return them.
//!
//! A task runs the request that it waits for if nothing else is in flight at the site ([`answer`]). A loop (`work`) runs
//! everything else.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use lock_core::station::{Action, Leaving, TurnId};
use lock_core::{AsyncBackend, BackendError, LockName, Mode, Operation, ReleaseRequest};
use lock_host::{ClientContext, End, Held, TurnResult, Turns};

use crate::tasks::{PollTurn, Tasks};
pub(crate) use crate::work::{Driver, Site};
use crate::work::{Job, Work, caught};

/// The stations of a client.
pub(crate) type Stations = Arc<lock_host::Stations<Driver>>;

/// The contents of a locked site.
type Locked<'a> = lock_host::Locked<'a, Driver>;

/// How long the user's runtime has for a release that nobody waits for. A task that computes without a break may keep the loop
/// there, or the connection, from being polled; then the keeper sends the release as well. Chosen: longer than most stores take to
/// answer, so that few are sent twice, and short beside a lease.
const STALLED_AFTER: Duration = Duration::from_millis(100);

impl lock_host::Driver for Driver {
    type Waiters = Tasks;

    fn run(site: &Arc<Site>, tasks: &mut Tasks, action: Action) {
        let (id, driver) = (action.id, &site.context().driver);
        tasks.requests.push(id, Box::pin(Job::here(Arc::clone(site), action)), driver);
    }

    fn attend(site: &Arc<Site>, tasks: &mut Tasks) {
        tasks.requests.hand_over(&site.context().driver);
    }

    fn leave(site: &Arc<Site>, turn: TurnId) {
        let mut inner = site.lock();
        site.abandon(&mut inner, turn);
        inner.waiters.requests.hand_over(&site.context().driver);
    }

    const STALLED_AFTER: Option<Duration> = Some(STALLED_AFTER);

    fn run_stalled(site: &Arc<Site>, release: Action) {
        site.context().driver.send_stalled(Job::stalled(Arc::clone(site), release));
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        self.do_later(Work::Release(request, within));
    }

    fn end_session(site: &Arc<Site>) {
        site.context().driver.do_later(Work::EndSession(Arc::clone(site)));
    }
}

/// Sends a request that the station did not ask for, as carefully as the station's: it is polled on the client's runtime, a backend
/// that panics has given an unknown answer, and observers are notified of a failure. If the caller drops the future, the request is dropped
/// with it.
pub(crate) async fn ask<'a, T, F>(
    context: &'a ClientContext<Driver>,
    name: &LockName,
    operation: Operation,
    request: impl FnOnce(&'a dyn AsyncBackend) -> F,
) -> Result<T, BackendError>
where
    F: Future<Output = Result<T, BackendError>>,
{
    let Driver { backend, runtime, .. } = &context.driver;
    let mut asked = pin!(caught(operation, async { request(&**backend).await }));
    let answer = poll_fn(|cx| {
        let _entered = runtime.enter();
        asked.as_mut().poll(cx)
    })
    .await;
    context.answered(name, &answer);
    answer
}

/// Waits for the result of a turn that has just joined the wait queue; `None` if the turn ends first.
pub(crate) fn turn_result<'a>(
    site: &'a Arc<Site>,
    turn: TurnId,
    joined: Locked<'_>,
) -> impl Future<Output = Option<TurnResult>> + use<'a> {
    answer(site, turn, joined, Turns::poll_result)
}

/// Ends a hold, and waits for the outcome.
pub(crate) async fn end(site: &Arc<Site>, leaving: Leaving) -> End {
    answer(site, leaving.turn, site.end_turn(leaving), Turns::poll_end).await
}

/// Changes the mode of a hold, and waits for the result; `None` if it is lost first.
pub(crate) async fn change<M>(held: &Held<Driver, M>, mode: Mode) -> Option<TurnResult> {
    turn_result(held.site(), held.turn(), held.change(mode)).await
}

/// Waits for the result of a turn. If there is none yet, and the turn has just started the only request of the site, this task polls
/// it. If this is dropped, the caller has to leave the turn, so that a loop continues the request. Not an `async fn`, whose future would
/// hold the arguments twice: each task that waits has one.
fn answer<'a, T>(
    site: &'a Arc<Site>,
    turn: TurnId,
    mut asked: Locked<'_>,
    poll: PollTurn<T>,
) -> impl Future<Output = T> + use<'a, T> {
    let driver = &site.context().driver;
    let Tasks { turns, requests } = &mut asked.waiters;
    let mut inline = if turns.has_update(turn) {
        requests.hand_over(driver);
        None
    } else {
        requests.take_inline(driver)
    };
    drop(asked);
    poll_fn(move |cx| {
        // A recall wakes this task. If it also waited for the answer, it would be woken twice.
        let answered = inline.as_ref().map_or(Poll::Ready(None), |inline| inline.poll(driver, cx));
        let answered = ready!(answered);
        inline = None;
        let mut inner = site.lock();
        answered.into_iter().for_each(|answered| answered.give_to(&mut inner));
        inner.waiters.poll(turn, poll, cx)
    })
}
