//! The verbs of an async or a blocking backend, and the claims that cases make.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{Act, LatchState, Request, Watching};
use lock_core::limit::{self, Usage};
use lock_core::{
    Ability, Answer, AsyncBackend, BackendError, BlockingBackend, Capabilities, Certainty, Claim, Effect, EventSink,
    Fairness, Fenced, FencingToken, Holder, Lease, Limit, LockName, Mode, NameKind, Note, Queueing, ReleaseRequest,
    Released, Renewed, Terms, Ttl, Width,
};
use lock_host::Bridged;

use crate::asks::{Ask, Said, all, said};

/// A ttl that no case outlasts.
pub(crate) const LONG: Duration = Duration::from_secs(30);
/// A ttl that cases wait for.
pub(crate) const BRIEF: Duration = Duration::from_millis(1500);
/// A ttl that cases wait for, and that other requests must come within.
pub(crate) const AMPLE: Duration = Duration::from_millis(4500);
/// How long a request may take if that does not matter.
const WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn lock_name(name: &str) -> LockName {
    name.parse().unwrap()
}

/// Who revokes leases.
pub(crate) fn operator() -> Note {
    Note::new("console", 1, "it hangs").unwrap()
}

/// A claim with a new owner and a long ttl that wants no place.
pub(crate) fn claim(name: &str) -> Claim {
    Claim {
        name: lock_name(name),
        owner: lock_host::new_owner().unwrap(),
        terms: Terms::exclusive(Ttl::new(LONG).unwrap()),
        width: Width::ONE,
        floor: None,
        note: lock_host::note("conformance").unwrap(),
        queueing: Queueing::Unwanted,
        replaces: None,
        fairness: Fairness::Fair,
        kind: NameKind::Lock,
    }
}

/// A claim that wants a place.
pub(crate) fn waiting_claim(name: &str) -> Claim {
    Claim { queueing: Queueing::Wanted, ..claim(name) }
}

/// The same claim for another ttl.
pub(crate) fn lasting(ttl: Duration, claim: Claim) -> Claim {
    Claim { terms: Terms { ttl: Ttl::new(ttl).unwrap(), ..claim.terms }, ..claim }
}

/// The same claim in another mode, for a read-write lock or a semaphore.
pub(crate) fn in_mode(mode: Mode, claim: Claim) -> Claim {
    let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
    let kind = if mode.limit().is_some() { NameKind::Semaphore } else { NameKind::ReadWriteLock };
    Claim { terms: Terms { mode, ..claim.terms }, width, kind, ..claim }
}

/// A claim of another owner to replace what this one was granted, for a longer ttl.
pub(crate) fn replacing(old: &Claim) -> Claim {
    let new = lasting(LONG * 2, claim(old.name.as_str()));
    Claim { replaces: Some(old.owner), ..new }
}

/// A client of the store, whose requests must succeed unless they begin with `try`. Clones share the backend.
#[derive(Clone, Debug)]
pub struct Verbs {
    backend: Arc<dyn BlockingBackend>,
    /// The same backend, if it takes several requests of one task at the same time.
    at_once: Option<Arc<Bridged<dyn AsyncBackend>>>,
    within: Duration,
}

/// The answer to a claim that is refused or queued.
#[derive(Debug)]
pub(crate) struct PutOff {
    pub(crate) remaining: Option<Duration>,
    pub(crate) holder: Holder,
}

impl Verbs {
    pub(crate) fn of_blocking(backend: Arc<dyn BlockingBackend>) -> Self {
        Self { backend, at_once: None, within: WITHIN }
    }

    pub(crate) fn of_nonblocking(backend: Bridged<dyn AsyncBackend>) -> Self {
        let both = Arc::new(backend);
        Self { at_once: Some(Arc::clone(&both)), ..Self::of_blocking(both) }
    }

    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }

    pub(crate) fn can_inspect(&self) -> bool {
        self.capabilities().check_ability(Ability::Inspect).is_ok()
    }

    /// Runs a request with its time limit.
    pub(crate) fn run<T>(&self, request: impl FnOnce(&dyn BlockingBackend, Duration) -> T) -> T {
        request(&*self.backend, self.within)
    }

    pub(crate) fn try_acquire(&self, claim: &Claim) -> Result<Answer, BackendError> {
        self.backend.acquire(claim, self.within)
    }

    /// Waits for what earlier requests left in the background, such as the release at the slowest node of a quorum.
    pub(crate) fn flush(&self) {
        self.backend.flush(self.within);
    }

    pub(crate) fn try_renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        self.backend.renew(leases, self.within)
    }

    pub(crate) fn try_release(&self, claim: &Claim, certainty: Certainty) -> Result<Released, BackendError> {
        self.backend.release(&claim.release(certainty), self.within)
    }

    pub(crate) fn try_fence(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        self.backend.fence(lease, self.within)
    }

    pub(crate) fn try_holder(&self, name: &str) -> Result<Option<Entry>, BackendError> {
        self.backend.holder(&lock_name(name), self.within)
    }

    /// Acquires; the lock must be granted.
    #[track_caller]
    pub(crate) fn take(&self, claim: &Claim) -> Lease {
        self.granted(claim).0
    }

    /// Acquires; the lock must be granted. Also returns for how long.
    #[track_caller]
    pub(crate) fn granted(&self, claim: &Claim) -> (Lease, Duration) {
        match self.try_acquire(claim).unwrap() {
            Answer::Granted { lease, valid_for, .. } => {
                assert_eq!((&lease.name, lease.owner), (&claim.name, claim.owner), "a grant for somebody else");
                (lease, valid_for)
            }
            other @ (Answer::Queued { .. } | Answer::Busy { .. }) => panic!("not granted: {other:?}"),
        }
    }

    /// Asks; whatever the answer, it must not be a grant.
    #[track_caller]
    pub(crate) fn denied(&self, claim: &Claim) {
        match self.try_acquire(claim) {
            Ok(granted @ Answer::Granted { .. }) => panic!("granted: {granted:?}"),
            Ok(Answer::Queued { .. } | Answer::Busy { .. }) => {}
            Err(error) => assert_eq!(error.effect(), Effect::None, "{error}"),
        }
    }

    /// Asks; the answer must be that the lock is held, without a place.
    #[track_caller]
    pub(crate) fn refused(&self, claim: &Claim) -> PutOff {
        match self.try_acquire(claim).unwrap() {
            Answer::Busy { remaining, holder, .. } => PutOff { remaining, holder },
            other @ (Answer::Queued { .. } | Answer::Granted { .. }) => panic!("not refused: {other:?}"),
        }
    }

    /// Asks; the answer must be a place.
    #[track_caller]
    pub(crate) fn queued(&self, claim: &Claim) -> u32 {
        match self.try_acquire(claim).unwrap() {
            Answer::Queued { position, .. } => position,
            other @ (Answer::Busy { .. } | Answer::Granted { .. }) => panic!("not queued: {other:?}"),
        }
    }

    #[track_caller]
    pub(crate) fn renew(&self, lease: &Lease) -> Renewed {
        let answers = self.try_renew(std::slice::from_ref(lease)).unwrap();
        assert_eq!(answers.len(), 1, "a request for one lease got other answers than one");
        answers[0].clone()
    }

    #[track_caller]
    pub(crate) fn release(&self, claim: &Claim) -> Released {
        self.try_release(claim, Certainty::Answered).unwrap()
    }

    /// Makes all requests in this order before it waits for the first answer. `None` if the backend is a blocking one,
    /// whose requests come from different threads if they are in flight together.
    pub(crate) fn at_once(&self, asks: &[Ask<'_>]) -> Option<Vec<Said>> {
        let bridged = self.at_once.as_ref()?;
        let said = asks.iter().map(|ask| said(&**bridged.inner(), *ask, self.within));
        Some(bridged.bridge().block_on(all(said.collect())))
    }

    /// Releases a lock that is to become free only after this time.
    #[track_caller]
    pub(crate) fn keep(&self, claim: &Claim, keep: Duration) -> Released {
        let request = ReleaseRequest { keep: Some(keep), ..claim.release(Certainty::Answered) };
        self.backend.release(&request, self.within).unwrap()
    }

    /// Releases while a claim may still be in flight.
    #[track_caller]
    pub(crate) fn abandon(&self, claim: &Claim) -> Released {
        self.try_release(claim, Certainty::Unknown).unwrap()
    }

    #[track_caller]
    pub(crate) fn fence(&self, lease: &Lease) -> Fenced {
        self.try_fence(lease).unwrap()
    }

    #[track_caller]
    pub(crate) fn holder(&self, name: &str) -> Option<Entry> {
        self.try_holder(name).unwrap()
    }

    #[track_caller]
    pub(crate) fn list(&self, query: &Query) -> Page {
        self.backend.list(query, self.within).unwrap()
    }

    #[track_caller]
    pub(crate) fn revoke(&self, name: &str, token: FencingToken) -> Revoked {
        self.backend.revoke(&lock_name(name), token, &operator(), self.within).unwrap()
    }

    #[track_caller]
    pub(crate) fn revoked_by(&self, lease: &Lease) -> Option<Note> {
        self.backend.revoked_by(&lease.name, lease.tokens.high(), self.within).unwrap()
    }

    /// A request about the latch "a".
    #[track_caller]
    pub(crate) fn latch(&self, act: Act) -> Option<LatchState> {
        let request = Request { name: lock_name("a"), act };
        self.backend.latch(&request, self.within).unwrap().state
    }

    /// A request about the limit of the semaphore "a".
    pub(crate) fn limit(&self, known: u32, act: limit::Act) -> Result<Usage, BackendError> {
        let request = limit::Request { name: lock_name("a"), known: Limit::new(known).unwrap(), act };
        self.backend.limit(&request, self.within)
    }

    /// The latch "a".
    #[track_caller]
    pub(crate) fn look(&self) -> Option<LatchState> {
        self.latch(Act::Look { watching: Watching::Unwanted })
    }
}
