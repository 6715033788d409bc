//! A facade for tests: it writes down what it is told, and runs nothing.

use std::collections::HashMap;
use std::time::Duration;

use lock_core::station::{Action, ActionId, Input, Join, Leaving, Reply, Request, TurnId};
use lock_core::{
    Answer, BackendError, Capabilities, Claim, Fairness, FencingToken, Hold, Lease, LossReason, Moment, Note,
    OnUnavailable, Owner, Patience, Policy, Refusal, ReleaseRequest, Released, Terms, TokenRange, Ttl,
};

use crate::clock::SharedClock;
use crate::observer::SharedObserver;
use crate::ports::Ports;
use crate::site::{Driver, Site};
use crate::stations::Stations;
use crate::sync::{Arc, Mutex};
use crate::waiters::Waiters;

#[derive(Default)]
pub(crate) struct Recorder {
    pub(crate) released: Mutex<Vec<Owner>>,
}

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) here: HashMap<TurnId, Option<Arc<Hold>>>,
    pub(crate) actions: Vec<Action>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) lost: Vec<LossReason>,
    pub(crate) attended: usize,
    /// How often a refusal panics.
    pub(crate) panics: usize,
}

impl Driver for Recorder {
    type Waiters = Recorded;

    fn run(_: &Site<Self>, waiters: &mut Recorded, action: Action) {
        waiters.actions.push(action);
    }

    fn attend(_: &Site<Self>, waiters: &mut Recorded) {
        waiters.attended += 1;
    }

    fn leave(site: &Site<Self>, turn: TurnId) {
        let mut inner = site.lock();
        if inner.leave_at_once(turn) {
            return;
        }
        inner.waiters.here.remove(&turn);
        site.feed(&mut inner, Input::Leave(Leaving::now(turn)));
    }

    fn release(&self, request: ReleaseRequest, _: Duration) {
        self.released.lock().unwrap().push(request.owner);
    }
}

impl Waiters for Recorded {
    fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.here.insert(turn, Some(hold));
    }

    fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        if let Some(left) = self.panics.checked_sub(1) {
            self.panics = left;
            panic!("on purpose");
        }
        self.here.remove(&turn);
        self.refused.push(refusal);
    }

    fn replaced(&mut self, turn: TurnId, result: Result<Arc<Hold>, Refusal>) {
        self.here.extend(result.ok().map(|hold| (turn, Some(hold))));
    }

    fn lose(&mut self, turn: TurnId, reason: LossReason) {
        self.here.remove(&turn);
        self.lost.push(reason);
    }

    fn end(&mut self, turn: TurnId, _: Result<Released, BackendError>) {
        self.here.remove(&turn);
    }

    fn forget(&mut self, turn: TurnId) {
        self.here.remove(&turn);
    }

    fn turns(&self) -> Vec<(TurnId, Option<Arc<Hold>>)> {
        self.here.iter().map(|(turn, hold)| (*turn, hold.clone())).collect()
    }

    fn is_empty(&self) -> bool {
        self.here.is_empty()
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
    let ports = Ports::new(Recorder::default(), Policy::new(capabilities), clock, || {}).unwrap();
    Stations::new(ports.observed_by(observers))
}

/// Somebody who waits without limit joins the line.
pub(crate) fn join(site: &Site<Recorder>, turn: u64) {
    join_with(site, turn, Patience::Forever);
}

/// Somebody who waits until then joins the line.
pub(crate) fn join_until(site: &Site<Recorder>, turn: u64, end: Moment) {
    join_with(site, turn, Patience::Until(end));
}

fn join_with(site: &Site<Recorder>, turn: u64, patience: Patience) {
    let (turn, note) = (TurnId(turn), Note::from_wire("1@test"));
    let join = Join {
        turn,
        terms: Terms::exclusive(Ttl::DEFAULT),
        patience,
        on_unavailable: OnUnavailable::Wait,
        attempts: None,
        fairness: Fairness::Fair,
        max_hold: None,
        note,
    };
    let mut inner = site.lock();
    inner.waiters.here.insert(turn, None);
    site.feed(&mut inner, Input::Join(join));
}

/// The claim that the station has made.
pub(crate) fn claim(site: &Site<Recorder>) -> (ActionId, Claim) {
    match site.lock().waiters.actions.pop() {
        Some(Action { id, request: Request::Acquire(claim), .. }) => (id, claim),
        other => panic!("no claim: {other:?}"),
    }
}

/// The store grants it.
pub(crate) fn grant(site: &Site<Recorder>, (id, claim): (ActionId, Claim), token: u64) -> Lease {
    let token = FencingToken::new(token).unwrap();
    let (tokens, valid_for) = (TokenRange::new(token, token).unwrap(), claim.terms.ttl.get());
    let lease = claim.lease(tokens);
    let answer = Answer::Granted { lease: lease.clone(), valid_for, wanted: false };
    site.handle(Input::Reply(id, Reply::Acquire(Ok(answer))));
    lease
}
