//! A lock store in vectors. `lock-rules` decides; this shows it the rows of one lock, and writes its changes. It has all kinds of locks,
//! and neither pushes nor shows operators its locks.
//!
//! `rows` (a lock) · `latches` (a latch, which is no lock) · this file (the requests).

mod latches;
mod rows;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lock_core::latch::Seen;
use lock_core::limit::Usage;
use lock_core::{
    Ability, Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, Durability, EventSink, Fenced, Lease,
    LockName, ModeKind, ReleaseRequest, Released, Renewed, RequestOrder, Waiting, latch, limit,
};
use lock_host::SharedClock;
use lock_rules::Undone;

use crate::latches::Latches;
use crate::rows::{BACKEND, Lock, LockRows};

/// A store in this process. Clones are clients of the same store. A waiter learns that it is served when it asks again.
#[derive(Clone)]
pub struct Vectors {
    clock: SharedClock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    last_token: u64,
    locks: HashMap<LockName, Lock>,
    latches: Latches,
}

impl Vectors {
    /// An empty store.
    pub fn new(clock: SharedClock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// Runs a request on the rows of a lock. Nothing else happens to the store meanwhile.
    fn visit<T>(&self, name: &LockName, request: impl FnOnce(&mut LockRows<'_>) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        let State { last_token, locks, .. } = &mut *state;
        let lock = locks.entry(name.clone()).or_default();
        lock.forget_expired(now);
        let answer = request(&mut LockRows { now, lock, last_token });
        if lock.is_empty() {
            locks.remove(name);
        }
        answer
    }
}

impl Backend for Vectors {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new(BACKEND, Waiting::Queue, Durability::Process)
            .with_shared_counter()
            .with_ordering(RequestOrder::InOrder)
            .with_modes(&[ModeKind::Exclusive, ModeKind::Shared, ModeKind::Permits])
            .with_abilities(&[Ability::Keep, Ability::Replace, Ability::SetLimit, Ability::Barge, Ability::Latch])
    }

    fn listen(&self, _sink: EventSink) {}
}

impl BlockingBackend for Vectors {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        self
    }

    fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
        self.visit(&claim.name, |rows| lock_rules::acquire(rows, (), claim)).map_err(refused)
    }

    fn renew(&self, leases: &[Lease], _within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let renew = |lease: &Lease| self.visit(&lease.name, |rows| lock_rules::renew(rows, lease));
        let Ok(renewed) = leases.iter().map(renew).collect();
        Ok(renewed)
    }

    fn release(&self, request: &ReleaseRequest, _within: Duration) -> Result<Released, BackendError> {
        self.visit(&request.name, |rows| lock_rules::release(rows, request)).map_err(refused)
    }

    fn fence(&self, lease: &Lease, _within: Duration) -> Result<Fenced, BackendError> {
        let Ok(fenced) = self.visit(&lease.name, |rows| lock_rules::fence(rows, lease));
        Ok(fenced)
    }

    fn limit(&self, request: &limit::Request, _within: Duration) -> Result<Usage, BackendError> {
        self.visit(&request.name, |rows| lock_rules::limit(rows, request)).map_err(refused)
    }

    fn latch(&self, request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(state.latches.ask(self.clock.now(), request))
    }
}

fn refused(undone: Undone<Infallible>) -> BackendError {
    match undone {
        Undone::Refused(error) => error,
        Undone::Failed(never) => match never {},
    }
}

impl fmt::Debug for Vectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vectors").finish_non_exhaustive()
    }
}
