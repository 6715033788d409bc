//! One lock as a node keeps it: its holder, the tombstones of late claims, and the clients that want a hint when it is free.

use std::time::Duration;

use lock_core::node::{NodeTime, Told};
use lock_core::{Claim, Fenced, Lease, Moment, Owner, Queueing, ReleaseRequest};

use lock_rules::{Hold, tombstone_for};

use crate::lock::Tombstones;
use crate::notice::ClientId;

/// How long after its last claim a client still gets hints about a lock.
///
/// Chosen: waiters ask again far sooner, and a hint that nobody hears delays the others.
const INTEREST: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLock {
    pub(crate) hold: Option<Hold>,
    tombstones: Tombstones,
    interests: Vec<Interest>,
}

#[derive(Clone, Debug)]
struct Interest {
    client: ClientId,
    until: Moment,
}

impl NodeLock {
    /// Drops everything that has expired: a hold that has ended by the clock is no hold.
    pub(crate) fn forget_expired(&mut self, clock: Moment) {
        self.hold.take_if(|hold| hold.until <= clock);
        self.tombstones.forget_expired(clock);
        self.interests.retain(|interest| clock < interest.until);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.hold.is_none() && self.tombstones.is_empty() && self.interests.is_empty()
    }

    pub(crate) fn was_given_up(&self, owner: Owner) -> bool {
        self.tombstones.contains(owner)
    }

    /// Answers a claim on a lock that is held. If the claim's owner holds it, its full ttl is re-armed.
    pub(crate) fn answer_held(&mut self, clock: Moment, inbox: Option<ClientId>, claim: &Claim) -> Option<Told> {
        let hold = self.hold.as_mut()?;
        if hold.owner == claim.owner {
            hold.until = clock + claim.terms.ttl.get();
            return Some(Told::Granted { token: hold.tokens.high(), clock: node_time(clock) });
        }
        let told = Told::Held { holder: hold.holder(), remaining: Some(hold.until.since(clock)) };
        match (claim.queueing, inbox) {
            (Queueing::Wanted, Some(client)) => self.note_interest(clock, client),
            (Queueing::Wanted, None) | (Queueing::Unwanted, _) => {}
        }
        Some(told)
    }

    /// Each client once, in the order of first arrival.
    fn note_interest(&mut self, clock: Moment, client: ClientId) {
        let until = clock + INTEREST;
        match self.interests.iter_mut().find(|interest| interest.client == client) {
            Some(interest) => interest.until = until,
            None => self.interests.push(Interest { client, until }),
        }
    }

    pub(crate) fn drop_interest(&mut self, client: ClientId) {
        self.interests.retain(|interest| interest.client != client);
    }

    /// The test against the grant's own token, not the node's counter: that one belongs to all locks.
    pub(crate) fn fence(&mut self, clock: Moment, lease: &Lease) -> Fenced {
        match &mut self.hold {
            Some(hold) if hold.owner != lease.owner => {
                let came_after = hold.tokens.low() > lease.tokens.high();
                if came_after { Fenced::Higher(hold.tokens.low()) } else { Fenced::NotHeld }
            }
            Some(hold) if hold.tokens.high() > lease.tokens.high() => Fenced::Higher(hold.tokens.high()),
            Some(hold) => {
                hold.tokens = lease.tokens;
                hold.until = clock + lease.terms.ttl.get();
                Fenced::Acknowledged
            }
            None => Fenced::NotHeld,
        }
    }

    /// Whether the owner held.
    pub(crate) fn end(&mut self, owner: Owner) -> bool {
        self.hold.take_if(|hold| hold.owner == owner).is_some()
    }

    /// Removes the first client that wants a hint.
    pub(crate) fn next_to_tell(&mut self) -> Option<ClientId> {
        (!self.interests.is_empty()).then(|| self.interests.remove(0).client)
    }

    pub(crate) fn refuse_late_claims(&mut self, clock: Moment, request: &ReleaseRequest) {
        self.tombstones.add(request.owner, clock + tombstone_for(request.terms.ttl));
    }
}

/// A node's clock as tokens see it.
pub(crate) fn node_time(clock: Moment) -> NodeTime {
    NodeTime(clock.as_nanos() / 1000)
}
