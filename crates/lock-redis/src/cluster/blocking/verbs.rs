//! What the machine and operators ask of every backend, on threads.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use lock_core::inspect::{Entry, Page, Query, Revoked};
use lock_core::latch::{self, Seen};
use lock_core::limit::{self, Usage};
use lock_core::{
    Answer, Backend, BackendError, BlockingBackend, Capabilities, Claim, EventSink, Fenced, FencingToken, Lease,
    Location, LockName, Note, Operation, ReleaseRequest, Released, Renewed,
};

use super::Cluster;
use crate::cluster::client::{only, renewed};
use crate::cluster::listing::{after, stop};
use crate::cluster::redirect::Address;
use crate::failure::Failure;
use crate::requests::acknowledged::Acknowledged;
use crate::requests::look::WhoHolds;
use crate::requests::renewal::Renewal;
use crate::requests::revocation::{Revocation, RevokedBy};
use crate::span::Span;
use crate::wire::Question;

/// A lease, and its place in the list.
type Placed<'a> = (usize, &'a Lease);

impl Cluster {
    /// Asks about a lock within a time limit.
    fn ask<Q: Question>(&self, name: &LockName, question: Q, within: Duration) -> Result<Q::Answer, BackendError> {
        let answer = self.answer(name, &question, Span::from_now(within));
        answer.map_err(|failure| failure.into_error(question.operation()))
    }

    /// Renews the leases at one primary in one write, and elsewhere those that it does not have.
    fn renew_at(
        &self,
        primary: Option<&Arc<Address>>,
        leases: &[Placed<'_>],
        span: Span,
    ) -> Vec<Result<Renewed, Failure>> {
        let wire = self.client.wire();
        let alone = |lease| Acknowledged::new(Renewal(std::slice::from_ref(lease)), wire, span);
        let questions: Vec<_> = leases.iter().map(|(_, lease)| alone(*lease)).collect();
        let answers =
            primary.and_then(|primary| Some((primary, self.node(primary).ok()?.answer_each(&questions, span))));
        let routings = leases.iter().map(|(_, lease)| self.client.routing(&lease.name, span)).zip(&questions);
        let follow = |(routing, question)| only(self.follow(routing, question, span)?);
        let Some((primary, answers)) = answers else { return routings.map(follow).collect() };
        let judged = routings.zip(answers).map(|((mut routing, question), answer)| match answer {
            Ok(answer) => only(answer),
            Err(failure) => {
                routing.failed(Arc::clone(primary), failure);
                follow((routing, question))
            }
        });
        judged.collect()
    }

    /// The leases at each primary, with their places in the list.
    fn by_primary<'a>(&self, leases: &'a [Lease]) -> BTreeMap<Option<Arc<Address>>, Vec<Placed<'a>>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for placed in leases.iter().enumerate() {
            groups.entry(self.client.primary_of(&placed.1.name)).or_default().push(placed);
        }
        groups
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

    fn holds(&self, lease: &Lease) {
        let primary = self.client.primary_of(&lease.name).and_then(|address| self.node(&address).ok());
        primary.iter().for_each(|primary| primary.listen_in_time());
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

impl BlockingBackend for Cluster {
    fn for_keeper(self: Arc<Self>) -> Arc<dyn BlockingBackend> {
        Arc::new(self.another())
    }

    fn acquire(&self, claim: &Claim, within: Duration) -> Result<Answer, BackendError> {
        let span = Span::from_now(within);
        let asked = |claim: &Claim| self.answer(&claim.name, &Acknowledged::new(claim, self.client.wire(), span), span);
        let answer = self.listening(&claim.name, span, |listening| listening.claim(claim, asked));
        answer.flatten().map_err(|failure| failure.into_error(Operation::Acquire))
    }

    /// Each primary is asked by a thread of its own, so that one that does not answer delays no other.
    fn renew(&self, leases: &[Lease], within: Duration) -> Result<Vec<Renewed>, BackendError> {
        let span = Span::from_now(within);
        let groups = self.by_primary(leases);
        let at = |(primary, leases): (&Option<Arc<Address>>, &Vec<Placed<'_>>)| {
            let places = leases.iter().map(|(place, _)| *place);
            places.zip(self.renew_at(primary.as_ref(), leases, span)).collect::<Vec<_>>()
        };
        let mut groups = groups.iter();
        let first = groups.next();
        let mut answers = thread::scope(|scope| {
            let beside = |group| thread::Builder::new().spawn_scoped(scope, move || at(group)).map_err(|_| group);
            let others: Vec<_> = groups.map(beside).collect();
            let mut answers = first.map(at).unwrap_or_default();
            answers.extend(others.into_iter().flat_map(|other| match other {
                Ok(thread) => thread.join().unwrap_or_default(),
                // There is no other thread for it.
                Err(group) => at(group),
            }));
            answers
        });
        answers.sort_by_key(|(place, _)| *place);
        renewed(answers.into_iter().map(|(_, answer)| answer).collect())
    }

    fn release(&self, request: &ReleaseRequest, within: Duration) -> Result<Released, BackendError> {
        let asked = Acknowledged::release(request, self.client.wire(), Span::from_now(within));
        self.ask(&request.name, asked, within)
    }

    fn fence(&self, lease: &Lease, within: Duration) -> Result<Fenced, BackendError> {
        self.ask(&lease.name, lease, within)
    }

    fn latch(&self, request: &latch::Request, within: Duration) -> Result<Seen, BackendError> {
        let span = Span::from_now(within);
        let asked = || self.answer(&request.name, &request, span);
        let seen = self.listening(&request.name, span, |listening| listening.latch(request, asked));
        seen.flatten().map_err(|failure| failure.into_error(Operation::Latch))
    }

    fn limit(&self, request: &limit::Request, within: Duration) -> Result<Usage, BackendError> {
        let asked = Acknowledged::limit(request, self.client.wire(), Span::from_now(within));
        self.ask(&request.name, asked, within)
    }

    fn holder(&self, name: &LockName, within: Duration) -> Result<Option<Entry>, BackendError> {
        self.ask(name, WhoHolds(name), within)
    }

    fn list(&self, query: &Query, within: Duration) -> Result<Page, BackendError> {
        let failed = |failure: Failure| failure.into_error(Operation::Inspect);
        let primaries = self.client.topology.primaries();
        let Some((address, cursor)) = stop(&primaries, query.cursor.as_ref()).map_err(failed)? else {
            return Ok(Page { entries: Vec::new(), next: None });
        };
        let node = self.node(&address).map_err(failed)?;
        let mut own = query.clone();
        own.cursor = cursor;
        let page = node.list(&own, within);
        let page = page.inspect_err(|_| self.client.topology.refresh_soon())?;
        Ok(Page { next: after(&primaries, &address, page.next), ..page })
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
