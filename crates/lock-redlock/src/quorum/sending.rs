//! What is sent to the nodes, and when: some of it waits for the outcome of an earlier claim.

use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Ask;
use lock_core::{BackendError, Claim, Effect, ErrorKind, FencingToken, Moment, Operation, ReleaseRequest};

use super::held_back::Held;
use super::nodes::{Nodes, Voter};
use super::outgoing::{NodeId, Outcome, Outgoing};
use super::rule::Rule;
use crate::BACKEND;

/// How many releases are sent to a node that does not answer. Further ones are kept until it answers.
const RELEASES_TO_SUSPECT_MAX: usize = 64;

impl Nodes {
    /// Sends a node something for the current request.
    pub(super) fn send(&mut self, node: NodeId, ask: Ask, within: Duration) {
        self.opened += 1;
        self.post(Outgoing { request: self.current, node, ask, within });
    }

    fn post(&mut self, outgoing: Outgoing) {
        self.all[outgoing.node.0].in_flight += 1;
        self.unsent.push(outgoing);
    }

    /// Sends a claim for the current request, or holds it back behind an earlier release of this lock.
    pub(super) fn claim(
        &mut self,
        now: Moment,
        voter: Voter,
        (claim, wish): (&Arc<Claim>, FencingToken),
        within: Duration,
    ) {
        let node = &mut self.all[voter.node.0];
        let until = now + within;
        node.claims(claim.owner, until);
        let ask = Ask::Acquire { claim: Arc::clone(claim), wish, epoch: voter.epoch };
        self.hold_or_send(now, voter.node, ask, until);
    }

    /// Releases an owner at a node for the current request, once its claim there has an outcome. Returns whether there
    /// will be an answer; otherwise the release is kept until the node answers again.
    pub(super) fn release(&mut self, now: Moment, id: NodeId, request: &Arc<ReleaseRequest>, within: Duration) -> bool {
        let over = now + self.membership.max_ttl;
        let node = &mut self.all[id.0];
        let is_sent = node.is_trusted() || node.in_flight < RELEASES_TO_SUSPECT_MAX;
        if is_sent {
            self.hold_or_send(now, id, Ask::Release(Arc::clone(request)), now + within);
        } else {
            node.owe(request, now, over);
        }
        is_sent
    }

    fn hold_or_send(&mut self, now: Moment, node: NodeId, ask: Ask, until: Moment) {
        self.opened += 1;
        let outgoing = Outgoing { request: self.current, node, ask, within: until.since(now) };
        self.submit(now, Held { outgoing, until });
    }

    /// Holds a request back, or sends it. If it would wait for too long, it is sent at once: a release with a tombstone, a
    /// claim although the node may refuse it.
    fn submit(&mut self, now: Moment, mut held: Held) {
        let node = &mut self.all[held.outgoing.node.0];
        let waits = self.rules.keep(Rule::ReleaseAfterClaim);
        let wait = if let Ask::Acquire { claim, .. } = &held.outgoing.ask {
            node.held_back.until(&claim.name).map(|until| (claim.name.clone(), until))
        } else if let Ask::Release(request) = &held.outgoing.ask
            && waits
        {
            node.claimed_until(request.owner).map(|until| (request.name.clone(), until))
        } else {
            None
        };
        if let Some((name, until)) = wait.filter(|(_, until)| *until <= held.until) {
            return node.held_back.push(name, until, held);
        }
        if let Ask::Release(request) = &mut held.outgoing.ask
            && (waits || node.claimed_until(request.owner).is_none())
        {
            *request = node.release_of(now, request);
        }
        self.post_in_time(now, held);
    }

    fn post_in_time(&mut self, now: Moment, Held { mut outgoing, until }: Held) {
        outgoing.within = until.since(now);
        if !outgoing.within.is_zero() {
            return self.post(outgoing);
        }
        self.too_late(now, outgoing);
    }

    /// A request that was held back for too long fails.
    pub(super) fn too_late(&mut self, now: Moment, outgoing: Outgoing) {
        let over = now + self.membership.max_ttl;
        let node = &mut self.all[outgoing.node.0];
        let (operation, effect) = if let Ask::Release(request) = &outgoing.ask {
            node.owe(request, now, over);
            (Operation::Release, Effect::Unknown)
        } else {
            (Operation::Acquire, Effect::None)
        };
        if let Ask::Acquire { claim, .. } = &outgoing.ask {
            node.answered_claim(claim.owner);
        }
        let told = "an earlier claim for this lock was not answered in time";
        let error = BackendError::new(BACKEND, operation, ErrorKind::Unreachable, effect, told);
        self.unsendable.push((outgoing, Err(error)));
    }

    /// A claim for this lock has an outcome: what waited for it is sent, or held back behind the next claim.
    pub(super) fn send_behind(&mut self, now: Moment, node: NodeId, claim: &Claim) {
        for held in self.all[node.0].held_back.take(&claim.name) {
            self.submit(now, held);
        }
    }

    /// Sends everything that is held back, and repeats, for the current request, the releases that nodes have not
    /// confirmed. Releases leave tombstones.
    pub(super) fn send_held_back(&mut self, now: Moment, within: Duration) {
        for id in self.ids() {
            let node = &mut self.all[id.0];
            for mut held in node.held_back.take_all() {
                if let Ask::Release(request) = &mut held.outgoing.ask {
                    *request = self.all[id.0].release_of(now, request);
                }
                self.post_in_time(now, held);
            }
            for request in self.all[id.0].take_due(now) {
                self.send(id, Ask::Release(request), within);
            }
        }
    }

    pub(super) fn take_unsent(&mut self) -> impl Iterator<Item = Outgoing> + '_ {
        self.unsent.drain(..)
    }

    /// The requests that cannot be sent any more, with their errors.
    pub(super) fn take_unsendable(&mut self) -> Option<(Outgoing, Outcome)> {
        self.unsendable.pop()
    }

    /// How many outcomes the current request waits for in addition, since this was last called.
    pub(super) fn take_opened(&mut self) -> usize {
        std::mem::take(&mut self.opened)
    }
}
