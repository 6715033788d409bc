//! Runs actions against the backend: on the thread that asks, or on the pool if no such thread is there.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use lock_core::station::{Action, Input, Leaving, Reply, Request, TurnId};
use lock_core::{BackendError, BlockingBackend, LockName, Mode, Operation, ReleaseRequest};
use lock_host::{End, Held, NAP_MAX, Ports, Turns, Verdict, panicked};

use crate::pool::{Pool, Work};
use crate::sync::Arc;
use crate::threads::{Presence, Thread, Threads};

/// A station with the threads that wait or hold there.
pub(crate) type Site = lock_host::Site<Driver>;

/// The stations of a client.
pub(crate) type Stations = Arc<lock_host::Stations<Driver>>;

/// The contents of a locked site.
type Locked<'a> = lock_host::Locked<'a, Driver>;

/// The way to the backend, and the threads for what nobody waits for.
pub(crate) struct Driver {
    pub(crate) backend: Arc<dyn BlockingBackend>,
    pool: Pool<Left>,
}

/// What is left for the pool.
enum Left {
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
        find_hands(site, threads);
    }

    fn leave(site: &Arc<Site>, turn: TurnId) {
        end(site, Leaving::now(turn));
    }

    fn release(&self, request: ReleaseRequest, within: Duration) {
        self.pool.hand_in(Left::Release(Arc::clone(&self.backend), request, within));
    }

    fn end_session(site: &Arc<Site>) {
        site.ports().driver.pool.hand_in(Left::EndSession(Arc::clone(site)));
    }
}

impl Work for Left {
    /// Sites take turns, one action each: if the store does not answer for one lock, the others continue.
    fn run(self) -> Option<Self> {
        match self {
            Self::Site(site) => run_one(&site).then(|| Self::Site(site)),
            Self::Release(backend, request, within) => {
                _ = caught(Operation::Release, || backend.release(&request, within));
                None
            }
            Self::EndSession(site) => {
                site.end_session(&*site.ports().driver.backend);
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
/// answer, and observers hear of a failure.
pub(crate) fn ask<'a, T>(
    ports: &'a Ports<Driver>,
    name: &LockName,
    operation: Operation,
    request: impl FnOnce(&'a dyn BlockingBackend) -> Result<T, BackendError>,
) -> Result<T, BackendError> {
    let answer = caught(operation, || request(&*ports.driver.backend));
    ports.answered(name, &answer);
    answer
}

/// Waits for the verdict of a turn that has just joined the wait queue, running claims meanwhile; `None` if the turn ends first.
pub(crate) fn verdict<'a>(site: &'a Arc<Site>, turn: TurnId, joined: Locked<'a>) -> Option<Verdict> {
    let (mut inner, verdict) = work(site, joined, turn, Turns::poll_verdict);
    // A waiter that is refused releases what it has left at the store itself, because its process may end now.
    if let Some(Err(_)) = verdict
        && let Some(release) = inner.waiters.take_own(turn)
    {
        inner = run(site, inner, Some(turn), release);
    }
    go_away(site, inner, turn);
    verdict
}

/// Asks for a hold to go on in another mode, and waits for the verdict; `None` if it is lost first.
pub(crate) fn change<M>(held: &Held<Driver, M>, mode: Mode) -> Option<Verdict> {
    let (site, turn) = (held.site(), held.turn());
    let (inner, verdict) = work(site, held.change(mode), turn, Turns::poll_verdict);
    go_away(site, inner, turn);
    verdict
}

/// Ends the turn and waits until the store has answered.
pub(crate) fn end(site: &Arc<Site>, leaving: Leaving) -> End {
    let (inner, end) = work(site, site.end_turn(leaving), leaving.turn, Turns::poll_end);
    go_away(site, inner, leaving.turn);
    end
}

/// The thread of a turn goes back to its user.
fn go_away(site: &Arc<Site>, mut inner: Locked<'_>, turn: TurnId) {
    inner.waiters.be(turn, Presence::Away);
    find_hands(site, &mut inner.waiters);
}

/// Sleeps until the hold has ended, but for at most `nap`.
pub(crate) fn nap_until_ended(site: &Arc<Site>, turn: TurnId, nap: Duration) {
    let mut inner = site.lock();
    let Some(bell) = inner.waiters.turns.get_mut(turn).map(Thread::bell) else { return };
    drop(inner.sleep(&bell, nap));
}

/// Alternates between running what this thread has to run and sleeping, until its turn hears something.
fn work<'a, T>(
    site: &'a Arc<Site>,
    mut inner: Locked<'a>,
    turn: TurnId,
    hear: impl Fn(&mut Turns<Thread>, TurnId) -> Poll<T>,
) -> (Locked<'a>, T) {
    inner.waiters.be(turn, Presence::Here);
    loop {
        if let Poll::Ready(heard) = hear(&mut inner.waiters.turns, turn) {
            return (inner, heard);
        }
        inner = match inner.waiters.take_own(turn) {
            Some(action) => run(site, inner, Some(turn), action),
            None => sleep(site, inner, turn),
        };
    }
}

fn sleep<'a>(site: &'a Arc<Site>, mut inner: Locked<'a>, turn: TurnId) -> Locked<'a> {
    find_hands(site, &mut inner.waiters);
    inner.waiters.be(turn, Presence::Asleep);
    let Some(bell) = inner.waiters.turns.get_mut(turn).map(Thread::bell) else { return inner };
    let mut inner = inner.sleep(&bell, NAP_MAX);
    inner.waiters.be(turn, Presence::Here);
    inner
}

/// Has what is pending run: claims by a thread that waits for them, and by the pool what no thread here will run.
/// The present thread does no I/O.
pub(crate) fn find_hands(site: &Arc<Site>, threads: &mut Threads) {
    threads.wake_for_claims();
    if !threads.attended && threads.has_left() {
        // Without a thread it stays until the station gets its next input; the ttl bounds what that can cost.
        threads.attended = site.ports().driver.pool.hand_in(Left::Site(Arc::clone(site)));
    }
}

/// Runs an action on the present thread, which may be that of a turn.
fn run<'a>(site: &'a Arc<Site>, mut inner: Locked<'a>, turn: Option<TurnId>, action: Action) -> Locked<'a> {
    let id = action.id;
    turn.into_iter().for_each(|turn| inner.waiters.be(turn, Presence::Busy));
    inner.waiters.running.push((id, action.within));
    find_hands(site, &mut inner.waiters);
    drop(inner);
    let reply = site.ports().driver.ask(action);
    let mut inner = site.lock();
    inner.waiters.running.retain(|(other, _)| *other != id);
    turn.into_iter().for_each(|turn| inner.waiters.be(turn, Presence::Here));
    site.feed(&mut inner, reply);
    find_hands(site, &mut inner.waiters);
    if inner.waiters.settling > 0 {
        inner.waiters.quiet.notify_all();
    }
    inner
}

/// Runs one action that no thread of a user will run. Returns whether there is another one.
pub(crate) fn run_one(site: &Arc<Site>) -> bool {
    let mut inner = site.lock();
    let action = inner.waiters.take_left();
    inner.waiters.attended = action.is_some();
    let Some(action) = action else { return false };
    let mut inner = run(site, inner, None, action);
    inner.waiters.attended = inner.waiters.has_left();
    inner.waiters.attended
}
