//! A store of one lock, whose every verb can be interrupted before and after it takes effect.

use std::time::Duration;

use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Certainty, Claim, Durability, Effect, ErrorKind,
    EventSink, Fenced, Holder, Isolation, Lease, Operation, Owner, ReleaseRequest, Released, Renewed, StoreEvent,
    TokenRange, Waiting,
};

use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The store. Clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Store(Arc<Mutex<Lock>>);

#[derive(Debug, Default)]
struct Lock {
    lease: Option<Lease>,
    last_token: u64,
    /// Owners whose claims may arrive after the release that undoes them.
    given_up: Vec<Owner>,
    renewals: u32,
    sink: Option<EventSink>,
}

impl Store {
    /// Who holds the lock.
    pub fn holder(&self) -> Option<Owner> {
        self.lock().lease.as_ref().map(|lease| lease.owner)
    }

    /// How many leases were renewed so far.
    pub fn renewals(&self) -> u32 {
        self.lock().renewals
    }

    /// Forgets the lease, as if it had been revoked.
    pub fn revoke(&self) {
        self.lock().lease = None;
    }

    fn lock(&self) -> MutexGuard<'_, Lock> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn holds(&self, owner: Owner) -> bool {
        self.holder() == Some(owner)
    }
}

impl Backend for Store {
    fn capabilities(&self) -> Capabilities {
        Capabilities::new("store", Waiting::Poll, Durability::Process).with_isolation(Isolation::Isolated)
    }

    fn listen(&self, sink: EventSink) {
        self.lock().sink = Some(sink);
    }
}

impl BlockingBackend for Store {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        self
    }

    fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
        let mut lock = self.lock();
        if lock.given_up.contains(&claim.owner) {
            return Err(refused("this claim was given up"));
        }
        if let Some(lease) = lock.lease.as_ref().filter(|lease| lease.owner != claim.owner) {
            let holder = Holder::Leasehold { tokens: lease.tokens, note: claim.note.clone() };
            return Ok(Answer::Busy { remaining: None, holder, drawn: None });
        }
        let tokens =
            TokenRange::above(lock.last_token, claim.width).map_err(|invalid| refused(&invalid.to_string()))?;
        lock.last_token = tokens.high().get();
        let lease = claim.lease(tokens);
        lock.lease = Some(lease.clone());
        Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false })
    }

    fn renew(&self, leases: &[Lease], _within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let mut lock = self.lock();
        lock.renewals += u32::try_from(leases.len()).unwrap_or(u32::MAX);
        let renew = |lease: &Lease| match &lock.lease {
            Some(held) if held.owner == lease.owner => {
                Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false }
            }
            Some(_) | None => Renewed::NotHeld,
        };
        Ok(leases.iter().map(renew).collect())
    }

    fn release(&self, request: &ReleaseRequest, _within: Duration) -> Result<Released, BackendError> {
        let mut lock = self.lock();
        if request.certainty == Certainty::Unknown {
            lock.given_up.push(request.owner);
        }
        let lease = lock.lease.take_if(|lease| lease.owner == request.owner);
        let freed = lease.is_some().then(|| lock.sink.clone()).flatten();
        drop(lock);
        if let Some(sink) = freed {
            sink.deliver(StoreEvent::Freed { name: request.name.clone() });
        }
        Ok(if lease.is_some() { Released::Released } else { Released::NotHeld })
    }

    fn fence(&self, lease: &Lease, _within: Duration) -> Result<Fenced, BackendError> {
        Ok(if self.holds(lease.owner) { Fenced::Acknowledged } else { Fenced::NotHeld })
    }
}

fn refused(why: &str) -> BackendError {
    BackendError::new("store", Operation::Acquire, ErrorKind::Protocol, Effect::None, why)
}
