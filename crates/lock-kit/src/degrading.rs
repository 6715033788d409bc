//! The policy of locks that degrade to one of this process: the condition, and the knowledge of their guards.

use std::ops::Deref;
use std::time::Duration;

use lock_core::{
    AcquireError, BackendError, FencingToken, Holder, Invalid, LeaseId, LockName, Lost, Moment, OnUnavailable,
    to_the_millisecond,
};
use lock_host::{CancelToken, Member, Proof, Setting};

use crate::process_lock::LocalWaiter;

/// A change of the options of such a lock, which cannot also wait for its store.
pub(crate) fn checked(mut setting: Setting) -> Setting {
    if let Setting::Options(options) = &mut setting
        && options.on_unavailable == OnUnavailable::Wait
    {
        let (problem, remedy) = ("a degrading lock continues without its store", "leave it out, or use a mutex");
        options.refuse(Invalid::new("on_unavailable", "wait", problem, remedy));
    }
    setting
}

/// One call that asks for such a lock.
#[derive(Debug)]
pub(crate) struct DegradingCall {
    lock: Member,
    since: Moment,
}

impl DegradingCall {
    /// Its wait begins now.
    pub(crate) fn new(lock: Member) -> Self {
        let since = lock.clock.now();
        Self { lock, since }
    }

    /// Joins the queue of this process, whose first waiter may ask the store.
    pub(crate) fn join(&self) -> LocalWaiter {
        LocalWaiter::join(&self.lock)
    }

    /// The outcome of a try at the store; `None` if the lock is held. If the store is unreachable, all users of such locks of the client
    /// rely on that for a while.
    ///
    /// # Errors
    /// All errors other than an unreachable store.
    pub(crate) fn tried<G>(
        &self,
        answer: Result<Option<G>, AcquireError>,
    ) -> Result<Option<Result<G, BackendError>>, AcquireError> {
        match answer {
            Ok(guard) => {
                self.lock.lasting.end();
                Ok(guard.map(Ok))
            }
            Err(error) => {
                let error = self.away(error)?;
                self.lock.lasting.found(self.lock.clock.now(), &error);
                Ok(Some(Err(error)))
            }
        }
    }

    /// The error that a caller of the client got a moment ago, if the store was unreachable. Otherwise this call is to ask.
    pub(crate) fn known_away(&self) -> Option<BackendError> {
        self.lock.lasting.believed(self.lock.clock.now())
    }

    /// The error of a wait that timed out behind earlier callers of this process. `None` if the store has to be asked: nobody is known to
    /// hold the lock, and the store is not known to be unreachable.
    pub(crate) fn timed_out_in_queue(&self, waiter: &LocalWaiter) -> Option<AcquireError> {
        match self.lock.lasting.known(self.lock.clock.now()) {
            Some(error) => Some(error.into()),
            None => waiter.is_held().then(|| self.timed_out(None)),
        }
    }

    /// How much is left of the wait; `None` if it has no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.lock.wait.map(|wait| wait.saturating_sub(self.waited()))
    }

    pub(crate) fn waited(&self) -> Duration {
        self.lock.clock.now().since(self.since)
    }

    /// The token that ends the wait early.
    pub(crate) fn cancel(&self) -> Option<&CancelToken> {
        self.lock.cancel.as_ref()
    }

    /// The error of a wait that timed out.
    pub(crate) fn timed_out(&self, holder: Option<Holder>) -> AcquireError {
        AcquireError::TimedOut { name: self.lock.name.clone(), waited: to_the_millisecond(self.waited()), holder }
    }

    /// The error of an unreachable store.
    ///
    /// # Errors
    /// Any other error.
    pub(crate) fn away(&self, error: AcquireError) -> Result<BackendError, AcquireError> {
        match error {
            AcquireError::Backend(error) if error.kind().is_transient() => Ok(error),
            // The store has answered, and was not asked for all of the wait.
            AcquireError::TimedOut { holder, .. } => {
                self.lock.lasting.end();
                Err(self.timed_out(holder))
            }
            AcquireError::Backend(_)
            | AcquireError::Invalid(_)
            | AcquireError::Forgotten { .. }
            | AcquireError::TicketOver { .. }
            | AcquireError::Closed
            | AcquireError::Cancelled
            | _ => Err(error),
        }
    }

    /// The hold of a call after this outcome. `report` notifies observers of a lock of this process.
    pub(crate) fn held<G>(
        &self,
        outcome: Result<G, BackendError>,
        report: impl FnOnce(Duration, &BackendError),
    ) -> Scoped<G> {
        match outcome {
            Ok(guard) => Scoped::of(guard),
            Err(error) => {
                report(self.waited(), &error);
                Scoped(Holding::InProcess { name: self.lock.name.clone(), error })
            }
        }
    }
}

/// The scope in which a guard excludes others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All users of the lock at its store.
    Store,
    /// Only callers of `degrading` in this process: the store was unreachable. Other processes may hold the lock at
    /// the same time.
    Process,
}

/// The hold of a degrading lock: at its store, or of this process. Its guards deref to it.
#[derive(Debug)]
pub struct Scoped<G>(Holding<G>);

#[derive(Debug)]
enum Holding<G> {
    AtStore(G),
    InProcess { name: LockName, error: BackendError },
}

impl<G> Scoped<G> {
    pub(crate) fn of(guard: G) -> Self {
        Self(Holding::AtStore(guard))
    }

    /// The scope of this guard. It does not change: a guard of this process keeps its scope when the store is back.
    pub fn scope(&self) -> Scope {
        match self.0 {
            Holding::AtStore(_) => Scope::Store,
            Holding::InProcess { .. } => Scope::Process,
        }
    }

    /// The guard of the lock at the store, with all its methods. `None` if the store was unreachable.
    pub fn at_store(&self) -> Option<&G> {
        match &self.0 {
            Holding::AtStore(guard) => Some(guard),
            Holding::InProcess { .. } => None,
        }
    }

    /// The error of the store, if it was unreachable. It may be the result of another caller of the client, for another lock.
    pub fn error(&self) -> Option<&BackendError> {
        match &self.0 {
            Holding::AtStore(_) => None,
            Holding::InProcess { error, .. } => Some(error),
        }
    }

    pub(crate) fn into_guard(self) -> Option<G> {
        match self.0 {
            Holding::AtStore(guard) => Some(guard),
            Holding::InProcess { .. } => None,
        }
    }
}

impl<G: Deref<Target = Proof>> Scoped<G> {
    /// The name of the lock.
    pub fn name(&self) -> &LockName {
        match &self.0 {
            Holding::AtStore(guard) => guard.name(),
            Holding::InProcess { name, .. } => name,
        }
    }

    /// The number that the protected resource checks. `None` if the store was unreachable: this process cannot know a number that is
    /// higher than those of other processes.
    pub fn fencing_token(&self) -> Option<FencingToken> {
        self.at_store().map(|guard| guard.fencing_token())
    }

    /// A value that no other holder has, as [`Proof::lease_id`]. `None` if the store was unreachable.
    pub fn lease_id(&self) -> Option<LeaseId> {
        self.at_store().map(|guard| guard.lease_id())
    }

    /// How much longer the hold is sure to last without a renewal; zero once it is lost. `None` for a guard of this process, which
    /// lasts until it is released.
    pub fn remaining(&self) -> Option<Duration> {
        self.at_store().map(|guard| guard.remaining())
    }

    /// Whether the lock is still held, within its [`scope`](Self::scope). Local and cheap. A guard of this process is not lost.
    ///
    /// # Errors
    /// `Lost`, with the reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.at_store().map_or(Ok(()), |guard| guard.check())
    }
}
