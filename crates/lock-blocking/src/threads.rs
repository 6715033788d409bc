//! The threads that wait or hold at a site, and which of them runs what.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lock_core::station::{Action, ActionId, Request, TurnId};
use lock_core::{BackendError, Hold, LossReason, Owner, Refusal, Released};
use lock_host::Waiters;

use crate::sync::{Arc, Condvar};

/// The station's answer to a waiter.
pub(crate) type Verdict = Result<Arc<Hold>, Refusal>;

/// The store's answer to the end of a turn; `None` if its hold had already been lost.
pub(crate) type End = Option<Result<Released, BackendError>>;

/// The threads that wait or hold at a site, and what is to be run there.
#[derive(Default)]
pub(crate) struct Threads {
    pub(crate) by_turn: BTreeMap<TurnId, Box<Thread>>,
    /// The owner of the last claim, until it admits a waiter or no waiter is left.
    asked: Option<Owner>,
    /// Actions that no thread runs yet.
    pub(crate) pending: VecDeque<Action>,
    /// Actions that are being run, and how long each may take.
    pub(crate) running: Vec<(ActionId, Duration)>,
    /// Whether the pool knows that it has something to run here.
    pub(crate) attended: bool,
    /// How many threads wait until something has been run.
    pub(crate) settling: usize,
    /// Where those threads are notified.
    pub(crate) quiet: Arc<Condvar>,
}

/// A thread that waits or holds.
#[derive(Default)]
pub(crate) struct Thread {
    pub(crate) verdict: Option<Verdict>,
    pub(crate) ended: Option<End>,
    /// `None` until a thread sleeps here. Most threads never do, and notifying costs a system call even if none sleeps.
    bell: Option<Arc<Condvar>>,
    pub(crate) presence: Presence,
    part: Part,
}

/// The part that a thread plays for the lock.
#[derive(Default)]
enum Part {
    /// It waits for its turn.
    #[default]
    Waits,
    /// It holds or held, and its guard knows this.
    Holds(Arc<Hold>),
    /// It was refused, and releases what the last claim for which it waited has left at the store.
    Refused(Option<Owner>),
}

/// Where a thread is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Presence {
    /// With its user.
    #[default]
    Away,
    /// At the site, looking for something to run or running it.
    Here,
    /// At the site, asleep until it is woken.
    Asleep,
}

impl Thread {
    /// Whether this thread will run a request. A waiter runs the claims that it waits for, and each thread its own
    /// release; what others leave behind must not delay it.
    fn runs(&self, request: &Request) -> bool {
        let own = match (&self.part, request) {
            (Part::Waits, Request::Acquire(_)) => true,
            (Part::Holds(hold), Request::Release(request)) => hold.lease().owner == request.owner,
            (Part::Holds(hold), Request::Acquire(claim)) => claim.replaces == Some(hold.lease().owner),
            (Part::Refused(owner), Request::Release(request)) => *owner == Some(request.owner),
            (Part::Waits, Request::Release(_)) | (Part::Refused(_), Request::Acquire(_)) => false,
        };
        own && self.presence != Presence::Away
    }

    /// Where this thread sleeps, and the threads that wait for the end of its hold.
    pub(crate) fn bell(&mut self) -> Arc<Condvar> {
        Arc::clone(self.bell.get_or_insert_default())
    }

    fn ring(&self) {
        if let Some(bell) = &self.bell {
            bell.notify_all();
        }
    }

    fn hold(&self) -> Option<&Arc<Hold>> {
        match &self.part {
            Part::Holds(hold) => Some(hold),
            Part::Waits | Part::Refused(_) => None,
        }
    }
}

impl Threads {
    /// A thread begins to wait.
    pub(crate) fn begin(&mut self, turn: TurnId) {
        self.by_turn.insert(turn, Box::new(Thread { presence: Presence::Here, ..Thread::default() }));
    }

    /// A thread holds without having waited.
    pub(crate) fn hold(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.by_turn.insert(turn, Box::new(Thread { part: Part::Holds(hold), ..Thread::default() }));
    }

    /// Something is to be run.
    pub(crate) fn push(&mut self, action: Action) {
        if let Request::Acquire(claim) = &action.request {
            self.asked = Some(claim.owner);
        }
        self.pending.push_back(action);
    }

    /// The thread of a turn.
    pub(crate) fn get_mut(&mut self, turn: TurnId) -> Option<&mut Thread> {
        self.by_turn.get_mut(&turn).map(|thread| &mut **thread)
    }

    /// Notes where the thread of a turn is.
    pub(crate) fn be(&mut self, turn: TurnId, presence: Presence) {
        self.by_turn.entry(turn).and_modify(|thread| thread.presence = presence);
    }

    /// What the thread of a turn runs now.
    pub(crate) fn take_own(&mut self, turn: TurnId) -> Option<Action> {
        self.take(|threads, action| threads.by_turn.get(&turn).is_some_and(|thread| thread.runs(&action.request)))
    }

    /// The next action that no thread here will run.
    pub(crate) fn take_left(&mut self) -> Option<Action> {
        self.take(Self::is_left)
    }

    fn take(&mut self, which: impl Fn(&Self, &Action) -> bool) -> Option<Action> {
        let index = self.pending.iter().position(|action| which(self, action))?;
        self.pending.remove(index)
    }

    /// Whether no thread here will run an action.
    fn is_left(&self, action: &Action) -> bool {
        !self.by_turn.values().any(|thread| thread.runs(&action.request))
    }

    /// Whether there is something that no thread here will run.
    pub(crate) fn has_left(&self) -> bool {
        self.pending.iter().any(|action| self.is_left(action))
    }

    /// The actions that are pending or being run, and how long each may take.
    pub(crate) fn actions(&self) -> impl Iterator<Item = (ActionId, Duration)> {
        self.pending.iter().map(|action| (action.id, action.within)).chain(self.running.iter().copied())
    }

    /// Wakes a thread that will run a pending claim, unless all such threads are awake.
    pub(crate) fn wake_for_claims(&mut self) {
        let claims = self.pending.iter().map(|action| &action.request);
        let claims = claims.filter(|request| matches!(request, Request::Acquire(_)));
        let sleeps = |thread: &&mut Box<Thread>| {
            thread.presence == Presence::Asleep && claims.clone().any(|claim| thread.runs(claim))
        };
        if let Some(thread) = self.by_turn.values_mut().find(sleeps) {
            thread.presence = Presence::Here;
            thread.ring();
        }
    }

    fn tell(&mut self, turn: TurnId, what: impl FnOnce(&mut Thread)) {
        if let Some(thread) = self.get_mut(turn) {
            what(thread);
            thread.ring();
        }
    }
}

impl Waiters for Threads {
    fn admit(&mut self, turn: TurnId, hold: Arc<Hold>) {
        self.asked = None;
        self.tell(turn, |thread| {
            thread.part = Part::Holds(Arc::clone(&hold));
            thread.verdict = Some(Ok(hold));
        });
    }

    fn refuse(&mut self, turn: TurnId, refusal: Refusal) {
        let asked = self.asked;
        self.tell(turn, |thread| {
            thread.part = Part::Refused(asked);
            thread.verdict.get_or_insert(Err(refusal));
        });
        if !self.by_turn.values().any(|thread| matches!(thread.part, Part::Waits)) {
            self.asked = None;
        }
    }

    fn replaced(&mut self, turn: TurnId, result: Verdict) {
        self.tell(turn, |thread| {
            if let Ok(hold) = &result {
                thread.part = Part::Holds(Arc::clone(hold));
            }
            thread.verdict = Some(result);
        });
    }

    fn lose(&mut self, turn: TurnId, _: LossReason) {
        self.tell(turn, |thread| _ = thread.ended.get_or_insert(None));
    }

    fn end(&mut self, turn: TurnId, result: Result<Released, BackendError>) {
        self.tell(turn, |thread| thread.ended = Some(Some(result)));
    }

    fn forget(&mut self, turn: TurnId) {
        self.by_turn.remove(&turn).into_iter().for_each(|thread| thread.ring());
    }

    fn turns(&self) -> Vec<(TurnId, Option<Arc<Hold>>)> {
        self.by_turn.iter().map(|(turn, thread)| (*turn, thread.hold().cloned())).collect()
    }

    fn is_empty(&self) -> bool {
        self.by_turn.is_empty()
    }
}
