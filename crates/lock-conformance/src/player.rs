//! Random requests about one lock.

use std::time::Duration;

use lock_core::limit::{Act, Request};
use lock_core::{
    Ability, Answer, BackendError, Capabilities, Certainty, Claim, ErrorKind, Fairness, Lease, Limit, Mode, ModeKind,
    Queueing, ReleaseRequest, Released,
};

use crate::reference::{Ask, Reply, SHORT};
use crate::verbs::{LONG, claim, in_mode, lasting, lock_name};

/// How many claims a player has at a time.
const CLAIMS: usize = 14;

/// Makes random requests: new claims, and whatever can follow an earlier one.
pub(crate) struct Player {
    pub(crate) dice: fastrand::Rng,
    name: String,
    use_of_lock: Use,
    can: Capabilities,
    claims: Vec<Claim>,
    leases: Vec<Lease>,
    next: Vec<Ask>,
}

/// How most requests use the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// A lock. Now and then somebody asks for permits, which is refused.
    Lock,
    /// The same, and no lease is replaced.
    Unreplaced,
    /// The same, nobody asks for permits, and no lock is kept.
    OnlyLock,
    Semaphore,
}

impl Player {
    pub(crate) fn new(seed: u64, name: &str, use_of_lock: Use, can: Capabilities) -> Self {
        let (dice, name) = (fastrand::Rng::with_seed(seed), name.to_owned());
        Self { dice, name, use_of_lock, can, claims: Vec::new(), leases: Vec::new(), next: Vec::new() }
    }

    /// The next request.
    pub(crate) fn ask(&mut self) -> Ask {
        if let Some(next) = self.next.pop() {
            return next;
        }
        if self.claims.len() > CLAIMS {
            return self.give_up(0);
        }
        match self.pick_claim() {
            Some(claim) => self.ask_about(claim),
            None => self.new_claim(LONG),
        }
    }

    fn ask_about(&mut self, index: usize) -> Ask {
        let claim = self.claims[index].clone();
        let lease = self.dice.choice(&self.leases).cloned();
        match (self.dice.u8(..40), lease) {
            (0..12, _) => self.new_claim(LONG),
            (12..18, _) => Ask::Acquire(claim),
            // It may leave the queue.
            (18..20, _) => Ask::Acquire(Claim { queueing: Queueing::Unwanted, ..self.claims.remove(index) }),
            (20 | 21, _) if self.use_of_lock != Use::OnlyLock && self.can(Ability::Keep) => self.keep(&claim),
            (22..26, _) => self.give_up(index),
            // Some stores remember the owners of short leases for longer.
            (26..30, _) if claim.terms.ttl.get() == LONG => Ask::Release(claim.release(Certainty::Unknown)),
            (30..33, Some(lease)) if self.may_replace() => self.replace(&lease),
            (33, Some(lease)) if self.can(Ability::Inspect) => Ask::Revoke(lease),
            (34, Some(lease)) => Ask::Fence(lease),
            (35 | 36, Some(lease)) => Ask::Renew(lease),
            (37.., _) if self.can(Ability::SetLimit) => self.set_limit(),
            (_, _) => Ask::Acquire(claim),
        }
    }

    fn may_replace(&self) -> bool {
        matches!(self.use_of_lock, Use::Lock | Use::Semaphore) && self.can(Ability::Replace)
    }

    fn can(&self, ability: Ability) -> bool {
        self.can.check_ability(ability).is_ok()
    }

    /// Remembers what was granted. An owner that lost its place, or did not need it, does not queue again: some stores give it its old
    /// place.
    pub(crate) fn hear(&mut self, ask: &Ask, said: &Result<Reply, BackendError>) {
        match (ask, said) {
            (_, Ok(Reply::Acquired(Answer::Granted { lease, .. }))) => {
                // An owner may have held the lock before: the renewal of that lease is to be refused.
                self.leases.retain(|other| other.tokens != lease.tokens);
                self.leases.push(lease.clone());
            }
            (Ask::Release(request), Ok(Reply::Released(Released::Left))) => {
                self.claims.retain(|claim| claim.owner != request.owner);
            }
            (Ask::Acquire(claim), Err(error)) if error.kind() == ErrorKind::OtherKind => {
                self.claims.retain(|other| other.owner != claim.owner || other.queueing == Queueing::Unwanted);
            }
            (Ask::Revoke(lease), Ok(_)) => {
                self.claims.retain(|claim| claim.owner != lease.owner || claim.fairness == Fairness::Fair);
            }
            (_, _) => {}
        }
    }

    /// A claim of a new owner.
    pub(crate) fn new_claim(&mut self, ttl: Duration) -> Ask {
        let claim = self.fresh(ttl);
        self.claims.push(claim.clone());
        Ask::Acquire(claim)
    }

    /// A claim that keeps the lock for a short time.
    pub(crate) fn keep_shortly(&mut self) -> Ask {
        match self.pick_claim() {
            Some(index) if self.can(Ability::Keep) => {
                let release = self.claims[index].release(Certainty::Answered);
                Ask::Release(ReleaseRequest { keep: Some(SHORT), ..release })
            }
            Some(_) | None => self.new_claim(SHORT),
        }
    }

    /// A renewal of the latest lease.
    pub(crate) fn renew_latest(&mut self) -> Ask {
        match self.leases.last() {
            Some(lease) => Ask::Renew(lease.clone()),
            None => self.ask(),
        }
    }

    /// The claim of the latest lease, once more.
    pub(crate) fn ask_again_for_latest(&mut self) -> Ask {
        let latest = self.leases.last().map(|lease| lease.owner);
        match self.claims.iter().find(|claim| Some(claim.owner) == latest) {
            Some(claim) => Ask::Acquire(claim.clone()),
            None => self.ask(),
        }
    }

    /// A renewal of an earlier lease of the owner of the latest one.
    pub(crate) fn renew_earlier(&mut self) -> Ask {
        let latest = self.leases.last().map(|lease| lease.owner);
        match self.leases.iter().find(|lease| Some(lease.owner) == latest) {
            Some(lease) => Ask::Renew(lease.clone()),
            None => self.ask(),
        }
    }

    /// Forgets the claims whose places have expired. Claims without a place may be repeated, for a long time: no step waits for the end of a
    /// short lease that begins later.
    pub(crate) fn forget_expired(&mut self) {
        self.claims.retain(|claim| claim.queueing == Queueing::Unwanted || claim.terms.ttl.get() != SHORT);
        self.claims = std::mem::take(&mut self.claims).into_iter().map(|claim| lasting(LONG, claim)).collect();
    }

    fn fresh(&mut self, ttl: Duration) -> Claim {
        let mode = self.mode();
        let queueing = if self.dice.bool() { Queueing::Wanted } else { Queueing::Unwanted };
        let fairness =
            if self.can(Ability::Barge) && self.dice.u8(..4) == 0 { Fairness::Barging } else { Fairness::Fair };
        Claim { queueing, fairness, ..in_mode(mode, lasting(ttl, claim(&self.name))) }
    }

    fn mode(&mut self) -> Mode {
        let permits = |count, limit| Mode::permits(count, limit).unwrap();
        let count = self.dice.u32(1..=3);
        let can_share = self.can.modes.contains(&ModeKind::Shared);
        match (self.dice.u8(..20), self.use_of_lock) {
            (0, Use::Lock | Use::Unreplaced | Use::Semaphore) => permits(1, 4),
            (_, Use::Semaphore) | (1, Use::Lock | Use::Unreplaced) => permits(count, 3),
            (..8, _) => Mode::Exclusive,
            (_, _) => {
                if can_share {
                    Mode::Shared
                } else {
                    Mode::Exclusive
                }
            }
        }
    }

    fn pick_claim(&mut self) -> Option<usize> {
        (!self.claims.is_empty()).then(|| self.dice.usize(..self.claims.len()))
    }

    fn give_up(&mut self, index: usize) -> Ask {
        Ask::Release(self.claims.remove(index).release(Certainty::Answered))
    }

    /// The release of the oldest claim.
    pub(crate) fn give_up_first(&mut self) -> Option<Ask> {
        (!self.claims.is_empty()).then(|| self.give_up(0))
    }

    /// Keeps the lock, and then for another time.
    fn keep(&mut self, claim: &Claim) -> Ask {
        let release = claim.release(Certainty::Answered);
        let keep = |time| Ask::Release(ReleaseRequest { keep: Some(time), ..release.clone() });
        self.next.push(keep(LONG / self.dice.u32(1..4)));
        keep(LONG)
    }

    /// Replaces a lease, and asks again.
    fn replace(&mut self, lease: &Lease) -> Ask {
        let new = self.fresh(LONG);
        let claim = Claim { replaces: Some(lease.owner), queueing: Queueing::Unwanted, ..new };
        self.claims.push(claim.clone());
        self.next.push(Ask::Acquire(claim.clone()));
        Ask::Acquire(claim)
    }

    /// Sets a limit, and looks.
    fn set_limit(&mut self) -> Ask {
        let (known, new) = (self.dice.u32(3..=4), self.dice.u32(1..=5));
        let [known, new] = [known, new].map(|limit| Limit::new(limit).unwrap());
        let request = |act| Ask::Limit(Request { name: lock_name(&self.name), known, act });
        self.next.push(request(Act::Look));
        request(Act::Set(new))
    }
}
