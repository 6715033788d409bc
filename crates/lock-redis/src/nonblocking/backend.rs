//! What the machine and operators ask of every backend. Compiled for threads as well.

use std::sync::Arc;
use std::time::Duration;

#[both]
use lock_core::AsyncBackend;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Act, Seen, Watching};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location, LockName,
    Note, Operation, Queueing, ReleaseRequest, Released, Renewed,
};

use super::{Redis, both};
use crate::requests::look::WhoHolds;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::span::Span;
use crate::wire::Question;

#[both]
impl Redis {
    /// Asks about a lock within a time limit.
    async fn ask<Q: Question + Sync>(
        &self,
        name: &LockName,
        question: Q,
        span: Span,
    ) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(name, &question, span).await;
        answer.map_err(|failure| failure.into_error(question.operation()))
    }
}

impl Backend for Redis {
    fn capabilities(&self) -> Capabilities {
        self.servers.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.servers.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.servers.wire().locate(name)
    }

    fn holds(&self, lease: &Lease) {
        self.servers.server_of(&lease.name).iter().for_each(|server| server.source.listen_in_time());
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[both]
#[async_trait::async_trait]
impl AsyncBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self::over(self.servers.another(), Vec::new()))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        if claim.queueing == Queueing::Wanted {
            let answer = self.claim_at_once(claim, span);
            if let Some(answer) = answer.map_err(|failure| failure.into_error(Operation::Acquire))? {
                return Ok(answer);
            }
        }
        self.ask(&claim.name, claim, span).await
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.renew_all(leases, Span::from_now(within)).await
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(&request.name, request, Span::from_now(within)).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(&lease.name, lease, Span::from_now(within)).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let span = Span::from_now(within);
        if request.act == (Act::Look { watching: Watching::Wanted }) {
            let seen = self.look_at_once(request, span);
            if let Some(seen) = seen.map_err(|failure| failure.into_error(Operation::Latch))? {
                return Ok(seen);
            }
        }
        self.ask(&request.name, request, span).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.ask(&request.name, request, Span::from_now(within)).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name, WhoHolds(name), Span::from_now(within)).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let page = self.page(query, Span::from_now(within)).await;
        page.map_err(|failure| failure.into_error(Operation::Inspect))
    }

    async fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let (span, mut search) = (Span::from_now(within), Revocation::new(name, token, by));
        loop {
            let step = self.answer(name, &search, span).await;
            match step.and_then(|step| search.after(step, span)) {
                Ok(None) => {}
                Ok(Some(revoked)) => return Ok(revoked),
                Err(failure) => return Err(failure.into_error(Operation::Inspect)),
            }
        }
    }

    async fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.ask(name, RevokedBy(name, highest), Span::from_now(within)).await
    }
}
