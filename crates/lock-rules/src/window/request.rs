//! A request: load, decide, commit, and again after a conflict.

use std::fmt;

use lock_core::inspect::Revoked;
use lock_core::limit::{self, Act, Usage};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Fenced, FencingToken, Lease, LockName, Note, ReleaseRequest, Released,
    Renewed,
};

use super::decision::{Decision, Missing, Presence};
use super::{Committed, Needs, Step, Window, WindowStore};
use crate::poll::{self, Polled, Waiter};
use crate::position::COUNTED_MAX;
use crate::refusal::Undone;

/// A request to a lock of a store behind a network.
pub struct Request<'a, S: WindowStore, T> {
    needs: Needs,
    presence: Presence,
    decide: Decide<'a, S, T>,
    /// The answer once the commit is made; `None` if it only removes expired leases.
    answer: Option<Result<T, BackendError>>,
}

type Decide<'a, S, T> = Box<dyn Fn(&mut Decision<S>) -> Result<T, Undone<Missing>> + Send + Sync + 'a>;

impl<'a, S: WindowStore, T> Request<'a, S, T> {
    fn new(
        needs: Needs,
        presence: Presence,
        decide: impl Fn(&mut Decision<S>) -> Result<T, Undone<Missing>> + Send + Sync + 'a,
    ) -> Self {
        Self { needs, presence, decide: Box::new(decide), answer: None }
    }

    /// The needs of the first step.
    pub fn needs(&self) -> &Needs {
        &self.needs
    }

    /// The first step.
    pub fn begin(&self) -> Step<S::Client, T> {
        Step::Load(self.needs.clone())
    }

    /// The step after a load.
    pub fn loaded(&mut self, window: Window<S::Client>) -> Step<S::Client, T> {
        if let Some(sweep) = window.sweep() {
            return Step::Commit(sweep);
        }
        let mut decision = Decision::new(window, self.presence);
        let answer = match (self.decide)(&mut decision) {
            Ok(answer) => Ok(answer),
            Err(Undone::Refused(refusal)) => Err(refusal),
            Err(Undone::Failed(Missing(wider))) => {
                self.needs = wider;
                return self.begin();
            }
        };
        match decision.commit() {
            Some(commit) => {
                self.answer = Some(answer);
                Step::Commit(commit)
            }
            None => Step::Done(answer),
        }
    }

    /// The step after a commit.
    pub fn committed(&mut self, committed: Committed) -> Step<S::Client, T> {
        match (committed, self.answer.take()) {
            (Committed::Written, Some(answer)) => Step::Done(answer),
            (Committed::Written, None) | (Committed::Conflict, _) => self.begin(),
        }
    }
}

impl<S: WindowStore, T> fmt::Debug for Request<'_, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").field("needs", &self.needs).finish_non_exhaustive()
    }
}

/// As [`acquire`](crate::acquire) has it.
pub fn acquire<S: WindowStore>(client: S::Client, claim: &Claim) -> Request<'_, S, Answer>
where
    S::Client: Send + Sync + 'static,
{
    let decide = move |rows: &mut Decision<S>| crate::acquire(rows, client.clone(), claim);
    Request::new(Needs::of_claim(claim), Presence::Unsure, decide)
}

/// As [`renew`](crate::renew) has it, for one lease.
pub fn renew<S: WindowStore>(lease: &Lease) -> Request<'_, S, Renewed> {
    Request::new(Needs::of_lease(lease), Presence::Known, |rows| Ok(crate::renew(rows, lease)?))
}

/// As [`release`](crate::release) has it.
pub fn release<S: WindowStore>(request: &ReleaseRequest) -> Request<'_, S, Released> {
    let presence = match request.certainty {
        Certainty::Answered => Presence::Known,
        Certainty::Unknown => Presence::Unsure,
    };
    Request::new(Needs::of_release(request), presence, |rows| crate::release(rows, request))
}

/// As [`fence`](crate::fence) has it.
pub fn fence<S: WindowStore>(lease: &Lease) -> Request<'_, S, Fenced> {
    Request::new(Needs::of_lease(lease), Presence::Known, |rows| Ok(crate::fence(rows, lease)?))
}

/// As [`limit`](crate::limit) has it.
pub fn limit<S: WindowStore>(request: &limit::Request) -> Request<'_, S, Usage> {
    let above = match request.act {
        Act::Look => None,
        Act::Set(limit) => Some(limit.get()),
    };
    let needs = Needs { above, places: 2, ..Needs::default() };
    Request::new(needs, Presence::Known, |rows| crate::limit(rows, request))
}

/// As [`revoke`](crate::revoke) has it.
pub fn revoke<'a, S: WindowStore>(name: &'a LockName, token: FencingToken, by: &'a Note) -> Request<'a, S, Revoked> {
    let needs = Needs { token: Some(token), places: 2, ..Needs::default() };
    Request::new(needs, Presence::Known, move |rows| Ok(crate::revoke(rows, name, token, by)?))
}

/// As [`survey`](crate::poll::survey) has it, for waiters of this lock.
pub fn survey<'a, S: WindowStore>(name: &'a LockName, waiters: &'a [Waiter]) -> Request<'a, S, Polled> {
    let owners = waiters.iter().map(|waiter| waiter.owner).collect();
    let needs = Needs { owners, places: 1, numbers: COUNTED_MAX, ..Needs::default() };
    Request::new(needs, Presence::Known, move |rows| {
        let mut found = Polled::default();
        poll::survey(rows, name, &waiters.iter().collect::<Vec<_>>(), &mut found)?;
        Ok(found)
    })
}
