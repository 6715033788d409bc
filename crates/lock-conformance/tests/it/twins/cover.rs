//! A cover round the reference backend that breaks it in one way, in both colours.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_conformance::{Colour, Exemption, Faults, Harness};
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::{
    Answer, AsyncBackend, AsyncInspect, Backend, BackendError, BlockingBackend, BlockingInspect, Capabilities, Claim,
    EventSink, Fenced, FencingToken, Lease, LockName, Parting, Released, Renewed,
};
use lock_host::SharedClock;
use tokio::runtime::Handle;

use crate::memory::MemoryHarness;

/// How long anything may take at a store that answers at once.
pub(crate) const WITHIN: Duration = Duration::from_secs(1);

/// What is broken: whatever is not overridden works.
pub(crate) trait Breakage: Default + Send + Sync + 'static {
    /// The fault of a new client.
    fn at(_harness: &Broken<Self>) -> Self {
        Self::default()
    }

    /// The store that a client of this colour reaches.
    fn reach(harness: &Broken<Self>, _colour: Colour) -> Arc<dyn BlockingBackend> {
        harness.memory.blocking_backend()
    }

    fn capabilities(&self, store: &dyn BlockingBackend) -> Capabilities {
        store.capabilities()
    }

    fn listen(&self, store: &dyn BlockingBackend, sink: EventSink) {
        store.listen(sink);
    }

    fn acquire(&self, store: &dyn BlockingBackend, claim: &Claim) -> Result<Answer, BackendError> {
        store.acquire(claim, WITHIN)
    }

    fn renew(&self, store: &dyn BlockingBackend, leases: &[Lease]) -> Result<Vec<Renewed>, BackendError> {
        store.renew(leases, WITHIN)
    }

    fn release(&self, store: &dyn BlockingBackend, parting: &Parting) -> Result<Released, BackendError> {
        store.release(parting, WITHIN)
    }

    fn revoke(&self, view: &dyn BlockingInspect, name: &LockName, token: FencingToken) -> Result<Revoked, BackendError> {
        view.revoke(name, token, WITHIN)
    }

    fn list(&self, view: &dyn BlockingInspect, query: &Query) -> Result<Page, BackendError> {
        view.list(query, WITHIN)
    }
}

/// A harness of the broken twin.
pub(crate) struct Broken<B> {
    pub(crate) memory: MemoryHarness,
    /// A second store, for twins that do not always use the same.
    pub(crate) other: MemoryHarness,
    breakage: PhantomData<B>,
}

impl<B: Breakage> Broken<B> {
    fn twin(&self, colour: Colour) -> Arc<Twin<B>> {
        Arc::new(Twin { store: B::reach(self, colour), breakage: B::at(self) })
    }
}

impl<B: Breakage> Harness for Broken<B> {
    fn new() -> Self {
        Self { memory: MemoryHarness::new(), other: MemoryHarness::new(), breakage: PhantomData }
    }

    fn async_backend(&self, _runtime: &Handle) -> Arc<dyn AsyncBackend> {
        self.twin(Colour::Nonblocking)
    }

    fn blocking_backend(&self) -> Arc<dyn BlockingBackend> {
        self.twin(Colour::Blocking)
    }

    fn bystander(&self) -> Arc<dyn BlockingBackend> {
        self.memory.bystander()
    }

    fn clock(&self) -> SharedClock {
        self.memory.clock()
    }

    fn elapse(&self, by: Duration) {
        self.memory.elapse(by);
    }

    fn faults(&self) -> &dyn Faults {
        self.memory.faults()
    }

    fn exempt(&self, colour: Colour) -> Vec<Exemption> {
        self.memory.exempt(colour)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(1)
    }
}

/// A client of the twin. Its store never waits, so that one colour of it is enough.
struct Twin<B> {
    store: Arc<dyn BlockingBackend>,
    breakage: B,
}

impl<B> Twin<B> {
    fn view(&self) -> &dyn BlockingInspect {
        self.store.inspect().unwrap()
    }
}

impl<B: Breakage> Backend for Twin<B> {
    fn capabilities(&self) -> Capabilities {
        self.breakage.capabilities(&*self.store)
    }

    fn listen(&self, sink: EventSink) {
        self.breakage.listen(&*self.store, sink);
    }
}

impl<B: Breakage> BlockingBackend for Twin<B> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        self
    }

    fn acquire(&self, claim: &Claim, _within: Duration) -> Result<Answer, BackendError> {
        self.breakage.acquire(&*self.store, claim)
    }

    fn renew(&self, leases: &[Lease], _within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.breakage.renew(&*self.store, leases)
    }

    fn release(&self, parting: &Parting, _within: Duration) -> Result<Released, BackendError> {
        self.breakage.release(&*self.store, parting)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.store.fence(lease, within)
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        Some(self)
    }
}

impl<B: Breakage> BlockingInspect for Twin<B> {
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.view().holder(name, within)
    }

    fn list(&self, query: &Query, _within: Duration) -> Result<Page, BackendError> {
        self.breakage.list(self.view(), query)
    }

    fn revoke(&self, name: &LockName, token: FencingToken, _within: Duration) -> Result<Revoked, BackendError> {
        self.breakage.revoke(self.view(), name, token)
    }
}

#[async_trait]
impl<B: Breakage> AsyncBackend for Twin<B> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        self
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        BlockingBackend::acquire(self, claim, within)
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        BlockingBackend::renew(self, leases, within)
    }

    async fn release(&self, parting: &Parting, within: Duration) -> Result<Released, BackendError> {
        BlockingBackend::release(self, parting, within)
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        BlockingBackend::fence(self, lease, within)
    }

    fn inspect(&self) -> Option<&dyn AsyncInspect> {
        Some(self)
    }
}

#[async_trait]
impl<B: Breakage> AsyncInspect for Twin<B> {
    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        BlockingInspect::holder(self, name, within)
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        BlockingInspect::list(self, query, within)
    }

    async fn revoke(&self, name: &LockName, token: FencingToken, within: Duration) -> Result<Revoked, BackendError> {
        BlockingInspect::revoke(self, name, token, within)
    }
}

impl<B> fmt::Debug for Twin<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Twin")
    }
}
