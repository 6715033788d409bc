//! Faults on command, for tokio.

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::node::{Ask, AsyncQuorumNode, Told};
use lock_core::{
    Answer, AsyncBackend, AsyncLayer, BackendError, Claim, Fenced, FencingToken, Lease, LockName, Note, Operation,
    ReleaseRequest, Released, Renewed,
};

use super::node::{asked_of_node, call_of_node};
use super::{Asked, Call, Faulty, end, owners};

impl<B: Send + Sync + ?Sized> Faulty<B> {
    async fn pass_async<T: Send>(
        &self,
        call: Call,
        run: impl Future<Output = Result<T, BackendError>> + Send,
    ) -> Result<T, BackendError> {
        let reply = self.begin(call)?;
        let answer = run.await;
        self.faults.note_ran(call.operation);
        poll_fn(|context| self.faults.poll_let_go(call.operation, context)).await;
        end(call, reply, answer)?
    }
}

#[async_trait]
impl<B: AsyncBackend + ?Sized> AsyncLayer for Faulty<B> {
    fn over(&self, inner: Arc<dyn AsyncBackend>) -> Arc<dyn AsyncBackend> {
        Arc::new(Faulty::of(inner, &self.faults))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.faults.note_asked(Asked::Acquire(claim.owner));
        self.pass_async(self.call(Operation::Acquire), self.backend.acquire(claim, within)).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.faults.note_asked(Asked::Renew(owners(leases)));
        self.pass_async(self.call(Operation::Renew), self.backend.renew(leases, within)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.faults.note_asked(Asked::Release(request.owner));
        self.pass_async(self.call(Operation::Release), self.backend.release(request, within)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.pass_async(self.call(Operation::Fence), self.backend.fence(lease, within)).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.pass_async(self.call(Operation::Inspect), self.backend.holder(name, within)).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.pass_async(self.call(Operation::Inspect), self.backend.list(query, within)).await
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.pass_async(self.call(Operation::Inspect), self.backend.revoke(name, token, by, within)).await
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.pass_async(self.call(Operation::Inspect), self.backend.revoked_by(name, highest, within)).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.pass_async(self.call(Operation::Latch), self.backend.latch(request, within)).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.pass_async(self.call(Operation::Limit), self.backend.limit(request, within)).await
    }
}

impl<N: AsyncQuorumNode> AsyncQuorumNode for Faulty<N> {
    fn for_keeper(&self) -> Self {
        Self::new(self.backend.for_keeper(), &self.faults)
    }

    async fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        asked_of_node(ask).into_iter().for_each(|asked| self.faults.note_asked(asked));
        self.pass_async(call_of_node(ask), self.backend.ask(ask, within)).await
    }
}
