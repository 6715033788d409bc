//! What the machine asks of every backend, on tokio.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Act, Seen, Watching};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, AsyncBackend, Backend, BackendError, Capabilities, Claim, Durability, EventSink, Fenced, FencingToken,
    Isolation, Lease, Location, LockName, Note, Operation, Queueing, ReleaseRequest, Released, Renewed, RequestOrder,
};

use super::Redis;
use super::source::Source;
use crate::requests::acknowledged::Acknowledged;
use crate::requests::look::WhoHolds;
use crate::requests::renewal::Renewal;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::span::Span;
use crate::{ABILITIES, BACKEND, MODES};

impl Backend for Redis {
    fn capabilities(&self) -> Capabilities {
        let redis = Capabilities::new(BACKEND, self.wire.waiting(), Durability::ClockFloor);
        let redis = redis.with_shared_counter().with_modes(MODES).with_abilities(ABILITIES);
        match &self.source {
            Source::Own(_) => redis.with_ordering(RequestOrder::InOrder).with_isolation(Isolation::Isolated),
            Source::HandedIn(_) => redis.with_ordering(RequestOrder::InOrder),
            #[cfg(feature = "deadpool")]
            Source::Pool(_) => redis,
            #[cfg(feature = "deadpool")]
            Source::PoolAndLink(..) => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn listen(&self, sink: EventSink) {
        self.wire.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.wire.locate(name)
    }

    fn holds(&self, _lease: &Lease) {
        self.source.listen();
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

#[async_trait]
impl AsyncBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn AsyncBackend> {
        Arc::new(self.another())
    }

    async fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        if claim.queueing == Queueing::Wanted {
            self.source.listen();
        }
        let span = Span::from_now(within);
        let answer = self.answer(&Acknowledged::new(claim, &self.wire, span), span).await;
        answer.map_err(|failure| failure.into_error(Operation::Acquire))
    }

    async fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(self.wire.locks_per_script()) {
            match self.answer(&Acknowledged::new(Renewal(batch), &self.wire, span), span).await {
                Ok(renewed) => answers.extend(renewed),
                Err(failure) if answers.is_empty() => return Err(failure.into_error(Operation::Renew)),
                Err(failure) => return Err(failure.after_a_part().into_error(Operation::Renew)),
            }
        }
        Ok(answers)
    }

    async fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(Acknowledged::release(request, &self.wire, Span::from_now(within)), within).await
    }

    async fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(lease, within).await
    }

    async fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        if request.act == (Act::Look { watching: Watching::Wanted }) {
            self.source.listen();
        }
        self.ask(request, within).await
    }

    async fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.ask(Acknowledged::limit(request, &self.wire, Span::from_now(within)), within).await
    }

    async fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(WhoHolds(name), within).await
    }

    async fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.page(query, Span::from_now(within)).await.map_err(|failure| failure.into_error(Operation::Inspect))
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
            let step = self.answer(&search, span).await;
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
        self.ask(RevokedBy(name, highest), within).await
    }
}
