//! Round zero: a ttl that is longer than a majority knows of is announced before it is used.
//!
//! A node that forgets abstains for the longest ttl that the others know. So a claim with a longer one must not be under way
//! before a majority knows.

use std::sync::Arc;

use lock_core::node::{Ask, Epoch, Told};
use lock_core::{BackendError, Effect, ErrorKind, Lease, Moment, Operation, Width};

use super::super::guard::at_once;
use super::super::{NodeId, Outcome, Quorum};
use super::{Acquire, Round};
use crate::BACKEND;

#[derive(Debug)]
pub(super) struct Announcement {
    leases: Arc<[Lease]>,
    begun: Moment,
    /// Who knows of it, and in which epoch.
    told: Vec<(NodeId, Epoch)>,
    /// How many others may be told yet.
    open: usize,
}

impl Acquire {
    pub(super) fn announce(&mut self, quorum: &mut Quorum, now: Moment) {
        // Of no token that anybody draws.
        let leases: Arc<[Lease]> = match self.lease_of(0, Width::ONE) {
            Ok(lease) => Arc::from([lease]),
            Err(error) => return self.end(Err(error)),
        };
        let electorate = quorum.electorate(now);
        let (told, open) = (Vec::new(), electorate.len());
        let announcement = Announcement { leases: Arc::clone(&leases), begun: now, told, open };
        (self.round, self.announcement) = (Round::Zero, Some(announcement));
        let within = self.within.min(at_once());
        for elector in electorate {
            let ask = Ask::Fence { leases: Arc::clone(&leases), epoch: elector.epoch };
            self.letters.push_back(quorum.letter(elector.node, ask, within));
        }
    }

    pub(super) fn is_announced_by(&self, leases: &Arc<[Lease]>) -> bool {
        self.announcement.as_ref().is_some_and(|ours| Arc::ptr_eq(&ours.leases, leases))
    }

    /// A node that was told and has begun another epoch since has forgotten it. One that was told long ago may have, too.
    pub(super) fn count_told(&mut self, quorum: &mut Quorum, now: Moment, node: (NodeId, Epoch), outcome: Outcome) {
        let Some(announcement) = self.announcement.as_mut().filter(|_| self.round == Round::Zero) else { return };
        announcement.open -= 1;
        match outcome {
            Ok(Told::Fenced(_)) => announcement.told.push(node),
            Ok(_) => {}
            Err(error) => self.failures.push(error),
        }
        let knows = |(node, epoch): &&(NodeId, Epoch)| quorum.peers[node.0].epoch == Some(*epoch);
        let (told, open) = (announcement.told.iter().filter(knows).count(), announcement.open);
        let is_late = now.since(announcement.begun) >= at_once();
        if told >= self.majority && !is_late {
            quorum.announced = quorum.announced.max(self.claim.terms.ttl.get());
            self.round = Round::One;
            self.wish = quorum.heights.wish(now, self.claim.width);
            self.ask_all(quorum, now);
        } else if told + open < self.majority {
            let message = format!("not {} of {} nodes answered", self.majority, quorum.peers.len());
            self.end(Err(self.failures.error(Operation::Acquire, Effect::None, &message)));
        } else if is_late {
            self.end(Err(too_late()));
        }
    }
}

fn too_late() -> BackendError {
    let most = humantime::format_duration(at_once());
    let told = format!("a majority of the nodes could not be told of a longer ttl within {most}");
    BackendError::new(BACKEND, Operation::Acquire, ErrorKind::Timeout, Effect::Unknown, told)
        .with_remedy("try again; see that a majority of the nodes answers faster")
}
