//! The async form of a store whose calls never wait.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::inspect::{Entry, Page, Query, Revoked};
use crate::latch::{self, Seen};
use crate::limit::{self, Usage};
use crate::{
    Answer, AsyncBackend, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken,
    Lease, Location, LockName, Note, ReleaseRequest, Released, Renewed,
};

/// The async form of a blocking backend that answers from memory. Each call runs where its future is polled, and is done when that
/// first returns: a backend that waits for a file or a network would block the runtime.
#[derive(Debug)]
pub struct Immediate<B: ?Sized>(Arc<B>);

impl<B: ?Sized> Immediate<B> {
    /// The async form of this backend.
    pub const fn new(backend: Arc<B>) -> Self {
        Self(backend)
    }
}

impl<B: BlockingBackend + ?Sized> Backend for Immediate<B> {
    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.0.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.0.locate(name)
    }

    fn holds(&self, lease: &Lease) {
        self.0.holds(lease);
    }

    fn end_session(&self) {
        self.0.end_session();
    }

    fn warnings(&self) -> Vec<String> {
        self.0.warnings()
    }
}

#[async_trait]
impl<B: BlockingBackend + ?Sized> AsyncBackend for Immediate<B> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(Immediate(Arc::clone(&self.0).for_keeper()))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.0.acquire(claim, within)
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.0.renew(leases, within)
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.0.release(request, within)
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.0.fence(lease, within)
    }

    async fn flush(&self, within: Duration) {
        self.0.flush(within);
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.0.latch(request, within)
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.0.limit(request, within)
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.0.holder(name, within)
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.0.list(query, within)
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.0.revoke(name, token, by, within)
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.0.revoked_by(name, highest, within)
    }
}
