//! A cover round the reference backend that breaks it in one way, in both facades.

use std::fmt;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use lock_conformance::{Exemption, Facade, Fault, Faults, Harness};
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, AsyncLayer, BackendError, BlockingBackend, BlockingLayer, Capabilities, Claim, EventSink,
    Fenced, FencingToken, Immediate, Layer, Lease, LockName, Note, ReleaseRequest, Released, Renewed,
};
use lock_host::SharedClock;
use tokio::runtime::Handle;
use tokio::task::yield_now;

use crate::memory::MemoryHarness;

/// How long anything may take at a store that answers at once.
pub(crate) const WITHIN: Duration = Duration::from_secs(1);

/// The patience with what should work, in milliseconds.
pub(crate) const ALL_TIME: u64 = 20_000;
/// The patience with what will not work: the test waits for it in vain.
pub(crate) const NO_TIME: u64 = 300;

/// What is broken: whatever is not overridden works.
pub(crate) trait Breakage: Default + Send + Sync + 'static {
    /// The fault of a new client.
    fn at(_stores: &Stores) -> Self {
        Self::default()
    }

    /// The store that a new client of this facade reaches.
    fn reach(stores: &Stores, _colour: Facade) -> Arc<dyn BlockingBackend> {
        stores.memory.blocking_backend()
    }

    fn capabilities(&self, store: &dyn BlockingBackend) -> Capabilities {
        store.capabilities()
    }

    fn listen(&self, store: &dyn BlockingBackend, sink: EventSink) {
        store.listen(sink);
    }

    /// Whether a task's requests that are made after a claim overtake it, and then those made after a release.
    fn are_overtaken(&self) -> [bool; 2] {
        [false; 2]
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN)
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        store.renew(leases, WITHIN)
    }

    fn release(&self, store: &dyn BlockingBackend, request: &ReleaseRequest) -> Result<Released, BackendError> {
        store.release(request, WITHIN)
    }

    fn fence(&self, store: &dyn BlockingBackend, lease: &Lease) -> Result<Fenced, BackendError> {
        store.fence(lease, WITHIN)
    }

    fn holder(&self, store: &dyn BlockingBackend, name: &LockName) -> Result<Option<Entry>, BackendError> {
        store.holder(name, WITHIN)
    }

    fn list(&self, store: &dyn BlockingBackend, query: &Query) -> Result<Page, BackendError> {
        store.list(query, WITHIN)
    }

    fn revoke(
        &self,
        store: &dyn BlockingBackend,
        name: &LockName,
        token: FencingToken,
        by: &Note,
    ) -> Result<Revoked, BackendError> {
        store.revoke(name, token, by, WITHIN)
    }

    fn latch(&self, store: &dyn BlockingBackend, request: &latch::Request) -> Result<Seen, BackendError> {
        store.latch(request, WITHIN)
    }

    fn limit(&self, store: &dyn BlockingBackend, request: &limit::Request) -> Result<Usage, BackendError> {
        store.limit(request, WITHIN)
    }
}

/// What a twin is made of.
pub(crate) struct Stores {
    pub(crate) memory: MemoryHarness,
    /// A second store, for twins that do not always use the same.
    pub(crate) other: MemoryHarness,
    pub(crate) events: Arc<Events>,
}

/// The faults that a store in memory does not have by itself, of which a twin makes what is wrong with it; and what its clients
/// know together.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) hung: AtomicBool,
    pub(crate) restarted: AtomicBool,
    /// What was granted to any client, as far as a twin notes it.
    pub(crate) granted: Mutex<Vec<Lease>>,
}

impl Faults for Stores {
    fn offers(&self) -> &[Fault] {
        &Fault::ALL
    }

    fn begin(&self, fault: Fault) {
        match fault {
            Fault::Cut | Fault::LoseReplies => self.memory.faults().begin(fault),
            Fault::Hang => self.events.hung.store(true, Ordering::SeqCst),
            Fault::RestartWithData | Fault::RestartEmpty => self.events.restarted.store(true, Ordering::SeqCst),
        }
    }

    fn fired(&self) -> u64 {
        let happened = [&self.events.hung, &self.events.restarted].map(|event| event.load(Ordering::SeqCst));
        self.memory.faults().fired() + u64::from(happened.contains(&true))
    }

    fn end(&self) {
        self.memory.faults().end();
    }
}

/// A harness of the broken twin.
pub(crate) struct Broken<B, const PATIENCE: u64>(Stores, PhantomData<B>);

impl<B: Breakage, const PATIENCE: u64> Broken<B, PATIENCE> {
    fn twin(&self, facade: Facade) -> Twin<B> {
        Twin { store: B::reach(&self.0, facade), breakage: Arc::new(B::at(&self.0)) }
    }
}

impl<B: Breakage, const PATIENCE: u64> Harness for Broken<B, PATIENCE> {
    fn new() -> Self {
        let stores = Stores { memory: MemoryHarness::new(), other: MemoryHarness::new(), events: Arc::default() };
        Self(stores, PhantomData)
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        AsyncTwin::of(self.twin(Facade::Nonblocking))
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        Arc::new(self.twin(Facade::Blocking))
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        self.0.memory.bystander()
    }

    fn clock(&self) -> SharedClock {
        self.0.memory.clock()
    }

    fn elapse(&self, by: Duration) {
        self.0.memory.elapse(by);
    }

    fn faults(&self) -> &dyn Faults {
        &self.0
    }

    fn exempt(&self, facade: Facade) -> Vec<Exemption> {
        self.0.memory.exempt(facade)
    }

    fn patience(&self) -> Duration {
        Duration::from_millis(PATIENCE)
    }
}

/// The answer with another grant, if it is one.
pub(crate) fn regrant(answer: Answer, change: impl FnOnce(Lease, Duration) -> (Lease, Duration)) -> Answer {
    match answer {
        Answer::Granted { lease, valid_for, .. } => {
            let (lease, valid_for) = change(lease, valid_for);
            Answer::Granted { lease, valid_for, wanted: false }
        }
        Answer::Queued { .. } | Answer::Busy { .. } => answer,
    }
}

/// A client of the twin. Its store never waits.
struct Twin<B> {
    store: Arc<dyn BlockingBackend>,
    breakage: Arc<B>,
}

/// A blocking client of a store that is broken in this way.
pub(crate) fn covered<B: Breakage>(store: Arc<dyn BlockingBackend>, breakage: B) -> Arc<dyn BlockingBackend> {
    Arc::new(Twin { store, breakage: Arc::new(breakage) })
}

impl<B: Breakage> Layer for Twin<B> {
    type Inner = dyn BlockingBackend;

    fn inner(&self) -> &Arc<dyn BlockingBackend> {
        &self.store
    }

    fn capabilities(&self) -> Capabilities {
        self.breakage.capabilities(&*self.store)
    }

    fn listen(&self, sink: EventSink) {
        self.breakage.listen(&*self.store, sink);
    }
}

impl<B: Breakage> BlockingLayer for Twin<B> {
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self { store: inner, breakage: Arc::clone(&self.breakage) })
    }

    fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
        self.breakage.acquire(&*self.store, claim)
    }

    fn renew(&self, leases: &[Lease], _within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.breakage.renew(&*self.store, leases)
    }

    fn release(&self, request: &ReleaseRequest, _within: Duration) -> Result<Released, BackendError> {
        self.breakage.release(&*self.store, request)
    }

    fn fence(&self, lease: &Lease, _within: Duration) -> Result<Fenced, BackendError> {
        self.breakage.fence(&*self.store, lease)
    }

    fn latch(&self, request: &latch::Request, _within: Duration) -> Result<Seen, BackendError> {
        self.breakage.latch(&*self.store, request)
    }

    fn limit(&self, request: &limit::Request, _within: Duration) -> Result<Usage, BackendError> {
        self.breakage.limit(&*self.store, request)
    }

    fn holder(&self, name: &LockName, _within: Duration) -> Result<Option<Entry>, BackendError> {
        self.breakage.holder(&*self.store, name)
    }

    fn list(&self, query: &Query, _within: Duration) -> Result<Page, BackendError> {
        self.breakage.list(&*self.store, query)
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        _within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.breakage.revoke(&*self.store, name, token, by)
    }
}

/// The async form of a twin, in which requests may be overtaken.
struct AsyncTwin<B: Breakage> {
    twin: Arc<Immediate<Twin<B>>>,
    are_overtaken: [bool; 2],
}

impl<B: Breakage> AsyncTwin<B> {
    fn of(twin: Twin<B>) -> Arc<Self> {
        let are_overtaken = twin.breakage.are_overtaken();
        Arc::new(Self { twin: Arc::new(Immediate::new(Arc::new(twin))), are_overtaken })
    }
}

impl<B: Breakage> Layer for AsyncTwin<B> {
    type Inner = Immediate<Twin<B>>;

    fn inner(&self) -> &Arc<Self::Inner> {
        &self.twin
    }
}

#[async_trait]
impl<B: Breakage> AsyncLayer for AsyncTwin<B> {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        inner
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        if let [true, _] = self.are_overtaken {
            yield_now().await;
        }
        self.twin.acquire(claim, within).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        if let [_, true] = self.are_overtaken {
            yield_now().await;
        }
        self.twin.release(request, within).await
    }
}

impl<B: Breakage> fmt::Debug for AsyncTwin<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.twin.fmt(f)
    }
}

impl<B> fmt::Debug for Twin<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Twin")
    }
}
