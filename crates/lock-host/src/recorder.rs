//! A facade for tests: it records its notifications, and runs nothing.

use std::cell::Cell;
use std::task::Poll;
use std::time::Duration;

use lock_core::station::{Action, ActionId, Input, Join, Reply, Request, TurnId};
use lock_core::{
    Answer, Capabilities, Claim, FencingToken, Hold, Lease, Note, Owner, Patience, Policy, Refusal, ReleaseRequest,
    TokenRange,
};

use crate::client_context::ClientContext;
use crate::clock::SharedClock;
use crate::observer::SharedObserver;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::{Arc, Mutex, PoisonError};
use crate::waiters::{Turns, Waiters};
use crate::wake_registry::Wake;

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) released: Mutex<Vec<Owner>>,
    /// The turns that were left by dropping them.
    pub(crate) left: Mutex<Vec<TurnId>>,
}

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) turns: Turns<Ear>,
    pub(crate) actions: Vec<Action>,
    pub(crate) attended: usize,
}

/// Hears of a turn.
#[derive(Default)]
pub(crate) struct Ear;

thread_local! {
    static PANICS: Cell<usize> = const { Cell::new(0) };
}

/// Has the next calls to wake somebody on this thread panic.
pub(crate) fn panic_at_wakes(count: usize) {
    PANICS.set(count);
}

impl Wake for Ear {
    fn wake(&self) {
        if let Some(left) = PANICS.get().checked_sub(1) {
            PANICS.set(left);
            panic!("on purpose");
        }
    }
}

impl Driver for Recorder {
    type Waiters = Recorded;

    fn run(_: &Arc<Site<Self>>, waiters: &mut Recorded, action: Action) {
        waiters.actions.push(action);
    }

    fn attend(_: &Arc<Site<Self>>, waiters: &mut Recorded) {
        waiters.attended += 1;
    }

    fn leave(site: &Arc<Site<Self>>, turn: TurnId) {
        site.context().driver.left.lock().unwrap_or_else(PoisonError::into_inner).push(turn);
        site.abandon(&mut site.lock(), turn);
    }

    fn release(&self, request: ReleaseRequest, _: Duration) {
        self.released.lock().unwrap().push(request.owner);
    }

    fn end_session(_: &Arc<Site<Self>>) {}
}

impl Waiters for Recorded {
    type Waiter = Ear;

    fn turns(&mut self) -> &mut Turns<Ear> {
        &mut self.turns
    }
}

pub(crate) fn stations(capabilities: Capabilities, clock: SharedClock) -> Arc<Stations<Recorder>> {
    observed(capabilities, clock, Vec::new())
}

pub(crate) fn observed(
    capabilities: Capabilities,
    clock: SharedClock,
    observers: Vec<SharedObserver>,
) -> Arc<Stations<Recorder>> {
    let context = ClientContext::new(Recorder::default(), Policy::new(capabilities), clock, || {}).unwrap();
    Stations::new(context.observed_by(observers))
}

/// Somebody who waits without limit joins the wait queue.
pub(crate) fn join(site: &Arc<Site<Recorder>>, turn: u64) {
    join_with(site, turn, Patience::Forever);
}

/// A waiter with this patience joins the wait queue.
pub(crate) fn join_with(site: &Arc<Site<Recorder>>, turn: u64, patience: Patience) {
    let turn = TurnId(turn);
    let join = Join { patience, ..Join::new(turn, Note::from_wire("1@test")) };
    let mut inner = site.lock();
    inner.waiters.turns.wait(turn);
    site.feed(&mut inner, Input::Join(join));
}

/// The claim that the station has made.
pub(crate) fn claim(site: &Arc<Site<Recorder>>) -> (ActionId, Claim) {
    match site.lock().waiters.actions.pop() {
        Some(Action { id, request: Request::Acquire(claim), .. }) => (id, claim),
        other => panic!("no claim: {other:?}"),
    }
}

/// The store grants it.
pub(crate) fn grant(site: &Arc<Site<Recorder>>, (id, claim): (ActionId, Claim), token: u64) -> Lease {
    let token = FencingToken::new(token).unwrap();
    let (tokens, valid_for) = (TokenRange::new(token, token).unwrap(), claim.terms.ttl.get());
    let lease = claim.lease(tokens);
    let answer = Answer::Granted { lease: lease.clone(), valid_for, wanted: false };
    site.handle(Input::Reply(id, Reply::Acquire(Ok(answer))));
    lease
}

/// What a turn holds.
pub(crate) fn hold(site: &Arc<Site<Recorder>>, turn: u64) -> Arc<Hold> {
    let result = site.lock().waiters.turns.poll_result(TurnId(turn));
    let Poll::Ready(Some(Ok(hold))) = result else { panic!("it was not admitted: {result:?}") };
    hold
}

/// Why a turn was refused.
pub(crate) fn refusal(site: &Arc<Site<Recorder>>, turn: u64) -> Option<Refusal> {
    match site.lock().waiters.turns.poll_result(TurnId(turn)) {
        Poll::Ready(result) => result?.err(),
        Poll::Pending => None,
    }
}
