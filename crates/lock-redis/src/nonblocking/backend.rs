//! What the machine and operators ask of every backend, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Act, Seen, Watching};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease, Location,
    LockName, Note, Operation, Queueing, ReleaseRequest, Released, Renewed,
};

use super::Redis;
use crate::failure::Failure;
use crate::requests::look::WhoHolds;
use crate::requests::renewal::Renewal;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::servers::listing::Listing;
use crate::servers::{Servers, Source as _, renewed};
use crate::span::Span;
use crate::wire::Question;

impl Redis {
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

    /// Somebody is about to wait: the client should be notified.
    fn listen_in_time(&self) {
        if let Servers::One(server) = &self.servers {
            server.source.listen_in_time();
        }
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

    fn holds(&self, _lease: &Lease) {
        self.listen_in_time();
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[async_trait]
impl AsyncBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(Self::over(self.servers.another(), Vec::new()))
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        if claim.queueing == Queueing::Wanted {
            self.listen_in_time();
        }
        self.ask(&claim.name, claim, within).await
    }

    /// What one script renews is asked for itself. All of that is sent together, and a server that does not answer delays no other.
    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let answers = leases.chunks(self.servers.wire().locks_per_script()).map(async |batch: &[Lease]| {
            let Some(first) = batch.first() else { return (0, Ok(Vec::new())) };
            (batch.len(), self.answer(&first.name, &Renewal(batch), span).await)
        });
        renewed(join_all(answers).await)
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(&request.name, request, within).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(&lease.name, lease, within).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        if request.act == (Act::Look { watching: Watching::Wanted }) {
            self.listen_in_time();
        }
        self.ask(&request.name, request, within).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.ask(&request.name, request, within).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name, WhoHolds(name), within).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let span = Span::from_now(within);
        let page = async {
            let Some(listing) = Listing::next(&self.servers, query)? else {
                return Ok(Page { entries: Vec::new(), next: None });
            };
            let page = listing.server.page(&listing.query, span).await;
            listing.end(page)
        };
        page.await.map_err(|failure: Failure| failure.into_error(Operation::Inspect))
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
