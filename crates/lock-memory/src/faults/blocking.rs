//! Faults on command, for plain threads.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{Request, Seen};
use lock_core::limit::{self, Usage};
use lock_core::node::{Ask, BlockingQuorumNode, Told};
use lock_core::{
    Answer, BackendError, BlockingBackend, BlockingInspect, BlockingLatch, BlockingLimit, Claim, Fenced, FencingToken,
    Lease, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
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

impl<B: BlockingBackend + ?Sized> BlockingBackend for Faulty<B> {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(Faulty { faults: self.faults.clone(), backend: Arc::clone(&self.backend).for_keeper() })
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

    fn flush(&self, within: Duration) {
        self.backend.flush(within);
    }

    fn inspect(&self) -> Option<&dyn BlockingInspect> {
        self.backend.inspect().map(|_| self as &dyn BlockingInspect)
    }

    fn latch(&self) -> Result<&dyn BlockingLatch, BackendError> {
        self.backend.latch().map(|_| self as &dyn BlockingLatch)
    }

    fn limit(&self) -> Result<&dyn BlockingLimit, BackendError> {
        self.backend.limit().map(|_| self as &dyn BlockingLimit)
    }
}

impl<B: BlockingBackend + ?Sized> BlockingInspect for Faulty<B> {
    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        let inspect = self.backend.inspect().ok_or_else(|| self.cannot_inspect())?;
        self.pass_blocking(self.call(Operation::Inspect), || inspect.holder(name, within))
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let inspect = self.backend.inspect().ok_or_else(|| self.cannot_inspect())?;
        self.pass_blocking(self.call(Operation::Inspect), || inspect.list(query, within))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let inspect = self.backend.inspect().ok_or_else(|| self.cannot_inspect())?;
        self.pass_blocking(self.call(Operation::Inspect), || inspect.revoke(name, token, by, within))
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        let inspect = self.backend.inspect().ok_or_else(|| self.cannot_inspect())?;
        self.pass_blocking(self.call(Operation::Inspect), || inspect.revoked_by(name, highest, within))
    }
}

impl<B: BlockingBackend + ?Sized> BlockingLatch for Faulty<B> {
    fn ask(&self, request: &Request, within: Duration) -> Result<Seen, BackendError> {
        let latches = self.backend.latch()?;
        self.pass_blocking(self.call(Operation::Latch), || latches.ask(request, within))
    }
}

impl<B: BlockingBackend + ?Sized> BlockingLimit for Faulty<B> {
    fn ask(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        let limits = self.backend.limit()?;
        self.pass_blocking(self.call(Operation::Limit), || limits.ask(request, within))
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
