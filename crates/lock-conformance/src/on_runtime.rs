//! An async backend as a blocking one.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken,
    Lease, Location, LockName, Note, ReleaseRequest, Released, Renewed,
};
use tokio::runtime::Handle;

/// An async backend whose calls are waited for, so that all cases can be written as blocking ones.
pub(crate) struct OnRuntime {
    pub(crate) backend: Arc<dyn AsyncBackend>,
    pub(crate) runtime: Handle,
}

impl Backend for OnRuntime {
    fn capabilities(&self) -> Capabilities {
        self.backend.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.backend.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.backend.locate(name)
    }

    fn holds(&self, lease: &Lease) {
        let _runtime = self.runtime.enter();
        self.backend.holds(lease);
    }

    fn warnings(&self) -> Vec<String> {
        self.backend.warnings()
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

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.runtime.block_on(self.backend.holder(name, within))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.runtime.block_on(self.backend.list(query, within))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.runtime.block_on(self.backend.revoke(name, token, by, within))
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.runtime.block_on(self.backend.revoked_by(name, highest, within))
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.runtime.block_on(self.backend.latch(request, within))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.runtime.block_on(self.backend.limit(request, within))
    }
}

impl fmt::Debug for OnRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.backend.fmt(f)
    }
}

/// Polls all of these in their order until each has its answer.
pub(crate) async fn all<T: Send>(mut asked: Vec<Pin<Box<dyn Future<Output = T> + Send + '_>>>) -> Vec<T> {
    let mut answers: Vec<Option<T>> = asked.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (asked, answer) in asked.iter_mut().zip(&mut answers).filter(|(_, answer)| answer.is_none()) {
            if let Poll::Ready(said) = asked.as_mut().poll(cx) {
                *answer = Some(said);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
