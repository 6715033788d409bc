//! Round zero: a ttl that is longer than any that a majority knows is announced before it is used.
//!
//! A node that forgets abstains for the longest ttl that the others know. So a claim with a longer one must not be in flight
//! before a majority knows.

use std::sync::Arc;

use lock_core::node::{Ask, Epoch, Told};
use lock_core::{BackendError, Effect, ErrorKind, Lease, Moment, Operation, Width};

use super::super::nodes::Nodes;
use super::super::outgoing::{NodeId, Outcome};
use super::super::recovery::at_once;
use super::{Acquire, Announcement, Round};
use crate::BACKEND;

impl Acquire {
    pub(super) fn announce(&mut self, nodes: &mut Nodes, now: Moment) {
        // Under token 1, which no node draws.
        let leases: Arc<[Lease]> = match self.lease_of(0, Width::ONE) {
            Ok(lease) => Arc::from([lease]),
            Err(error) => return self.end(Err(error)),
        };
        let electorate = nodes.electorate(now);
        let (told, open) = (Vec::new(), electorate.len());
        let announcement = Announcement { leases: Arc::clone(&leases), begun: now, told, open };
        (self.round, self.announcement) = (Round::Zero, Some(announcement));
        let within = self.within.min(at_once());
        for voter in electorate {
            nodes.send(voter.node, Ask::Fence { leases: Arc::clone(&leases), epoch: voter.epoch }, within);
        }
    }

    pub(super) fn is_announced_by(&self, leases: &Arc<[Lease]>) -> bool {
        self.announcement.as_ref().is_some_and(|ours| Arc::ptr_eq(&ours.leases, leases))
    }

    /// A node that heard of the ttl and has begun another epoch since has forgotten it. A node that heard of it long
    /// ago may have forgotten it, too.
    pub(super) fn count_told(&mut self, nodes: &mut Nodes, now: Moment, node: (NodeId, Epoch), outcome: Outcome) {
        let Some(announcement) = self.announcement.as_mut().filter(|_| self.round == Round::Zero) else { return };
        announcement.open -= 1;
        match outcome {
            Ok(Told::Fenced(_)) => announcement.told.push(node),
            Ok(_) => {}
            Err(error) => self.failures.push(error),
        }
        let knows = |(node, epoch): &&(NodeId, Epoch)| nodes.all[node.0].epoch == Some(*epoch);
        let (told, open) = (announcement.told.iter().filter(knows).count(), announcement.open);
        let is_late = now.since(announcement.begun) >= at_once();
        if told >= self.majority && !is_late {
            nodes.announced = nodes.announced.max(self.claim.terms.ttl.get());
            self.round = Round::One;
            self.wish = nodes.wishes.wish(now, self.claim.width);
            self.ask_all(nodes, now);
        } else if told + open < self.majority {
            let message = format!("fewer than {} of {} nodes answered", self.majority, nodes.all.len());
            self.end(Err(self.failures.error(Operation::Acquire, Effect::None, &message)));
        } else if is_late {
            self.end(Err(too_late()));
        }
    }
}

fn too_late() -> BackendError {
    let most = humantime::format_duration(at_once());
    let told = format!("could not announce a longer ttl to a majority of the nodes within {most}");
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, told)
        .with_remedy("try again; check that a majority of the nodes answers faster")
}
