//! Renewals on threads: those at one server leave in one write.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;

use lock_core::{BackendError, Lease, Renewed};

use super::Redis;
use crate::address::Address;
use crate::failure::Failure;
use crate::requests::renewal::Renewal;
use crate::servers::{Servers, renewed};
use crate::span::Span;
use crate::wire::{Ownership, Question};

/// The leases that one script renews, and their place among all.
type Placed<'a> = (usize, &'a [Lease]);
type Answer = Result<Vec<Renewed>, Failure>;

impl Redis {
    /// Each server is asked by a thread of its own, so that one that does not answer delays no other.
    pub(super) fn renew_all(&self, leases: &[Lease], span: Span) -> Result<Vec<Renewed>, BackendError> {
        let groups = self.by_server(leases);
        let at = |(server, batches): (&Option<Arc<Address>>, &Vec<Placed<'_>>)| {
            let answers = self.renew_at(server.as_ref(), batches, span);
            batches
                .iter()
                .zip(answers)
                .map(|((place, batch), answer)| (*place, (batch.len(), answer)))
                .collect::<Vec<_>>()
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
        renewed(answers.into_iter().map(|(_, answer)| answer))
    }

    /// What each server is asked to renew.
    fn by_server<'a>(&self, leases: &'a [Lease]) -> BTreeMap<Option<Arc<Address>>, Vec<Placed<'a>>> {
        let mut groups = BTreeMap::<_, Vec<_>>::new();
        for (place, batch) in leases.chunks(self.servers.wire().locks_per_script()).enumerate() {
            let server = match (&self.servers, batch.first()) {
                (Servers::Many(many), Some(lease)) => many.primary(&lease.name),
                (Servers::Many(_) | Servers::One(_), _) => None,
            };
            groups.entry(server).or_default().push((place, batch));
        }
        groups
    }

    /// Renews the leases at one server in one write, and elsewhere those that it does not have.
    fn renew_at(&self, address: Option<&Arc<Address>>, batches: &[Placed<'_>], span: Span) -> Vec<Answer> {
        let questions: Vec<_> = batches.iter().map(|(_, batch)| Renewal(batch)).collect();
        let many = match &self.servers {
            Servers::One(server) => return server.answer_each(&questions, span),
            Servers::Many(many) => many,
        };
        let routings = batches.iter().filter_map(|(_, batch)| Some(many.routing(&batch.first()?.name, span)));
        let asked = address.and_then(|address| Some((address, many.node(address).ok()?.answer_each(&questions, span))));
        let Some((address, answers)) = asked else {
            return routings
                .zip(&questions)
                .map(|(routing, question)| self.follow(many, routing, question, span))
                .collect();
        };
        let judged = routings.zip(&questions).zip(answers).map(|((mut routing, question), answer)| {
            let sent = (Arc::clone(address), Ownership::Owned);
            let outcome = routing.outcome(sent, question.retry(), answer);
            outcome.unwrap_or_else(|| self.follow(many, routing, question, span))
        });
        judged.collect()
    }
}
