//! Faults on command, for plain threads.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::node::{Ask, BlockingQuorumNode, Told};
use lock_core::{
    Answer, BackendError, BlockingBackend, BlockingLayer, Claim, Fenced, FencingToken, Lease, LockName, Note,
    Operation, ReleaseRequest, Released, Renewed,
};

use super::node::{asked_of_node, call_of_node};
use super::{Asked, Call, Faulty, end, owners};

impl<B: ?Sized> Faulty<B> {
    fn pass_blocking<T>(&self, call: Call, run: impl FnOnce() -> Result<T, BackendError>) -> Result<T, BackendError> {
        let reply = self.begin(call)?;
        let answer = run();
        self.faults.note_ran(call.operation);
        self.faults.wait_let_go(call.operation);
        end(call, reply, answer)?
    }
}

impl<B: BlockingBackend + ?Sized> BlockingLayer for Faulty<B> {
    fn over(&self, inner: Arc<dyn BlockingBackend>) -> Arc<dyn BlockingBackend> {
        Arc::new(Faulty::of(inner, &self.faults))
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.faults.note_asked(Asked::Acquire(claim.owner));
        self.pass_blocking(self.call(Operation::Acquire), || self.backend.acquire(claim, within))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.faults.note_asked(Asked::Renew(owners(leases)));
        self.pass_blocking(self.call(Operation::Renew), || self.backend.renew(leases, within))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.faults.note_asked(Asked::Release(request.owner));
        self.pass_blocking(self.call(Operation::Release), || self.backend.release(request, within))
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.pass_blocking(self.call(Operation::Fence), || self.backend.fence(lease, within))
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.pass_blocking(self.call(Operation::Inspect), || self.backend.holder(name, within))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.pass_blocking(self.call(Operation::Inspect), || self.backend.list(query, within))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        self.pass_blocking(self.call(Operation::Inspect), || self.backend.revoke(name, token, by, within))
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.pass_blocking(self.call(Operation::Inspect), || self.backend.revoked_by(name, highest, within))
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.pass_blocking(self.call(Operation::Latch), || self.backend.latch(request, within))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.pass_blocking(self.call(Operation::Limit), || self.backend.limit(request, within))
    }
}

impl<N: BlockingQuorumNode> BlockingQuorumNode for Faulty<N> {
    fn for_keeper(&self) -> Self {
        Self::new(self.backend.for_keeper(), &self.faults)
    }

    fn ask(&self, ask: &Ask, within: Duration) -> Result<Told, BackendError> {
        asked_of_node(ask).into_iter().for_each(|asked| self.faults.note_asked(asked));
        self.pass_blocking(call_of_node(ask), || self.backend.ask(ask, within))
    }
}
