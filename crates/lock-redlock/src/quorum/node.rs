//! What is known about one node: whether it votes, whether it answers, and which releases it has not confirmed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Certainty, Moment, Owner, ReleaseRequest};

use super::held_back::HeldBack;

/// A node that did not answer is probed after this time, and then after twice as long each time.
const PROBE_MIN: Duration = Duration::from_millis(50);
/// The longest time between two probes.
const PROBE_MAX: Duration = Duration::from_secs(1);
/// How soon a release is repeated at a node that refused it.
pub(super) const OWED_REST: Duration = Duration::from_secs(1);
/// How many owners are remembered for a node that does not answer. Beyond that, leases end by their ttl.
const OWED_MAX: usize = 1024;

/// What is known about a node.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) address: String,
    /// The epoch that it votes in, as far as this client knows.
    pub(super) epoch: Option<Epoch>,
    /// Why it does not count, according to the last recovery pass.
    pub(super) fault: Option<BackendError>,
    pub(super) trust: Trust,
    /// How many requests to it have no outcome yet.
    pub(super) in_flight: usize,
    /// Claims without an outcome, sent or held back, and by when they have one.
    claims: BTreeMap<Owner, Moment>,
    /// What waits for the outcome of a claim.
    pub(super) held_back: HeldBack,
    /// The owners whose claims had no answer: these may arrive at any time, or never.
    lost: BTreeSet<Owner>,
    /// Until then, any owner's claim may be one of those, because there were too many to remember.
    anybody_lost: Option<Moment>,
    owed: BTreeMap<Owner, Owed>,
}

/// A release that a node has not confirmed.
#[derive(Debug)]
struct Owed {
    /// When it may be sent again.
    due: Moment,
    /// When everything that it could end is over.
    until: Moment,
    request: Arc<ReleaseRequest>,
}

/// Whether a node can be expected to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Trusted,
    /// It did not answer last time. At that moment, one request may probe it.
    Suspect {
        probe_at: Moment,
        pause: Duration,
    },
}

impl Node {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            epoch: None,
            fault: None,
            trust: Trust::Trusted,
            in_flight: 0,
            claims: BTreeMap::new(),
            held_back: HeldBack::default(),
            lost: BTreeSet::new(),
            anybody_lost: None,
            owed: BTreeMap::new(),
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trust == Trust::Trusted
    }

    /// Whether it may be asked. The request that may ask a suspect node is its probe.
    pub(super) fn may_be_asked(&mut self, now: Moment) -> bool {
        match &mut self.trust {
            Trust::Trusted => true,
            Trust::Suspect { probe_at, .. } if now < *probe_at => false,
            Trust::Suspect { probe_at, pause } => {
                *pause = (*pause * 2).min(PROBE_MAX);
                *probe_at = now + *pause;
                true
            }
        }
    }

    pub(super) fn claims(&mut self, owner: Owner, until: Moment) {
        self.claims.insert(owner, until);
    }

    /// By when the claim of this owner has an outcome, if it has none yet.
    pub(super) fn claimed_until(&self, owner: Owner) -> Option<Moment> {
        self.claims.get(&owner).copied()
    }

    /// It answered the claim of this owner, or never received it.
    pub(super) fn answered_claim(&mut self, owner: Owner) {
        self.claims.remove(&owner);
    }

    /// There was no answer, so the claim may still arrive, even after its release.
    pub(super) fn lost_claim(&mut self, owner: Owner, until: Moment) {
        self.claims.remove(&owner);
        if self.lost.len() == OWED_MAX && !self.lost.contains(&owner) {
            self.lost.pop_first();
            self.anybody_lost = Some(until);
        }
        self.lost.insert(owner);
    }

    /// The release to send to it: with a tombstone if a claim of this owner may still arrive.
    pub(super) fn release_of(&self, now: Moment, request: &Arc<ReleaseRequest>) -> Arc<ReleaseRequest> {
        let may_arrive = self.claims.contains_key(&request.owner)
            || self.lost.contains(&request.owner)
            || self.anybody_lost.is_some_and(|until| now < until);
        if may_arrive { with_tombstone(request) } else { Arc::clone(request) }
    }

    /// It confirmed a release.
    pub(super) fn released(&mut self, request: &ReleaseRequest) {
        self.owed.remove(&request.owner);
        self.lost.remove(&request.owner);
    }

    pub(super) fn failed(&mut self, now: Moment) {
        if self.is_trusted() {
            self.trust = Trust::Suspect { probe_at: now + PROBE_MIN, pause: PROBE_MIN };
        }
    }

    /// It answers: returns the releases that it has not confirmed.
    pub(super) fn answered(&mut self, now: Moment) -> Vec<Arc<ReleaseRequest>> {
        self.trust = Trust::Trusted;
        self.take_due(now)
    }

    /// The releases that the node has not confirmed and that are due again.
    pub(super) fn take_due(&mut self, now: Moment) -> Vec<Arc<ReleaseRequest>> {
        self.owed.retain(|_, owed| now < owed.until);
        let due = self.owed.values_mut().filter(|owed| owed.due <= now);
        due.map(|owed| owed.say_again(now)).collect()
    }

    /// Remembers a release until the node answers again. A claim of that owner may arrive before or after it.
    pub(super) fn owe(&mut self, request: &Arc<ReleaseRequest>, due: Moment, until: Moment) {
        if self.owed.len() == OWED_MAX {
            self.owed.pop_first();
        }
        let request = with_tombstone(request);
        let owed = self.owed.entry(request.owner).or_insert(Owed { due, until, request });
        owed.due = owed.due.min(due);
    }
}

/// A release after which the claim is refused, should it arrive later, for as long as any lease may last.
fn with_tombstone(request: &ReleaseRequest) -> Arc<ReleaseRequest> {
    Arc::new(ReleaseRequest { certainty: Certainty::Unknown, ..request.clone() })
}

impl Owed {
    fn say_again(&mut self, now: Moment) -> Arc<ReleaseRequest> {
        self.due = now + OWED_REST;
        Arc::clone(&self.request)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lock_core::{Evidence, Terms, Ttl};

    use super::*;

    const MANY: u32 = 1100;

    fn release_requests() -> Vec<Arc<ReleaseRequest>> {
        let owner = |number: u32| Owner::from_random(u128::from(number).to_be_bytes());
        let request = |number| ReleaseRequest {
            name: "a".parse().unwrap(),
            owner: owner(number),
            terms: Terms::exclusive(Ttl::DEFAULT),
            certainty: Certainty::Answered,
            keep: None,
            evidence: Evidence::Nothing,
        };
        (0..MANY).map(|number| Arc::new(request(number))).collect()
    }

    #[test]
    fn a_release_without_an_answer_to_its_claim_leaves_a_tombstone_however_many_there_are() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut node = Node::new("a".into());
        let all = release_requests();
        all.iter().for_each(|request| node.claims(request.owner, until));
        let unsure = |node: &Node, now| {
            let told = |request: &&Arc<ReleaseRequest>| node.release_of(now, request).certainty == Certainty::Unknown;
            all.iter().filter(told).count()
        };
        assert_eq!(unsure(&node, now), all.len(), "in flight");
        all.iter().for_each(|request| node.lost_claim(request.owner, until));
        assert_eq!(unsure(&node, now), all.len(), "without an answer");
        all.iter().for_each(|request| node.released(request));
        assert_eq!(unsure(&node, until), 0, "all of them are over");
        all.iter().for_each(|request| node.claims(request.owner, until));
        all.iter().for_each(|request| node.answered_claim(request.owner));
        assert_eq!(unsure(&node, until), 0, "answered");
    }

    #[test]
    fn a_node_that_does_not_answer_is_asked_more_and_more_rarely() {
        let mut node = Node::new("a".into());
        assert!(node.may_be_asked(Moment::ORIGIN) && node.is_trusted());
        node.failed(Moment::ORIGIN);
        let (mut now, mut pauses) = (Moment::ORIGIN, Vec::new());
        for _ in 0..7 {
            let asked_at = now;
            while !node.may_be_asked(now) {
                now = now + Duration::from_millis(1);
            }
            pauses.push(now.since(asked_at).as_millis());
            node.failed(now);
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        node.answered(now);
        assert!(node.is_trusted() && node.may_be_asked(now) && node.may_be_asked(now));
    }

    #[test]
    fn claims_without_an_answer_say_nothing_of_other_owners_unless_there_are_too_many() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut node = Node::new("a".into());
        let all = release_requests();
        let (lost, stranger) = (&all[..OWED_MAX], &all[OWED_MAX]);
        for request in lost.iter().chain(&lost[..1]) {
            node.lost_claim(request.owner, until);
        }
        assert_eq!(node.release_of(now, stranger).certainty, Certainty::Answered);
        node.lost_claim(all[OWED_MAX + 1].owner, until);
        assert_eq!(node.release_of(now, stranger).certainty, Certainty::Unknown, "it may be one of those");
    }

    #[test]
    fn what_is_owed_is_bounded_and_said_again_after_a_rest() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut node = Node::new("a".into());
        release_requests().iter().for_each(|request| node.owe(request, now, until));
        let said = node.answered(now);
        assert!(said.len() == OWED_MAX && said.iter().all(|request| request.certainty == Certainty::Unknown));
        assert_eq!(node.answered(now).len(), 0, "not all the time");
        assert_eq!(node.answered(now + OWED_REST).len(), OWED_MAX);
        assert_eq!(node.answered(until).len(), 0, "what they would end is over");
    }
}
