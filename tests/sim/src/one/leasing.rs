//! What a client knows of its entries where each ends with a lease of its own, and the requests that it makes of one, as in `lock-etcd`.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::{Answer, Claim, Lease, Moment, Owner, Renewed};
use lock_rules::{LeaseProof, PLACE_MAX, Renewal, Seen, place_for};

use super::known::{KeptAlive, Known, LeaseId, Told, Version, whole_seconds};
use super::mistake::Mistake;
use super::place::{OwnLease, Place};
use super::units::Seat;
use super::words::{Ask, Say};
use crate::network::ConnId;

/// How much longer than an entry a lease lasts, so that it can be used again.
const USED_AGAIN_WITHIN: Duration = Duration::from_secs(1);
/// How often a request is made again whose outcome is not good enough yet.
const ROUNDS_MAX: u32 = 3;

/// A request that is under way for what a station has asked for.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) ask: Ask,
    sent: Moment,
    before: Option<Seen>,
    rounds: u32,
}

/// What comes next.
pub(super) enum Next {
    Step(Step),
    Told(Say),
}

/// When and where something was answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    pub(super) now: Moment,
    pub(super) conn: ConnId,
    /// When what the station has asked for was handed out.
    pub(super) since: Moment,
}

#[derive(Debug)]
pub(super) struct Leasing {
    mistake: Option<Mistake>,
    places: BTreeMap<Owner, Place>,
    /// Those of entries that were deleted.
    idle: Vec<OwnLease>,
    seen: Option<Seen>,
}

impl Leasing {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, places: BTreeMap::new(), idle: Vec::new(), seen: None }
    }

    /// The first step towards what a station asks for, or another one of this round.
    pub(super) fn begin(&mut self, now: Moment, goal: &Ask, rounds: u32) -> Next {
        let ask = if let Ask::Acquire(claim, seat) = goal {
            match self.places.get(&claim.owner) {
                Some(place) if place.version.is_some() => Ask::KeepAlive(vec![place.current.id]),
                Some(_) => self.transact(goal),
                None => self.take(now, claim, *seat),
            }
        } else if let Ask::Renew(leases) = goal {
            let ids: Vec<_> = self.places_of(leases).flat_map(Place::leases).map(|lease| lease.id).collect();
            if ids.is_empty() {
                return Next::Told(Say::Renew(leases.iter().map(|_| Renewed::NotHeld).collect()));
            }
            Ask::KeepAlive(ids)
        } else if let Ask::Release(request) = goal
            && self.places.get(&request.owner).is_some_and(|place| place.version.is_none())
        {
            // What is not sure to be there is read first.
            Ask::Txn(Box::new(Ask::Look(request.owner)), Vec::new())
        } else {
            self.transact(goal)
        };
        self.step(now, ask, rounds)
    }

    /// Takes a lease for an entry that is not there yet.
    fn take(&mut self, now: Moment, claim: &Claim, seat: Seat) -> Ask {
        let ttl = if seat == Seat::Unwanted { claim.terms.ttl.get() } else { place_for(claim.terms.ttl) };
        let lasts = whole_seconds(ttl + USED_AGAIN_WITHIN);
        let fits = |lease: &OwnLease| lease.lasts == lasts && !lease.proof.lasts(now).is_zero();
        let Some(at) = self.idle.iter().position(fits) else { return Ask::Grant(lasts) };
        let lease = self.idle.swap_remove(at);
        let (id, is_short) = (lease.id, lease.proof.lasts(now) < ttl);
        self.places.insert(claim.owner, Place::new(lease));
        if is_short { Ask::KeepAlive(vec![id]) } else { self.transact(&Ask::Acquire(claim.clone(), seat)) }
    }

    fn step(&self, sent: Moment, ask: Ask, rounds: u32) -> Next {
        Next::Step(Step { ask, sent, before: self.seen, rounds })
    }

    /// Those of these leases whose entries are there.
    fn places_of<'a>(&'a mut self, leases: &'a [Lease]) -> impl Iterator<Item = &'a mut Place> {
        let is_asked = |owner: &Owner| leases.iter().any(|lease| lease.owner == *owner);
        let there = self.places.iter_mut().filter(move |(owner, place)| is_asked(owner) && place.version.is_some());
        there.map(|(_, place)| place)
    }

    fn known(&self, asked: &Ask) -> Vec<Known> {
        asked.owners().iter().filter_map(|owner| self.places.get(owner)).map(Place::known).collect()
    }

    /// The transaction that does what is asked for.
    fn transact(&mut self, goal: &Ask) -> Ask {
        if let Ask::Renew(leases) = goal {
            let is_there = |lease: &&Lease| self.places.get(&lease.owner).is_some_and(|place| place.version.is_some());
            let there: Vec<_> = leases.iter().filter(is_there).cloned().collect();
            let there = Ask::Renew(there);
            let known = self.known(&there);
            return Ask::Txn(Box::new(there), known);
        }
        if let Ask::Acquire(claim, _) = goal {
            let place = self.places.get_mut(&claim.owner).filter(|place| place.version.is_none());
            place.into_iter().for_each(|place| place.unanswered += 1);
        }
        Ask::Txn(Box::new(goal.clone()), self.known(goal))
    }

    /// What follows from the answer to a step.
    pub(super) fn heard(&mut self, at: At, goal: &Ask, step: &Step, say: Say) -> Next {
        match (&step.ask, say) {
            (Ask::Grant(lasts), Say::Granted(id)) => {
                self.granted(goal, OwnLease { id, lasts: *lasts, proof: LeaseProof::new(step.sent + *lasts) });
                self.after_leases(at.now, goal, step.rounds)
            }
            (Ask::KeepAlive(ids), Say::KeptAlive(kept)) => {
                self.kept_alive(at, step, ids, &kept);
                self.after_leases(at.now, goal, step.rounds)
            }
            (Ask::Txn(_, _), Say::NoLease) => {
                if let Ask::Acquire(claim, _) = goal {
                    self.places.remove(&claim.owner);
                }
                self.begin(at.now, goal, step.rounds)
            }
            (Ask::Txn(asked, _), Say::Txn(answer, told)) => {
                let seen = Seen {
                    server: usize::try_from(at.conn.0).unwrap_or_default(),
                    member: told.member,
                    term: told.term,
                    sent: step.sent,
                    answered: at.now,
                };
                self.seen = Some(seen);
                self.read(goal, asked, &told, &seen);
                self.transacted(at, goal, step, answer.map(|say| *say), asked)
            }
            (_, say) => Next::Told(say),
        }
    }

    /// A lease for an entry that is not there yet, or for a holder's entry that ends with that of its place.
    fn granted(&mut self, goal: &Ask, lease: OwnLease) {
        if let Ask::Acquire(claim, _) = goal {
            self.places.entry(claim.owner).or_insert_with(|| Place::new(lease));
        } else if let Ask::Renew(leases) = goal {
            let owner = self.too_short(leases).map(|lease| lease.owner);
            if let Some(place) = owner.and_then(|owner| self.places.get_mut(&owner)) {
                place.next = Some(lease);
            }
        }
    }

    /// A holder whose entry ends with the lease of its place.
    fn too_short<'a>(&self, leases: &'a [Lease]) -> Option<&'a Lease> {
        let is_too_short = |lease: &&Lease| {
            let ttl = lease.terms.ttl.get();
            let place = self.places.get(&lease.owner).filter(|place| place.version.is_some() && place.next.is_none());
            ttl > PLACE_MAX && place.is_some_and(|place| place.current.lasts < ttl)
        };
        leases.iter().find(is_too_short)
    }

    /// The leases are renewed: now for the entries.
    fn after_leases(&mut self, now: Moment, goal: &Ask, rounds: u32) -> Next {
        let too_short = if let Ask::Renew(leases) = goal { self.too_short(leases) } else { None };
        let ask = match too_short {
            Some(lease) => Ask::Grant(whole_seconds(lease.terms.ttl.get() + USED_AGAIN_WITHIN)),
            None => self.transact(goal),
        };
        self.step(now, ask, rounds)
    }

    fn kept_alive(&mut self, at: At, step: &Step, ids: &[LeaseId], kept: &KeptAlive) {
        let before = step.before.filter(|seen| u64::try_from(seen.server) == Ok(at.conn.0));
        let (sent, answered, by, mistake) = (step.sent, at.now, kept.member, self.mistake);
        for (id, lasts) in ids.iter().zip(&kept.lasts) {
            let lease = self.places.values_mut().flat_map(Place::leases).find(|lease| lease.id == *id);
            let (Some(lease), Some(ttl)) = (lease, *lasts) else { continue };
            if mistake == Some(Mistake::KeepaliveCounts) {
                lease.proof = LeaseProof::new(sent + ttl);
            }
            lease.proof.renewed(Renewal { sent, answered, ttl, before, by });
        }
    }

    /// Compares the places with their keys as they were read.
    fn read(&mut self, goal: &Ask, asked: &Ask, told: &Told, seen: &Seen) {
        for (owner, entry) in asked.owners().into_iter().zip(&told.entries) {
            let Some(place) = self.places.get_mut(&owner) else { continue };
            if matches!(asked, Ask::Acquire(..)) && place.version.is_none() {
                place.unanswered = place.unanswered.saturating_sub(1);
            }
            // Another entry of the owner is not the one that it held by.
            let is_same = |known: &&Known| {
                let created = |version: Option<Version>| version.map(|version| version.created);
                matches!(asked, Ask::Acquire(..)) || created(known.version) == created(place.version.or(known.version))
            };
            match entry.as_ref().filter(is_same) {
                Some(known) => place.learn(*known, seen),
                None if self.mistake == Some(Mistake::KeyUnread) && matches!(asked, Ask::Renew(_)) => {
                    place.current.proof.prove(seen);
                }
                // Of a lock that is kept, they name the key.
                None if matches!(goal, Ask::Release(request) if request.keep.is_some()) => {
                    _ = self.places.remove(&owner)
                }
                None => self.put_back(owner),
            }
        }
    }

    /// An entry is gone. Its leases may be used again, unless a late write could still use them.
    fn put_back(&mut self, owner: Owner) {
        let place = self.places.remove(&owner).filter(|place| place.unanswered == 0);
        self.idle.extend(place.into_iter().flat_map(|place| [Some(place.current), place.next]).flatten());
    }

    fn transacted(&mut self, at: At, goal: &Ask, step: &Step, answer: Option<Say>, asked: &Ask) -> Next {
        let rounds = step.rounds + 1;
        match (goal, answer) {
            (Ask::Release(_), answer) if matches!(asked, Ask::Look(_)) || answer.is_none() => {
                self.begin(at.now, goal, rounds)
            }
            (Ask::Acquire(claim, _), Some(Say::Acquire(result))) => {
                let place = self.places.get(&claim.owner);
                if rounds < ROUNDS_MAX && place.is_some_and(|place| place.current.is_old(at.now)) {
                    return self.begin(at.now, goal, rounds);
                }
                let lasts = place.map_or(Duration::ZERO, |place| place.current.proof.lasts(at.since));
                Next::Told(Say::Acquire(result.map(|answer| valid_no_longer(answer, lasts))))
            }
            (Ask::Renew(leases), answer) => {
                let is_old = self.places_of(leases).any(|place| place.current.is_old(at.now));
                if rounds < ROUNDS_MAX && (is_old || answer.is_none()) {
                    return self.begin(at.now, goal, rounds);
                }
                Next::Told(Say::Renew(self.renewed(at, leases, answer, asked)))
            }
            (_, answer) => Next::Told(answer.unwrap_or(Say::Hello)),
        }
    }

    fn renewed(&self, at: At, leases: &[Lease], answer: Option<Say>, asked: &Ask) -> Vec<Renewed> {
        let asked = if let Ask::Renew(asked) = asked { asked.as_slice() } else { &[] };
        let answers = if let Some(Say::Renew(answers)) = answer { answers } else { Vec::new() };
        let renewed = |lease: &Lease| {
            let answer = asked.iter().position(|other| other == lease).and_then(|number| answers.get(number));
            let (place, ttl) = (self.places.get(&lease.owner), lease.terms.ttl.get());
            let valid_for = place.map_or(Duration::ZERO, |place| place.current.proof.lasts(at.since).min(ttl));
            match answer {
                Some(Renewed::Renewed { wanted, .. }) => Renewed::Renewed { valid_for, wanted: *wanted },
                None | Some(_) if self.mistake == Some(Mistake::KeyUnread) && place.is_some() => {
                    Renewed::Renewed { valid_for, wanted: false }
                }
                None | Some(_) => Renewed::NotHeld,
            }
        };
        leases.iter().map(renewed).collect()
    }
}

/// The same answer, valid for no longer than the lease lasts.
fn valid_no_longer(mut answer: Answer, lasts: Duration) -> Answer {
    if let Answer::Granted { valid_for, .. } | Answer::Queued { valid_for, .. } = &mut answer {
        *valid_for = lasts.min(*valid_for);
    }
    answer
}
