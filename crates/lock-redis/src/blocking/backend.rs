//! What the machine asks of every backend, on threads.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, Durability, EventSink, Fenced, FencingToken,
    Isolation, Lease, Location, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
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
            Source::Own(_) => redis.with_isolation(Isolation::Isolated),
            #[cfg(feature = "r2d2")]
            Source::Pool(_) => redis,
            #[cfg(feature = "r2d2")]
            Source::PoolAndStack(..) => redis.with_isolation(Isolation::Isolated),
        }
    }

    fn listen(&self, sink: EventSink) {
        self.wire.listen(sink);
    }

    fn locate(&self, name: &LockName) -> Option<Location> {
        self.wire.locate(name)
    }

    fn holds(&self, _lease: &Lease) {
        self.listen_in_time();
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl BlockingBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(self.another())
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        let asked = |claim: &Claim| self.answer(&Acknowledged::new(claim, &self.wire, span), span);
        self.listening(span).claim(claim, asked).map_err(|failure| failure.into_error(Operation::Acquire))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let mut answers = Vec::with_capacity(leases.len());
        for batch in leases.chunks(self.wire.locks_per_script()) {
            match self.answer(&Acknowledged::new(Renewal(batch), &self.wire, span), span) {
                Ok(renewed) => answers.extend(renewed),
                Err(failure) if answers.is_empty() => return Err(failure.into_error(Operation::Renew)),
                Err(failure) => return Err(failure.after_a_part().into_error(Operation::Renew)),
            }
        }
        Ok(answers)
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(Acknowledged::release(request, &self.wire, Span::from_now(within)), within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(lease, within)
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let span = Span::from_now(within);
        let asked = || self.answer(&request, span);
        self.listening(span).latch(request, asked).map_err(|failure| failure.into_error(Operation::Latch))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.ask(Acknowledged::limit(request, &self.wire, Span::from_now(within)), within)
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(WhoHolds(name), within)
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        self.page(query, Span::from_now(within)).map_err(|failure| failure.into_error(Operation::Inspect))
    }

    fn revoke(
        &self,
        name: &LockName,
        token: FencingToken,
        by: &Note,
        within: Duration,
    ) -> Result<Revoked, BackendError> {
        let (span, mut search) = (Span::from_now(within), Revocation::new(name, token, by));
        loop {
            let step = self.answer(&search, span);
            match step.and_then(|step| search.after(step, span)) {
                Ok(None) => {}
                Ok(Some(revoked)) => return Ok(revoked),
                Err(failure) => return Err(failure.into_error(Operation::Inspect)),
            }
        }
    }

    fn revoked_by(
        &self,
        name: &LockName,
        highest: FencingToken,
        within: Duration,
    ) -> Result<Option<Note>, BackendError> {
        self.ask(RevokedBy(name, highest), within)
    }
}
