//! What is known of one node: whether it votes, whether it answers, what it is still owed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use lock_core::node::Epoch;
use lock_core::{BackendError, Certainty, Moment, Owner, ReleaseRequest, Terms, Ttl};

/// A node that did not answer is asked again after so long at first, and twice as long each time ...
const PROBE_MIN: Duration = Duration::from_millis(50);
/// ... up to this.
const PROBE_MAX: Duration = Duration::from_secs(1);
/// How soon a node is told again of a release that it did not take.
pub(super) const OWED_REST: Duration = Duration::from_secs(1);
/// How many owners are kept in mind for a node that does not answer. What is owed beyond that runs out with its lease.
const OWED_MAX: usize = 1024;

#[derive(Debug)]
pub(super) struct Peer {
    pub(super) address: String,
    /// The epoch that it votes in, as far as this client knows.
    pub(super) epoch: Option<Epoch>,
    /// Why it cannot be a node as it is, by the last pass of the guard.
    pub(super) fault: Option<BackendError>,
    pub(super) trust: Trust,
    /// How many letters are under way.
    pub(super) under_way: usize,
    /// Claims that are under way, with the release that was sent after them if one was. There are no more than letters.
    claims: BTreeMap<Owner, Option<Arc<ReleaseRequest>>>,
    /// Whose claims had no answer: they may arrive at any time, or never.
    lost: BTreeSet<Owner>,
    /// Until then anybody's claim may be one of those, as there were too many of them.
    anybody_lost: Option<Moment>,
    owed: BTreeMap<Owner, Owed>,
}

/// A release that it has not taken.
#[derive(Debug)]
struct Owed {
    /// Not to be sent again before this.
    due: Moment,
    /// Whatever it would end is over by then.
    until: Moment,
    request: Arc<ReleaseRequest>,
}

/// Whether a node can be expected to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    Trusted,
    /// It did not answer the last time, and is asked again at that moment, by one letter.
    Suspect {
        probe_at: Moment,
        pause: Duration,
    },
}

impl Peer {
    pub(super) fn new(address: String) -> Self {
        Self {
            address,
            epoch: None,
            fault: None,
            trust: Trust::Trusted,
            under_way: 0,
            claims: BTreeMap::new(),
            lost: BTreeSet::new(),
            anybody_lost: None,
            owed: BTreeMap::new(),
        }
    }

    pub(super) fn is_trusted(&self) -> bool {
        self.trust == Trust::Trusted
    }

    /// Whether it may be asked; who may ask a suspect is its probe.
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

    pub(super) fn claims(&mut self, owner: Owner) {
        self.claims.insert(owner, None);
    }

    /// It answered the claim of this owner, or surely never had it.
    pub(super) fn answered_claim(&mut self, owner: Owner) {
        self.claims.remove(&owner);
    }

    /// No answer came, so the claim may arrive at any time, also after the release that was sent behind it.
    pub(super) fn lost_claim(&mut self, now: Moment, owner: Owner, until: Moment) {
        let parted = self.claims.remove(&owner).flatten();
        if self.lost.len() == OWED_MAX && !self.lost.contains(&owner) {
            self.lost.pop_first();
            self.anybody_lost = Some(until);
        }
        self.lost.insert(owner);
        if let Some(request) = parted {
            self.owe(&request, now, until);
        }
    }

    /// What it has to be told when an owner leaves.
    pub(super) fn release_request(&mut self, now: Moment, request: &Arc<ReleaseRequest>) -> Arc<ReleaseRequest> {
        let ttl = if let Some(parted) = self.claims.get_mut(&request.owner) {
            // Most likely the claim comes first. If not, that is seen soon, and said then.
            *parted = Some(Arc::clone(request));
            Ttl::MIN
        } else if self.lost.contains(&request.owner) || self.anybody_lost.is_some_and(|until| now < until) {
            request.terms.ttl
        } else {
            return Arc::clone(request);
        };
        let terms = Terms { ttl, ..request.terms };
        Arc::new(ReleaseRequest { terms, certainty: Certainty::Unknown, ..ReleaseRequest::clone(request) })
    }

    /// It took a release.
    pub(super) fn released(&mut self, request: &ReleaseRequest) {
        self.owed.remove(&request.owner);
        self.lost.remove(&request.owner);
    }

    pub(super) fn failed(&mut self, now: Moment) {
        if self.is_trusted() {
            self.trust = Trust::Suspect { probe_at: now + PROBE_MIN, pause: PROBE_MIN };
        }
    }

    /// It answers, and so can be given what it is owed.
    pub(super) fn answered(&mut self, now: Moment) -> Vec<Arc<ReleaseRequest>> {
        self.trust = Trust::Trusted;
        self.owed.retain(|_, owed| now < owed.until);
        let due = self.owed.values_mut().filter(|owed| owed.due <= now);
        due.map(|owed| owed.say_again(now)).collect()
    }

    /// Remembers a release for when it answers again. A claim of that owner may arrive before it, or after.
    pub(super) fn owe(&mut self, request: &Arc<ReleaseRequest>, due: Moment, until: Moment) {
        if self.owed.len() == OWED_MAX {
            self.owed.pop_first();
        }
        let request = Arc::new(ReleaseRequest { certainty: Certainty::Unknown, ..ReleaseRequest::clone(request) });
        let owed = self.owed.entry(request.owner).or_insert(Owed { due, until, request });
        owed.due = owed.due.min(due);
    }
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

    use super::*;

    const MANY: u32 = 1100;

    fn release_requests() -> Vec<Arc<ReleaseRequest>> {
        let owner = |number: u32| Owner::from_random(u128::from(number).to_be_bytes());
        let request = |number| ReleaseRequest {
            name: "a".parse().unwrap(),
            owner: owner(number),
            terms: Terms::exclusive(Ttl::DEFAULT),
            certainty: Certainty::Answered,
        };
        (0..MANY).map(|number| Arc::new(request(number))).collect()
    }

    #[test]
    fn whoever_leaves_before_an_answer_leaves_a_tombstone_however_many_they_are() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut peer = Peer::new("a".into());
        let all = release_requests();
        all.iter().for_each(|request| peer.claims(request.owner));
        let unsure = |peer: &mut Peer, now, ttl| {
            let told = |request: &&Arc<ReleaseRequest>| {
                let told = peer.release_request(now, request);
                (told.certainty, told.terms.ttl) == (Certainty::Unknown, ttl)
            };
            all.iter().filter(told).count()
        };
        assert_eq!(unsure(&mut peer, now, Ttl::MIN), all.len(), "under way");
        all.iter().for_each(|request| peer.lost_claim(now, request.owner, until));
        assert_eq!(unsure(&mut peer, now, Ttl::DEFAULT), all.len(), "without an answer");
        all.iter().for_each(|request| peer.released(request));
        assert_eq!(unsure(&mut peer, until, Ttl::DEFAULT), 0, "all of them are over");
        all.iter().for_each(|request| peer.claims(request.owner));
        all.iter().for_each(|request| peer.answered_claim(request.owner));
        assert_eq!(unsure(&mut peer, until, Ttl::MIN), 0, "answered");
    }

    #[test]
    fn a_node_that_does_not_answer_is_asked_more_and_more_rarely() {
        let mut peer = Peer::new("a".into());
        assert!(peer.may_be_asked(Moment::ORIGIN) && peer.is_trusted());
        peer.failed(Moment::ORIGIN);
        let (mut now, mut pauses) = (Moment::ORIGIN, Vec::new());
        for _ in 0..7 {
            let asked_at = now;
            while !peer.may_be_asked(now) {
                now = now + Duration::from_millis(1);
            }
            pauses.push(now.since(asked_at).as_millis());
            peer.failed(now);
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1000, 1000]);
        peer.answered(now);
        assert!(peer.is_trusted() && peer.may_be_asked(now) && peer.may_be_asked(now));
    }

    #[test]
    fn claims_without_an_answer_say_nothing_of_other_owners_unless_there_are_too_many() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut peer = Peer::new("a".into());
        let all = release_requests();
        let (lost, stranger) = (&all[..OWED_MAX], &all[OWED_MAX]);
        for request in lost.iter().chain(&lost[..1]) {
            peer.lost_claim(now, request.owner, until);
        }
        assert_eq!(peer.release_request(now, stranger).certainty, Certainty::Answered);
        peer.lost_claim(now, all[OWED_MAX + 1].owner, until);
        assert_eq!(peer.release_request(now, stranger).certainty, Certainty::Unknown, "it may be one of those");
    }

    #[test]
    fn what_is_owed_is_bounded_and_said_again_after_a_rest() {
        let (now, until) = (Moment::ORIGIN, Moment::ORIGIN + Duration::from_secs(60));
        let mut peer = Peer::new("a".into());
        release_requests().iter().for_each(|request| peer.owe(request, now, until));
        let said = peer.answered(now);
        assert!(said.len() == OWED_MAX && said.iter().all(|request| request.certainty == Certainty::Unknown));
        assert_eq!(peer.answered(now).len(), 0, "not all the time");
        assert_eq!(peer.answered(now + OWED_REST).len(), OWED_MAX);
        assert_eq!(peer.answered(until).len(), 0, "what they would end is over");
    }
}
