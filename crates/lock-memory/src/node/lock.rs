//! One lock as a node keeps it: its holder, the tombstones of late claims, and the clients that want a hint when it is free.

use std::time::Duration;

use lock_core::node::{NodeTime, OwnerDigest, Revocation, Told};
use lock_core::{
    Claim, Fenced, FencingToken, Lease, LeaseId, Moment, Note, Owner, Queueing, ReleaseRequest, TokenRange,
};

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
    revoked: Vec<Revoked>,
}

/// The revocation of an owner.
#[derive(Clone, Debug)]
struct Revoked {
    owner: OwnerDigest,
    /// By which the operator named the lease.
    token: FencingToken,
    /// Those of the lease that was ended; `None` if the owner held nothing.
    tokens: Option<TokenRange>,
    by: Note,
    until: Moment,
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
        self.revoked.retain(|revoked| clock < revoked.until);
    }

    pub(crate) fn is_empty(&self) -> bool {
        let is_unused = self.hold.is_none() && self.tombstones.is_empty() && self.interests.is_empty();
        is_unused && self.revoked.is_empty()
    }

    pub(crate) fn was_given_up(&self, owner: Owner) -> bool {
        let is_revoked = || self.revoked.iter().any(|revoked| revoked.owner == digest_of(owner));
        self.tombstones.contains(owner) || is_revoked()
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

    /// Ends the hold of one of these owners, and refuses their claims. Returns whether there was a hold.
    pub(crate) fn revoke(&mut self, clock: Moment, revocation: &Revocation) -> bool {
        let Revocation { token, owners, by, lasts, .. } = revocation;
        let ended = self.hold.take_if(|hold| owners.contains(&digest_of(hold.owner)));
        let ended = ended.map(|hold| (digest_of(hold.owner), hold.tokens));
        self.revoked.extend(owners.iter().map(|owner| {
            let tokens = ended.as_ref().filter(|(ended, _)| ended == owner).map(|(_, tokens)| *tokens);
            Revoked { owner: owner.clone(), token: *token, tokens, by: by.clone(), until: clock + *lasts }
        }));
        ended.is_some()
    }

    /// Whose lease has this token, and whose was revoked by it.
    pub(crate) fn owners(&self, clock: Moment, token: FencingToken) -> Vec<OwnerDigest> {
        let held = self.hold.iter().filter(|hold| clock < hold.until && hold.tokens.contains(token));
        let revoked = self.revoked.iter().filter(|revoked| clock < revoked.until && revoked.token == token);
        held.map(|hold| digest_of(hold.owner)).chain(revoked.map(|revoked| revoked.owner.clone())).collect()
    }

    /// Who revoked the lease with this lowest or highest token.
    pub(crate) fn revoked_by(&self, clock: Moment, token: FencingToken) -> Option<&Note> {
        let is_it = |tokens: TokenRange| [tokens.low(), tokens.high()].contains(&token);
        let known = |revoked: &&Revoked| clock < revoked.until && revoked.tokens.is_some_and(is_it);
        self.revoked.iter().find(known).map(|revoked| &revoked.by)
    }

    /// Removes the first client that wants a hint.
    pub(crate) fn next_to_tell(&mut self) -> Option<ClientId> {
        (!self.interests.is_empty()).then(|| self.interests.remove(0).client)
    }

    pub(crate) fn refuse_late_claims(&mut self, clock: Moment, request: &ReleaseRequest) {
        self.tombstones.add(request.owner, clock + tombstone_for(request.terms.ttl));
    }
}

/// An owner as others may know it.
pub(crate) fn digest_of(owner: Owner) -> OwnerDigest {
    OwnerDigest(LeaseId::of(owner, FencingToken::MAX).to_string())
}

/// A node's clock as tokens see it.
pub(crate) fn node_time(clock: Moment) -> NodeTime {
    NodeTime(clock.as_nanos() / 1000)
}
