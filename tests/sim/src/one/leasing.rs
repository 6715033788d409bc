//! What a client knows of its entries where each ends with a lease of its own, and the requests that it makes of one, as in `lock-etcd`.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use lock_core::{Answer, Claim, Lease, Moment, Owner, Renewed};
use lock_rules::{LeaseProof, Renewal, Seen, place_for};

use super::known::{Known, LeaseId, Told, Version, whole_seconds};
use super::mistake::Mistake;
use super::place::{OwnLease, Place};
use super::step::{At, Next, Step};
use super::units::Seat;
use super::words::{Ask, Refused, Say};

/// How much longer than an entry a lease lasts, so that it can be used again.
const USED_AGAIN_WITHIN: Duration = Duration::from_secs(1);
/// How often a request is made again whose outcome is not good enough yet.
const ROUNDS_MAX: u32 = 3;

#[derive(Debug)]
pub(super) struct Leasing {
    mistake: Option<Mistake>,
    places: BTreeMap<Owner, Place>,
    /// Who was released. What their claims have not asked for yet is not asked for any more.
    released: BTreeSet<Owner>,
    /// Those of entries that were deleted.
    idle: Vec<OwnLease>,
    /// The term of the latest answer that the leader has ordered.
    term: Option<u64>,
}

impl Leasing {
    pub(super) fn new(mistake: Option<Mistake>) -> Self {
        Self { mistake, places: BTreeMap::new(), released: BTreeSet::new(), idle: Vec::new(), term: None }
    }

    /// The first step towards what a station asks for, or another one of this round.
    pub(super) fn begin(&mut self, now: Moment, goal: &Ask, rounds: u32) -> Next {
        if let Ask::Release(request) = goal {
            self.released.insert(request.owner);
        }
        let ask = if let Ask::Acquire(claim, seat) = goal {
            match self.places.get(&claim.owner) {
                Some(place) if place.version.is_some() => return self.renew(now, goal, rounds),
                Some(_) => self.transact(goal),
                None => self.take(now, claim, *seat),
            }
        } else if let Ask::Renew(leases) = goal {
            if !leases.iter().any(|lease| self.is_there(lease.owner)) {
                return Next::Told(Say::Renew(leases.iter().map(|_| Renewed::NotHeld).collect()));
            }
            return self.renew(now, goal, rounds);
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
        let fits = |lease: &OwnLease| {
            let left = lease.proof.lasts(now);
            lease.lasts == lasts && (left >= ttl || !left.is_zero() && lease.counts(self.term, self.mistake))
        };
        let Some(at) = self.idle.iter().position(fits) else { return Ask::Grant(lasts) };
        let lease = self.idle.swap_remove(at);
        let (id, is_short) = (lease.id, lease.proof.lasts(now) < ttl);
        self.places.insert(claim.owner, Place::new(lease));
        if is_short { Ask::KeepAlive(vec![id]) } else { self.transact(&Ask::Acquire(claim.clone(), seat)) }
    }

    fn step(&self, sent: Moment, ask: Ask, rounds: u32) -> Next {
        Next::Step(Step { ask, sent, term: self.term, rounds })
    }

    /// Renews those leases of which renewals count.
    fn renew(&mut self, now: Moment, goal: &Ask, rounds: u32) -> Next {
        let (term, mistake, mut ids) = (self.term, self.mistake, Vec::new());
        for owner in goal.owners() {
            let leases = self.places.get_mut(&owner).into_iter().flat_map(Place::leases);
            ids.extend(leases.filter(|lease| lease.counts(term, mistake)).map(|lease| lease.id));
        }
        if ids.is_empty() { self.after_leases(now, goal, rounds) } else { self.step(now, Ask::KeepAlive(ids), rounds) }
    }

    fn is_there(&self, owner: Owner) -> bool {
        self.places.get(&owner).is_some_and(|place| place.version.is_some())
    }

    fn known(&self, asked: &Ask) -> Vec<Known> {
        asked.owners().iter().filter_map(|owner| self.places.get(owner)).map(Place::known).collect()
    }

    /// The transaction that does what is asked for.
    fn transact(&mut self, goal: &Ask) -> Ask {
        if let Ask::Renew(leases) = goal {
            let there = Ask::Renew(leases.iter().filter(|lease| self.is_there(lease.owner)).cloned().collect());
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
        if let (Ask::Acquire(claim, _), Ask::Grant(_) | Ask::KeepAlive(_)) = (goal, &step.ask)
            && self.released.contains(&claim.owner)
        {
            return Next::Told(Say::Acquire(Err(Refused::GivenUp)));
        }
        match (&step.ask, say) {
            (Ask::Grant(lasts), Say::Granted(id, term)) => {
                let proof = LeaseProof::new(step.sent + *lasts, step.term.filter(|before| *before == term));
                let is_known = proof.granted_in().is_some();
                self.granted(goal, OwnLease { id, lasts: *lasts, proof });
                if is_known {
                    return self.after_leases(at.now, goal, step.rounds);
                }
                // The next one will be of the term that the transaction tells.
                let ask = self.transact(goal);
                self.step(at.now, ask, step.rounds)
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
                let seen = Seen { term: Some(told.term), sent: step.sent };
                self.term = seen.term;
                self.read(goal, asked, &told, &seen);
                self.transacted(at, goal, step, answer.map(|say| *say), asked)
            }
            (_, say) => Next::Told(say),
        }
    }

    /// A lease for an entry that is not there yet, or that one is to be moved to.
    fn granted(&mut self, goal: &Ask, lease: OwnLease) {
        if let Some((owner, _)) = self.needs_lease(goal)
            && let Some(place) = self.places.get_mut(&owner)
        {
            place.next = Some(lease);
        } else if let Ask::Acquire(claim, _) = goal {
            self.places.entry(claim.owner).or_insert_with(|| Place::new(lease));
        }
    }

    /// Whose entry has to be moved to a lease that lasts for so long: its own is too short, or renewals of that do not count any more.
    fn needs_lease(&self, goal: &Ask) -> Option<(Owner, Duration)> {
        let lasts: Vec<(Owner, Duration)> = if let Ask::Renew(leases) = goal {
            leases.iter().map(|lease| (lease.owner, lease.terms.ttl.get())).collect()
        } else if let Ask::Acquire(claim, _) = goal {
            vec![(claim.owner, place_for(claim.terms.ttl))]
        } else {
            Vec::new()
        };
        lasts.into_iter().find(|(owner, lasts)| {
            let place = self.places.get(owner).filter(|place| place.version.is_some());
            place.is_some_and(|place| {
                let lease = place.next.as_ref().unwrap_or(&place.current);
                lease.lasts < *lasts || !lease.counts(self.term, self.mistake)
            })
        })
    }

    /// The leases are renewed: now for the entries.
    fn after_leases(&mut self, now: Moment, goal: &Ask, rounds: u32) -> Next {
        let ask = match self.needs_lease(goal) {
            Some((_, lasts)) => Ask::Grant(whole_seconds(lasts + USED_AGAIN_WITHIN)),
            None => self.transact(goal),
        };
        self.step(now, ask, rounds)
    }

    fn kept_alive(&mut self, at: At, step: &Step, ids: &[LeaseId], kept: &[Option<Duration>]) {
        let (sent, answered, mistake) = (step.sent, at.now, self.mistake);
        for (id, lasts) in ids.iter().zip(kept) {
            let lease = self.places.values_mut().flat_map(Place::leases).find(|lease| lease.id == *id);
            let (Some(lease), Some(ttl)) = (lease, *lasts) else { continue };
            match mistake {
                Some(Mistake::KeepaliveCounts) => lease.proof = LeaseProof::new(sent + ttl, step.term),
                Some(Mistake::AnyTermCounts) => {
                    lease.proof = LeaseProof::new(at.now + lease.proof.lasts(at.now), step.term);
                }
                Some(_) | None => {}
            }
            lease.proof.renewed(Renewal { sent, answered, ttl });
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
                let places = leases.iter().filter_map(|lease| self.places.get(&lease.owner));
                let is_old = places.into_iter().any(|place| place.current.is_old(at.now));
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
