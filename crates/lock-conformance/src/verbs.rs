//! The four verbs of an async or a blocking backend, and the claims that cases make.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{Act, LatchState, Request, Seen, Watching};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, BlockingBackend, BlockingInspect, BlockingLatch, Capabilities,
    Certainty, Claim, Effect, EventSink, Fenced, FencingToken, Holder, Lease, LockName, Mode, Queueing, ReleaseRequest,
    Released, Renewed, Terms, Ttl, Width,
};
use tokio::runtime::Handle;

/// A ttl that no case outlasts.
pub(crate) const LONG: Duration = Duration::from_secs(30);
/// A ttl that cases wait for.
pub(crate) const BRIEF: Duration = Duration::from_millis(1500);
/// How long a request may take if that does not matter.
const WITHIN: Duration = Duration::from_secs(3);

pub(crate) fn lock_name(name: &str) -> LockName {
    name.parse().unwrap()
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

/// The same claim in another mode.
pub(crate) fn in_mode(mode: Mode, claim: Claim) -> Claim {
    let width = Width::for_waiters(usize::try_from(mode.count()).unwrap());
    Claim { terms: Terms { mode, ..claim.terms }, width, ..claim }
}

pub(crate) fn release_of(claim: &Claim, certainty: Certainty) -> ReleaseRequest {
    ReleaseRequest { name: claim.name.clone(), owner: claim.owner, terms: claim.terms, certainty, keep: None }
}

/// A claim of another owner to replace what this one was granted, for a longer ttl.
pub(crate) fn replacing(old: &Claim) -> Claim {
    let new = lasting(LONG * 2, claim(old.name.as_str()));
    Claim { replaces: Some(old.owner), ..new }
}

/// A client of the store, whose requests must succeed unless they begin with `try`.
#[derive(Debug)]
pub struct Verbs {
    backend: Arc<dyn BlockingBackend>,
    /// The same backend, if it is an async one.
    nonblocking: Option<Arc<OnRuntime>>,
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
        Self { backend, nonblocking: None, within: WITHIN }
    }

    pub(crate) fn of_nonblocking(backend: Arc<dyn AsyncBackend>, runtime: Handle) -> Self {
        let both = Arc::new(OnRuntime { backend, runtime });
        Self { nonblocking: Some(Arc::clone(&both)), ..Self::of_blocking(both) }
    }

    pub(crate) fn within(self, within: Duration) -> Self {
        Self { within, ..self }
    }

    /// The backend if it is an async one, where it runs, and how long its requests may take.
    pub(crate) fn nonblocking(&self) -> Option<(&dyn AsyncBackend, &Handle, Duration)> {
        self.nonblocking.as_ref().map(|both| (&*both.backend, &both.runtime, self.within))
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    pub(crate) fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }

    pub(crate) fn can_inspect(&self) -> bool {
        self.backend.inspect().is_some()
    }

    pub(crate) fn has_latches(&self) -> bool {
        self.backend.latch().is_ok()
    }

    pub(crate) fn try_acquire(&self, claim: &Claim) -> Result<Answer, BackendError> {
        self.backend.acquire(claim, self.within)
    }

    pub(crate) fn try_renew(&self, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        self.backend.renew(leases, self.within)
    }

    pub(crate) fn try_release(&self, claim: &Claim, certainty: Certainty) -> Result<Released, BackendError> {
        self.backend.release(&release_of(claim, certainty), self.within)
    }

    pub(crate) fn try_fence(&self, lease: &Lease) -> Result<Fenced, BackendError> {
        self.backend.fence(lease, self.within)
    }

    pub(crate) fn try_holder(&self, name: &str) -> Result<Option<Entry>, BackendError> {
        self.view().holder(&lock_name(name), self.within)
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
        answers[0]
    }

    #[track_caller]
    pub(crate) fn release(&self, claim: &Claim) -> Released {
        self.try_release(claim, Certainty::Answered).unwrap()
    }

    /// Releases a lock that is to become free only after this time.
    #[track_caller]
    pub(crate) fn keep(&self, claim: &Claim, keep: Duration) -> Released {
        let request = ReleaseRequest { keep: Some(keep), ..release_of(claim, Certainty::Answered) };
        self.backend.release(&request, self.within).unwrap()
    }

    /// Releases while a claim may still be under way.
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
        self.view().list(query, self.within).unwrap()
    }

    #[track_caller]
    pub(crate) fn revoke(&self, name: &str, token: FencingToken) -> Revoked {
        self.view().revoke(&lock_name(name), token, self.within).unwrap()
    }

    /// A request about the latch "a".
    #[track_caller]
    pub(crate) fn latch(&self, act: Act) -> Option<LatchState> {
        let request = Request { name: lock_name("a"), act };
        self.backend.latch().unwrap().ask(&request, self.within).unwrap().state
    }

    /// The latch "a".
    #[track_caller]
    pub(crate) fn look(&self) -> Option<LatchState> {
        self.latch(Act::Look { watching: Watching::Unwanted })
    }

    #[track_caller]
    fn view(&self) -> &dyn BlockingInspect {
        self.backend.inspect().expect("the store has a view for operators")
    }
}

/// An async backend whose calls are waited for, so that all cases can be written as blocking ones.
struct OnRuntime {
    backend: Arc<dyn AsyncBackend>,
    runtime: Handle,
}

impl Backend for OnRuntime {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }
}

impl BlockingBackend for OnRuntime {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        self
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.runtime.block_on(self.backend.acquire(claim, within))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.runtime.block_on(self.backend.renew(leases, within))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.runtime.block_on(self.backend.release(request, within))
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.runtime.block_on(self.backend.fence(lease, within))
    }

    fn flush(&self, within: Duration) {
        self.runtime.block_on(self.backend.flush(within));
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        self.backend.inspect().map(|_| self as &dyn BlockingInspect)
    }

    fn latch(&self) -> Result<&dyn BlockingLatch, BackendError> {
        self.backend.latch().map(|_| self as &dyn BlockingLatch)
    }
}

impl BlockingInspect for OnRuntime {
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.runtime.block_on(self.backend.inspect().unwrap().holder(name, within))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.runtime.block_on(self.backend.inspect().unwrap().list(query, within))
    }

    fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError> {
        self.runtime.block_on(self.backend.inspect().unwrap().revoke(name, token, within))
    }
}

impl BlockingLatch for OnRuntime {
    fn ask(&self, request: &Request, within: Duration) -> Result<Seen, BackendError> {
        self.runtime.block_on(self.backend.latch()?.ask(request, within))
    }
}

impl fmt::Debug for OnRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}
