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
        let groups: Vec<_> = self.by_server(leases).into_iter().collect();
        let at = |(server, batches): &(Option<Arc<Address>>, Vec<Placed<'_>>)| {
            let answers = batches.iter().zip(self.renew_at(server.as_ref(), batches, span));
            answers.map(|((place, batch), answer)| (*place, (batch.len(), answer))).collect::<Vec<_>>()
        };
        let mut answers = thread::scope(|scope| {
            let beside = |group| (group, thread::Builder::new().spawn_scoped(scope, move || at(group)));
            let others: Vec<_> = groups.iter().skip(1).map(beside).collect();
            let mut answers = groups.first().map(at).unwrap_or_default();
            answers.extend(others.into_iter().flat_map(|(group, thread)| match thread {
                Ok(thread) => thread.join().unwrap_or_default(),
                Err(_) => at(group),
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
            let server = match &self.servers {
                Servers::Many(many) => many.primary(&batch[0].name),
                Servers::One(_) => None,
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
        let here = address.and_then(|address| Some((address, many.node(address).ok()?)));
        let mut answers = here.iter().flat_map(|(_, node)| node.answer_each(&questions, span));
        let each = questions.iter().map(|question| {
            let (mut routing, mut step) = many.routing(&question.0[0].name, span);
            if let (Some((address, _)), Some(answer)) = (&here, answers.next()) {
                let sent = (Arc::clone(address), Ownership::Owned);
                match routing.outcome(sent, question.retry(), answer) {
                    Ok(answer) => return Ok(answer),
                    Err(next) => step = next,
                }
            }
            self.follow(many, (routing, step), question, span)
        });
        each.collect()
    }
}
