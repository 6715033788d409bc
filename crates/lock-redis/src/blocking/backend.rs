//! What the machine and operators ask of every backend, on threads.

use std::sync::Arc;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease,
    Location, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
};

use super::Redis;
use crate::failure::Failure;
use crate::requests::look::WhoHolds;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::servers::Source as _;
use crate::servers::listing::Listing;
use crate::span::Span;
use crate::wire::Question;

impl Redis {
    /// Asks about a lock within a time limit.
    fn ask<Q: Question>(&self, name: &LockName, question: Q, within: Duration) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(name, &question, Span::from_now(within));
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
        self.server_of(&lease.name).iter().for_each(|server| server.source.listen_in_time());
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl BlockingBackend for Redis {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(Self { servers: self.servers.another(), warnings: Vec::new() })
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        self.claim(claim, Span::from_now(within)).map_err(|failure| failure.into_error(Operation::Acquire))
    }

    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        self.renew_all(leases, Span::from_now(within))
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        self.ask(&request.name, request, within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(&lease.name, lease, within)
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        self.watch(request, Span::from_now(within)).map_err(|failure| failure.into_error(Operation::Latch))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        self.ask(&request.name, request, within)
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name, WhoHolds(name), within)
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let failed = |failure: Failure| failure.into_error(Operation::Inspect);
        let Some(listing) = Listing::next(&self.servers, query).map_err(failed)? else {
            return Ok(Page { entries: Vec::new(), next: None });
        };
        let page = listing.server.page(&listing.query, Span::from_now(within));
        listing.end(page).map_err(failed)
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
            let step = self.answer(name, &search, span);
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
        self.ask(name, RevokedBy(name, highest), within)
    }
}
