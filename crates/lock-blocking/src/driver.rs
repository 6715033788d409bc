//! Runs actions against the backend: on the thread that asks, or on the pool if no such thread is there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use lock_core::station::{Action, Input, Leaving, Reply, Request, TurnId};
use lock_core::{BackendError, BlockingBackend, LockName, Mode, Operation, ReleaseRequest};
use lock_host::{ClientContext, End, Held, NAP_MAX, TurnResult, Turns, panicked};

use crate::pool::{Pool, Work};
use crate::sync::Arc;
use crate::threads::{Presence, Thread, Threads};

/// A station with the threads that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The stations of a client.
pub(crate) type Stations = Arc<lock_host::Stations<Driver>>;

/// The contents of a locked site.
type Locked<'a> = lock_host::Locked<'a, Driver>;

/// The way to the backend, and the pool for work that no caller waits for.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn BlockingBackend>,
    pool: Pool<PoolWork>,
}

/// Work for the pool.
enum PoolWork {
    /// The next action at a site. A site is in the queue once.
    Site(Arc<Site>),
    /// A release whose answer no station needs.
    Release(Arc<dyn BlockingBackend>, ReleaseRequest, Duration),
    /// Ends the session, if this site still needs that.
    EndSession(Arc<Site>),
}

impl Driver {
    pub(crate) fn new(backend: Arc<dyn BlockingBackend>) -> Self {
        Self { backend, pool: Pool::default() }
    }

    /// Asks the store; blocks for as long as it may take.
    fn ask(&self, Action { id, request, within, .. }: Action) -> Input {
        let backend = &self.backend;
        let reply = match request {
            Request::Acquire(claim) => Reply::Acquire(caught(Operation::Acquire, || backend.acquire(&claim, within))),
            Request::Release(request) => {
                Reply::Release(caught(Operation::Release, || backend.release(&request, within)))
            }
        };
        Input::Reply(id, reply)
    }
}

impl lock_host::Driver for Driver {
    type Waiters = Threads;

    fn run(_: &Arc<Site>, threads: &mut Threads, action: Action) {
        threads.pending.push_back(action);
    }

    fn attend(site: &Arc<Site>, threads: &mut Threads) {
        dispatch(site, threads);
    }

    fn leave(site: &Arc<Site>, turn: TurnId) {
        end(site, Leaving::now(turn));
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        self.pool.submit(PoolWork::Release(Arc::clone(&self.backend), request, within));
    }

    fn end_session(site: &Arc<Site>) {
        site.context().driver.pool.submit(PoolWork::EndSession(Arc::clone(site)));
    }
}

impl Work for PoolWork {
    /// Sites take turns, one action each: if the store does not answer for one lock, the others continue.
    fn run(self) -> Option<Self> {
        match self {
            Self::Site(site) => run_one(&site).then(|| Self::Site(site)),
            Self::Release(backend, request, within) => {
                _ = caught(Operation::Release, || backend.release(&request, within));
                None
            }
            Self::EndSession(site) => {
                site.end_session(&*site.context().driver.backend);
                None
            }
        }
    }
}

/// Calls a backend. If it panics, the outcome is unknown.
pub(crate) fn caught<T>(
    operation: Operation,
    ask: impl FnOnce() -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    catch_unwind(AssertUnwindSafe(ask)).unwrap_or_else(|_| Err(panicked(operation)))
}

/// Sends a request that the station did not ask for, as carefully as the station's: a backend that panics has given an unknown
/// answer, and observers are notified of a failure.
pub(crate) fn ask<'a, T>(
    context: &'a ClientContext<Driver>,
    name: &LockName,
    operation: Operation,
    request: impl FnOnce(&'a dyn BlockingBackend) -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let answer = caught(operation, || request(&*context.driver.backend));
    context.answered(name, &answer);
    answer
}

/// Waits for the result of a turn that has just joined the wait queue, running claims meanwhile; `None` if the turn ends first.
pub(crate) fn turn_result<'a>(site: &'a Arc<Site>, turn: TurnId, joined: Locked<'a>) -> Option<TurnResult> {
    let (mut inner, result) = work(site, joined, turn, Turns::poll_result);
    // A waiter that is refused releases what it has left at the store itself, because its process may end now.
    if let Some(Err(_)) = result
        && let Some(release) = inner.waiters.take_own(turn)
    {
        inner = run(site, inner, Some(turn), release);
    }
    leave_site(site, inner, turn);
    result
}

/// Changes the mode of a hold, and waits for the result; `None` if it is lost first.
pub(crate) fn change<M>(held: &Held<Driver, M>, mode: Mode) -> Option<TurnResult> {
    let (site, turn) = (held.site(), held.turn());
    let (inner, result) = work(site, held.change(mode), turn, Turns::poll_result);
    leave_site(site, inner, turn);
    result
}

/// Ends the turn and waits until the store has answered.
pub(crate) fn end(site: &Arc<Site>, leaving: Leaving) -> End {
    let (inner, end) = work(site, site.end_turn(leaving), leaving.turn, Turns::poll_end);
    leave_site(site, inner, leaving.turn);
    end
}

/// The thread of a turn goes back to its user.
fn leave_site(site: &Arc<Site>, mut inner: Locked<'_>, turn: TurnId) {
    inner.waiters.set_presence(turn, Presence::Away);
    dispatch(site, &mut inner.waiters);
}

/// Sleeps until the hold has ended, but for at most `nap`.
pub(crate) fn nap_until_ended(site: &Arc<Site>, turn: TurnId, nap: Duration) {
    let mut inner = site.lock();
    let Some(condvar) = inner.waiters.turns.get_mut(turn).map(Thread::condvar) else { return };
    drop(inner.sleep(&condvar, nap));
}

/// Alternates between running what this thread has to run and sleeping, until its turn has a result.
fn work<'a, T>(
    site: &'a Arc<Site>,
    mut inner: Locked<'a>,
    turn: TurnId,
    poll: impl Fn(&mut Turns<Thread>, TurnId) -> Poll<T>,
) -> (Locked<'a>, T) {
    inner.waiters.set_presence(turn, Presence::Here);
    loop {
        if let Poll::Ready(result) = poll(&mut inner.waiters.turns, turn) {
            return (inner, result);
        }
        inner = match inner.waiters.take_own(turn) {
            Some(action) => run(site, inner, Some(turn), action),
            None => sleep(site, inner, turn),
        };
    }
}

fn sleep<'a>(site: &'a Arc<Site>, mut inner: Locked<'a>, turn: TurnId) -> Locked<'a> {
    dispatch(site, &mut inner.waiters);
    inner.waiters.set_presence(turn, Presence::Asleep);
    let Some(condvar) = inner.waiters.turns.get_mut(turn).map(Thread::condvar) else { return inner };
    let mut inner = inner.sleep(&condvar, NAP_MAX);
    inner.waiters.set_presence(turn, Presence::Here);
    inner
}

/// Has what is pending run: claims by a thread that waits for them, and by the pool what no thread here will run.
/// The present thread does no I/O.
pub(crate) fn dispatch(site: &Arc<Site>, threads: &mut Threads) {
    threads.wake_for_claims();
    if !threads.attended && threads.has_unclaimed() {
        // Without a thread it stays until the station gets its next input; the ttl bounds what that can cost.
        threads.attended = site.context().driver.pool.submit(PoolWork::Site(Arc::clone(site)));
    }
}

/// Runs an action on the present thread, which may be that of a turn.
fn run<'a>(site: &'a Arc<Site>, mut inner: Locked<'a>, turn: Option<TurnId>, action: Action) -> Locked<'a> {
    let id = action.id;
    turn.into_iter().for_each(|turn| inner.waiters.set_presence(turn, Presence::Busy));
    inner.waiters.running.push((id, action.within));
    dispatch(site, &mut inner.waiters);
    drop(inner);
    let reply = site.context().driver.ask(action);
    let mut inner = site.lock();
    inner.waiters.running.retain(|(other, _)| *other != id);
    turn.into_iter().for_each(|turn| inner.waiters.set_presence(turn, Presence::Here));
    site.feed(&mut inner, reply);
    dispatch(site, &mut inner.waiters);
    if inner.waiters.settling > 0 {
        inner.waiters.quiet.notify_all();
    }
    inner
}

/// Runs one action that no thread of a user will run. Returns whether there is another one.
pub(crate) fn run_one(site: &Arc<Site>) -> bool {
    let mut inner = site.lock();
    let action = inner.waiters.take_unclaimed();
    inner.waiters.attended = action.is_some();
    let Some(action) = action else { return false };
    let mut inner = run(site, inner, None, action);
    inner.waiters.attended = inner.waiters.has_unclaimed();
    inner.waiters.attended
}
