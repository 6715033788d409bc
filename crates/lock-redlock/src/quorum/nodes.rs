//! What is known about the nodes: which of them vote, which releases each has not confirmed, what is held. All requests
//! share it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::{Ask, Epoch, Membership, Told};
use lock_core::{BackendError, Effect, FencingToken, Lease, Moment, Owner, TokenRange, Ttl};

use super::node::{Node, OWED_REST};
use super::outgoing::{NodeId, Outcome, Outgoing, RequestId};
use super::rule::Rules;
use super::trouble::{Failures, refusal};
use super::watch::Watch;
use super::wishes::Wishes;

/// What is known about the nodes.
#[derive(Debug)]
pub(super) struct Nodes {
    pub(super) all: Vec<Node>,
    pub(super) membership: Arc<Membership>,
    /// The longest ttl that clients may ask for.
    pub(super) max_ttl: Ttl,
    pub(super) wishes: Wishes,
    /// For each owner that holds a lock: the highest token that a node drew for it. All nodes renew under that.
    pub(super) held: BTreeMap<Owner, FencingToken>,
    /// The longest ttl that was announced to a majority of the nodes.
    pub(super) announced: Duration,
    pub(super) watch: Watch,
    pub(super) rules: Rules,
    /// The request that is being processed.
    pub(super) current: RequestId,
    /// How many outcomes were added to what the current request waits for, since they were last counted.
    pub(super) opened: usize,
    /// Requests to be sent, most of them for the current request.
    pub(super) unsent: Vec<Outgoing>,
    /// Requests that were held back until it was too late to send them.
    pub(super) unsendable: Vec<(Outgoing, Outcome)>,
}

/// A node whose vote is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Voter {
    pub(super) node: NodeId,
    pub(super) epoch: Epoch,
    /// Whether the request waits for its answer. A node that did not answer before is only probed.
    pub(super) is_awaited: bool,
}

impl Nodes {
    pub(super) fn new(addresses: &[String], max_ttl: Ttl) -> Result<Self, BackendError> {
        let membership = Membership::new(addresses.to_vec(), max_ttl.get());
        let members = &membership.members;
        if members.len() < 3 {
            let told = format!("a quorum of {} is too small", members.len());
            let remedy = "name at least three nodes, preferably an odd number; for one server use its own URL";
            return Err(refusal(told, remedy));
        }
        if let Some(twice) = members.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(refusal(format!("the node {} is listed twice", twice[0]), "name each node once"));
        }
        Ok(Self {
            all: addresses.iter().map(|address| Node::new(address.clone())).collect(),
            membership: Arc::new(membership),
            max_ttl,
            wishes: Wishes::new(addresses.len()),
            held: BTreeMap::new(),
            announced: Duration::ZERO,
            watch: Watch::default(),
            rules: Rules::default(),
            current: RequestId::NONE,
            opened: 0,
            unsent: Vec::new(),
            unsendable: Vec::new(),
        })
    }

    pub(super) fn majority(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// So many nodes that every majority includes at least one of them.
    pub(super) fn overlap(&self) -> usize {
        self.all.len() - self.majority() + 1
    }

    pub(super) fn failures(&self) -> Failures {
        Failures::new(self.overlap())
    }

    pub(super) fn are_quiet(&self) -> bool {
        self.all.iter().all(|node| node.in_flight == 0 || !node.is_trusted())
    }

    /// Whether it is time for a recovery pass.
    pub(super) fn wants_pass(&self, now: Moment) -> bool {
        let faulty = self.watch.refusal.is_some() || self.all.iter().any(|node| node.epoch.is_none());
        faulty && self.watch.may_pass(now)
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = NodeId> + use<> {
        (0..self.all.len()).map(NodeId)
    }

    pub(super) fn voters(&self) -> impl Iterator<Item = (NodeId, Epoch)> + '_ {
        self.ids().zip(&self.all).filter_map(|(id, node)| Some((id, node.epoch?)))
    }

    /// The voters to ask: those that are expected to answer, and some others as a probe. If those alone are no majority, all
    /// are asked, and waited for.
    pub(super) fn electorate(&mut self, now: Moment) -> Vec<Voter> {
        let trusted = self.all.iter().filter(|node| node.epoch.is_some() && node.is_trusted()).count();
        let short = trusted < self.majority();
        let voter = |(node, state): (NodeId, &mut Node)| {
            let epoch = state.epoch?;
            let is_awaited = short || state.is_trusted();
            (state.may_be_asked(now) || short).then_some(Voter { node, epoch, is_awaited })
        };
        self.ids().zip(&mut self.all).filter_map(voter).collect()
    }

    /// What an outcome means for its node, whatever the request. A node that answers again is sent the releases that it
    /// has not confirmed.
    pub(super) fn settle(&mut self, now: Moment, sent: &Outgoing, outcome: &Outcome) {
        let Outgoing { node: id, ask, within, .. } = sent;
        let node = &mut self.all[id.0];
        node.in_flight = node.in_flight.saturating_sub(1);
        match outcome {
            Ok(Told::Granted { clock, .. }) => self.wishes.saw(now, *id, *clock),
            Ok(Told::View(view)) => self.wishes.saw(now, *id, view.clock),
            Ok(Told::Abstains) => node.epoch = None,
            Ok(_) | Err(_) => {}
        }
        let until = now + self.membership.max_ttl;
        let sure = outcome.as_ref().map_or_else(|error| error.effect() == Effect::None, |_| true);
        match (ask, outcome) {
            (Ask::Acquire { claim, .. }, _) if sure => node.answered_claim(claim.owner),
            (Ask::Acquire { claim, .. }, _) => node.lost_claim(claim.owner, until),
            (Ask::Release(request), Ok(_)) => node.released(request),
            // A node that is loading its data or is out of memory may accept it a little later.
            (Ask::Release(request), Err(error)) if error.kind().is_an_answer() => {
                node.owe(request, now + OWED_REST, until)
            }
            (Ask::Release(request), Err(_)) => node.owe(request, now, until),
            (Ask::Fence { .. } | Ask::Look | Ask::Mark { .. } | Ask::Record { .. }, _) => {}
            (Ask::Install { .. } | Ask::Move { .. } | Ask::Inspect(_), _) => {}
        }
        if outcome.as_ref().is_err_and(|error| !error.kind().is_an_answer()) {
            node.failed(now);
        } else {
            for request in node.answered(now) {
                self.send(*id, Ask::Release(request), *within);
            }
        }
        if let Ask::Acquire { claim, .. } = ask {
            self.send_behind(now, *id, claim);
        }
    }

    /// There will be no outcome. What was sent may arrive at any time, or never.
    pub(super) fn forget(&mut self, now: Moment, sent: &Outgoing) {
        let until = now + self.membership.max_ttl;
        let node = &mut self.all[sent.node.0];
        node.in_flight = node.in_flight.saturating_sub(1);
        match &sent.ask {
            Ask::Acquire { claim, .. } => {
                node.lost_claim(claim.owner, until);
                for held in node.held_back.take(&claim.name) {
                    self.too_late(now, held.outgoing);
                }
            }
            Ask::Release(request) => node.owe(request, now, until),
            Ask::Fence { .. } | Ask::Look | Ask::Mark { .. } | Ask::Record { .. } => {}
            Ask::Install { .. } | Ask::Move { .. } | Ask::Inspect(_) => {}
        }
    }

    /// A node that answered after the verdict drew this token for an owner that holds the lock.
    pub(super) fn raise(&mut self, owner: Owner, token: FencingToken) {
        if let Some(highest) = self.held.get_mut(&owner) {
            *highest = token.max(*highest);
        }
    }

    /// The lease under the highest token that any node drew for it. Otherwise a node that drew a higher one would refuse to
    /// renew it. Later grants are above all of them.
    pub(super) fn raised(&self, lease: Lease) -> Lease {
        let highest = self.held.get(&lease.owner).copied().filter(|highest| *highest > lease.tokens.high());
        let tokens = highest.and_then(|highest| TokenRange::new(lease.tokens.low(), highest).ok());
        Lease { tokens: tokens.unwrap_or(lease.tokens), ..lease }
    }
}
