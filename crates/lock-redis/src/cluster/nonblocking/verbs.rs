//! What the machine and operators ask of every backend, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location,
    LockName, Note, Operation, ReleaseRequest, Released, Renewed,
};

use super::Cluster;
use crate::cluster::client::{only, renewed};
use crate::cluster::listing::{after, stop};
use crate::failure::Failure;
use crate::requests::acknowledged::Acknowledged;
use crate::requests::look::WhoHolds;
use crate::requests::renewal::Renewal;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::span::Span;
use crate::wire::Question;

impl Cluster {
    /// Asks about a lock within a time limit.
    async fn ask<Q: Question + Sync>(
        &self,
        name: &LockName,
        question: Q,
        within: Duration,
    ) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(name, &question, Span::from_now(within)).await;
        answer.map_err(|failure| failure.into_error(question.operation()))
    }

    async fn renew_one(&self, lease: &Lease, span: Span) -> Result<Renewed, Failure> {
        let alone = Renewal(std::slice::from_ref(lease));
        only(self.answer(&lease.name, &Acknowledged::new(alone, self.client.wire(), span), span).await?)
    }
}

impl Backend for Cluster {
    fn capabilities(&self) -> Capabilities {
        self.client.capabilities()
    }

    fn listen(&self, sink: EventSink) {
        self.client.topology.listeners.add(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.client.locate(name)
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[async_trait]
impl AsyncBackend for Cluster {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(self.another())
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        let answer = self.answer(&claim.name, &Acknowledged::new(claim, self.client.wire(), span), span).await;
        answer.map_err(|failure| failure.into_error(Operation::Acquire))
    }

    /// Those at the same primary are sent together, and a primary that does not answer delays no other.
    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        renewed(join_all(leases.iter().map(|lease| self.renew_one(lease, span))).await)
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        let asked = Acknowledged::release(request, self.client.wire(), Span::from_now(within));
        self.ask(&request.name, asked, within).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(&lease.name, lease, within).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.ask(&request.name, request, within).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        let asked = Acknowledged::limit(request, self.client.wire(), Span::from_now(within));
        self.ask(&request.name, asked, within).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name, WhoHolds(name), within).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let failed = |failure: Failure| failure.into_error(Operation::Inspect);
        let primaries = self.client.topology.primaries();
        let Some((address, cursor)) = stop(&primaries, query.cursor.as_ref()).map_err(failed)? else {
            return Ok(Page { entries: Vec::new(), next: None });
        };
        let node = self.node(&address).map_err(failed)?;
        let mut own = query.clone();
        own.cursor = cursor;
        let page = node.list(&own, within).await;
        let page = page.inspect_err(|_| self.client.topology.refresh_soon())?;
        Ok(Page { next: after(&primaries, &address, page.next), ..page })
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
        self.ask(name, RevokedBy(name, highest), within).await
    }
}
