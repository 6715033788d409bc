//! What a broken store does besides the reference store.

use std::collections::BTreeMap;
use std::time::Duration;

use lock_core::latch::{Act, LatchState, Request};
use lock_core::{
    Answer, BackendError, Certainty, Claim, Evidence, Fairness, Lease, Mode, Moment, NameKind, Note, Owner, Queueing,
    ReleaseRequest, Released, Slots, Terms, Ttl, Width,
};
use lock_memory::store::{ClientId, Store};

use crate::one::{Ask, Mistake};

/// How much too early a lease ends.
const EARLY: Duration = Duration::from_millis(300);

/// What a broken store remembers.
#[derive(Debug, Default)]
pub(super) struct Twin {
    /// What was granted.
    leases: Vec<Lease>,
    /// The claims that wait, in the order in which they came.
    waiting: Vec<(ClientId, Claim)>,
    /// How many requests to arrive there were.
    arrivals: u64,
    /// Who has replaced each lease, where several can.
    adopted: BTreeMap<Owner, Owner>,
}

impl Twin {
    /// What happens before a request is answered.
    pub(super) fn before(&mut self, mistake: Option<Mistake>, now: Moment, store: &mut Store, ask: &Ask) {
        match (mistake, ask) {
            (Some(Mistake::NeverEnded), _) => _ = store.renew(now, &self.leases),
            (Some(Mistake::EndedEarly), Ask::Acquire(claim, _)) => {
                let ends_soon = store.holds(now, &claim.name).find(|hold| hold.until.since(now) < EARLY);
                let owner = ends_soon.map(|hold| hold.owner);
                owner.into_iter().for_each(|owner| leave(now, store, &Claim { owner, ..claim.clone() }));
            }
            (Some(Mistake::LastServedFirst), Ask::Release(request)) => {
                self.waiting.retain(|(_, waits)| waits.owner != request.owner);
            }
            _ => {}
        }
    }

    /// A lease as the broken store tells it.
    pub(super) fn granted(&mut self, mistake: Option<Mistake>, lease: Lease) -> Lease {
        let Some(mistake) = mistake else { return lease };
        self.leases.push(lease.clone());
        self.waiting.retain(|(_, waits)| waits.owner != lease.owner);
        match (mistake, lease.terms.mode) {
            (Mistake::SlotReused, Mode::Permits { count, .. }) => Lease { slots: Slots::new(0..count.get()), ..lease },
            (Mistake::OneTooMany, Mode::Permits { count, limit, .. }) => {
                let limit = limit.get() - 1;
                let mode = Mode::permits(count.get(), limit).unwrap_or_default();
                let slots = Slots::new(lease.slots.get().iter().map(|slot| slot % limit));
                Lease { terms: Terms { mode, ..lease.terms }, slots, ..lease }
            }
            _ => lease,
        }
    }

    pub(super) fn acquire(
        &mut self,
        mistake: Option<Mistake>,
        now: Moment,
        store: &mut Store,
        client: ClientId,
        claim: &Claim,
    ) -> Result<Answer, BackendError> {
        if let Some(old) = claim.replaces {
            if mistake == Some(Mistake::AdoptedTwice) {
                let present = self.adopted.insert(old, claim.owner).filter(|present| *present != claim.owner);
                let replaces = present.or(claim.replaces);
                return store.acquire(now, client, &Claim { replaces, ..claim.clone() });
            }
            return replace(mistake, now, store, client, claim, old);
        }
        match (mistake, claim.terms.mode) {
            (Some(Mistake::OneTooMany), Mode::Permits { count, limit, .. }) => {
                let mode = Mode::permits(count.get(), limit.get() + 1).unwrap_or_default();
                store.acquire(now, client, &Claim { terms: Terms { mode, ..claim.terms }, ..claim.clone() })
            }
            (Some(Mistake::LastServedFirst), _) => self.before_others(now, store, client, claim),
            _ => store.acquire(now, client, claim),
        }
    }

    pub(super) fn release(
        &mut self,
        mistake: Option<Mistake>,
        now: Moment,
        store: &mut Store,
        request: &ReleaseRequest,
    ) -> Result<Released, BackendError> {
        let holds = store.holds(now, &request.name).any(|hold| hold.owner == request.owner);
        match (request.keep, mistake) {
            (Some(_), Some(Mistake::FreedAtOnce)) => {
                store.release(now, &ReleaseRequest { keep: None, ..request.clone() })
            }
            (Some(keep), Some(Mistake::KeptForItsOwner)) if holds => {
                let terms = Terms { ttl: Ttl::new(keep).unwrap_or(Ttl::MIN), ..request.terms };
                let (width, floor, note) = (Width::ONE, None, Note::from_wire(""));
                let (queueing, fairness, kind, replaces) = (Queueing::Unwanted, Fairness::Fair, NameKind::Lock, None);
                let (name, owner) = (request.name.clone(), request.owner);
                let claim = Claim { name, owner, terms, width, floor, note, queueing, fairness, kind, replaces };
                store.acquire(now, ClientId::new(0), &claim).map(|_| Released::Released)
            }
            _ => store.release(now, request),
        }
    }

    /// The request about a latch that is carried out.
    pub(super) fn latch(
        &mut self,
        mistake: Option<Mistake>,
        present: Option<LatchState>,
        request: &Request,
    ) -> Request {
        let mut request = request.clone();
        match (&mut request.act, mistake, present) {
            (Act::Arrive { id, call, .. }, Some(Mistake::CountsTwice), _) => {
                self.arrivals += 1;
                *call = self.arrivals;
                *id = format!("{} {id}", self.arrivals).parse().unwrap_or_else(|_| id.clone());
            }
            (Act::Expect { generation, .. }, Some(Mistake::CountsAnything), Some(present)) => {
                *generation = present.generation;
            }
            _ => {}
        }
        request
    }

    /// Those who came before have to line up again behind it.
    fn before_others(
        &mut self,
        now: Moment,
        store: &mut Store,
        client: ClientId,
        claim: &Claim,
    ) -> Result<Answer, BackendError> {
        let is_other = |(_, waits): &&(ClientId, Claim)| waits.name == claim.name && waits.owner != claim.owner;
        let others: Vec<_> = self.waiting.iter().filter(is_other).cloned().collect();
        others.iter().for_each(|(_, waits)| leave(now, store, waits));
        let answer = store.acquire(now, client, claim)?;
        others.iter().for_each(|(client, waits)| _ = store.acquire(now, *client, waits));
        if matches!(answer, Answer::Queued { .. }) && self.waiting.iter().all(|(_, waits)| waits.owner != claim.owner) {
            self.waiting.push((client, claim.clone()));
        }
        Ok(answer)
    }
}

/// Replaces the lease of this owner.
fn replace(
    mistake: Option<Mistake>,
    now: Moment,
    store: &mut Store,
    client: ClientId,
    claim: &Claim,
    old: Owner,
) -> Result<Answer, BackendError> {
    match mistake {
        Some(Mistake::InTwoSteps) => {
            let (name, terms, certainty) = (claim.name.clone(), claim.terms, Certainty::Unknown);
            store.release(
                now,
                &ReleaseRequest { name, owner: old, terms, certainty, keep: None, evidence: Evidence::Nothing },
            )?;
            store.acquire(now, client, &Claim { replaces: None, ..claim.clone() })
        }
        Some(Mistake::UpgradedBesideReaders) if claim.terms.mode == Mode::Exclusive => {
            let holders: Vec<_> = store.holds(now, &claim.name).map(|hold| hold.owner).collect();
            let others = holders.into_iter().filter(|owner| ![old, claim.owner].contains(owner));
            others.for_each(|owner| leave(now, store, &Claim { owner, ..claim.clone() }));
            store.acquire(now, client, claim)
        }
        Some(_) | None => store.acquire(now, client, claim),
    }
}

/// Drops the place, or ends the lease, of everyone who asked for this.
fn leave(now: Moment, store: &mut Store, claim: &Claim) {
    let (name, owner, terms) = (claim.name.clone(), claim.owner, claim.terms);
    let request =
        ReleaseRequest { name, owner, terms, certainty: Certainty::Answered, keep: None, evidence: Evidence::Nothing };
    // The reference store only refuses to keep.
    _ = store.release(now, &request);
}
