//! The rules of the store once more, for one lock, by looking at everything each time.

use std::time::Duration;

use lock_core::{
    Certainty, Claim, ErrorKind, Fairness, Fenced, Holder, Lease, Mode, Moment, Owner, Queueing, ReleaseRequest,
    Released, Terms,
};

use crate::support::PLACE;

/// What a claim is answered, as far as it can differ.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Granted { tokens: (u64, u64), slots: Vec<u32>, wanted: bool },
    Queued { position: u32, remaining: Option<Duration>, holder: u64 },
    Busy { remaining: Option<Duration>, holder: u64 },
    Failed(ErrorKind),
}

/// Who was served: its owner, tokens and slots.
pub(crate) type Served = (Owner, (u64, u64), Vec<u32>);

#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) owner: Owner,
    pub(crate) mode: Mode,
    tokens: (u64, u64),
    slots: Vec<u32>,
    until: Moment,
}

#[derive(Clone, Debug)]
struct Waits {
    claim: Claim,
    until: Moment,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Naive {
    token: u64,
    pub(crate) held: Vec<Held>,
    queue: Vec<Waits>,
    tombstones: Vec<(Owner, Moment)>,
    pub(crate) served: Vec<Served>,
}

fn place(terms: Terms) -> Duration {
    terms.ttl.get().min(PLACE)
}

fn tombstone(now: Moment, terms: Terms) -> Moment {
    now + terms.ttl.get().max(Duration::from_secs(10))
}

fn replaced(now: Moment) -> Moment {
    now + Duration::from_secs(10)
}

/// The number that shows who holds.
pub(crate) fn shown(holder: &Holder) -> u64 {
    match holder {
        Holder::Leasehold { tokens, .. } => tokens.low().get(),
        Holder::Foreign => 0,
    }
}

fn fit(held: &[&Held], mode: Mode) -> bool {
    let used: u32 = held.iter().map(|held| held.mode.count()).sum();
    if let Mode::Permits { count, limit, .. } = mode {
        return used + count.get() <= limit.get();
    }
    held.is_empty() || mode == Mode::Shared && held.iter().all(|held| held.mode == Mode::Shared)
}

impl Naive {
    fn sweep(&mut self, now: Moment) {
        self.held.retain(|held| now < held.until);
        self.queue.retain(|waits| now < waits.until);
        self.tombstones.retain(|(_, until)| now < *until);
    }

    fn fits(&self, mode: Mode) -> bool {
        fit(&self.held.iter().collect::<Vec<_>>(), mode)
    }

    fn last(&self, but: Option<Owner>) -> Option<&Held> {
        self.held.iter().filter(|held| Some(held.owner) != but).max_by_key(|held| (held.until, held.owner))
    }

    fn own(&mut self, owner: Owner) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.owner == owner)
    }

    fn add(&mut self, claim: &Claim, until: Moment) -> Served {
        let tokens = (self.token + 1, self.token + claim.width.get());
        self.token = tokens.1;
        let is_taken = |slot: &u32| self.held.iter().any(|held| held.slots.contains(slot));
        let slots: Vec<_> = (0..).filter(|slot| !is_taken(slot)).take(claim.terms.mode.count() as usize).collect();
        self.held.push(Held { owner: claim.owner, mode: claim.terms.mode, tokens, slots: slots.clone(), until });
        (claim.owner, tokens, slots)
    }

    fn serve(&mut self, now: Moment, before: Option<Owner>) {
        while let Some(next) = self.queue.first().map(|waits| waits.claim.clone()) {
            if Some(next.owner) == before || !self.fits(next.terms.mode) {
                break;
            }
            self.queue.remove(0);
            let served = self.add(&next, now + place(next.terms));
            self.served.push(served);
        }
    }

    fn granted(&mut self, now: Moment, owner: Owner) -> Said {
        self.queue.retain(|waits| waits.claim.owner != owner);
        self.serve(now, None);
        let wanted = !self.queue.is_empty();
        let own = self.own(owner).unwrap();
        Said::Granted { tokens: own.tokens, slots: own.slots.clone(), wanted }
    }

    /// When the head of the queue, or this mode, fits if nobody renews.
    fn remaining(&self, now: Moment, mode: Mode) -> Option<Duration> {
        let mode = self.queue.first().map_or(mode, |waits| waits.claim.terms.mode);
        let mut ends: Vec<_> = self.held.iter().map(|held| held.until).collect();
        ends.sort_unstable();
        let fits_at = |end: &Moment| fit(&self.held.iter().filter(|held| *end < held.until).collect::<Vec<_>>(), mode);
        let end = ends.into_iter().filter(|_| !self.fits(mode)).find(fits_at);
        end.map(|end| end.since(now))
    }

    /// A claim that fails changes nothing.
    pub(crate) fn acquire(&mut self, now: Moment, claim: &Claim) -> Said {
        self.sweep(now);
        let before = self.clone();
        let said = self.try_acquire(now, claim);
        if let Said::Failed(_) = said {
            *self = before;
        }
        said
    }

    fn try_acquire(&mut self, now: Moment, claim: &Claim) -> Said {
        let (owner, mode) = (claim.owner, claim.terms.mode);
        let used =
            self.held.iter().map(|held| held.mode).chain(self.queue.iter().map(|waits| waits.claim.terms.mode)).next();
        if self.tombstones.iter().any(|(buried, _)| *buried == owner) {
            return Said::Failed(ErrorKind::Protocol);
        }
        if used.is_some_and(|used| !used.suits(mode)) {
            return Said::Failed(ErrorKind::OtherKind);
        }
        if self.own(owner).is_some_and(|own| own.mode != mode) {
            return Said::Failed(ErrorKind::Protocol);
        }
        let until = now + claim.terms.ttl.get();
        if let Some(own) = self.own(owner) {
            own.until = until;
            self.tombstones.extend(claim.replaces.map(|old| (old, replaced(now))));
            return self.granted(now, owner);
        }
        match claim.replaces {
            Some(old) => self.replace(now, claim, old),
            None => self.ask(now, claim),
        }
    }

    fn ask(&mut self, now: Moment, claim: &Claim) -> Said {
        let (owner, mode) = (claim.owner, claim.terms.mode);
        self.serve(now, Some(owner));
        let is_next = self.queue.first().is_none_or(|waits| waits.claim.owner == owner);
        if (is_next || claim.fairness == Fairness::Barging) && self.fits(mode) {
            self.add(claim, now + claim.terms.ttl.get());
            return self.granted(now, owner);
        }
        let holder = self.last(None).unwrap().tokens.0;
        if claim.queueing == Queueing::Unwanted {
            self.queue.retain(|waits| waits.claim.owner != owner);
            let remaining = self.remaining(now, mode);
            self.serve(now, None);
            return Said::Busy { remaining, holder };
        }
        let index = self.queue.iter().position(|waits| waits.claim.owner == owner).unwrap_or(self.queue.len());
        let waits = Waits { claim: claim.clone(), until: now + place(claim.terms) };
        if index == self.queue.len() {
            self.queue.push(waits)
        } else {
            self.queue[index] = waits
        }
        let position = u32::try_from(index).unwrap() + 1;
        let said = Said::Queued { position, remaining: self.remaining(now, mode), holder };
        self.serve(now, None);
        said
    }

    fn replace(&mut self, now: Moment, claim: &Claim, old: Owner) -> Said {
        let Some(own) = self.own(old).cloned() else { return Said::Failed(ErrorKind::NotHeld) };
        let (from, to) = (own.mode, claim.terms.mode);
        let no_more = from.count() >= to.count() && to.count() > 0;
        let allowed = [Mode::Exclusive, Mode::Shared].contains(&from) || no_more;
        if !allowed {
            return Said::Failed(ErrorKind::Protocol);
        }
        if let Some(other) = self.last(Some(old)).filter(|_| to == Mode::Exclusive) {
            return Said::Busy { remaining: Some(other.until.since(now)), holder: other.tokens.0 };
        }
        let until = now + claim.terms.ttl.get();
        self.held.retain(|held| held.owner != old);
        self.tombstones.push((old, replaced(now)));
        self.add(claim, until);
        let own_slots = own.slots[..to.count() as usize].to_vec();
        self.own(claim.owner).unwrap().slots = own_slots;
        self.granted(now, claim.owner)
    }

    pub(crate) fn release(&mut self, now: Moment, request: &ReleaseRequest) -> Result<Released, ErrorKind> {
        self.sweep(now);
        let is_own = |held: &Held| [request.owner, request.owner.kept()].contains(&held.owner);
        let own = self.held.iter().position(is_own);
        if request.keep.is_some() && own.is_some_and(|index| self.held[index].mode != Mode::Exclusive) {
            return Err(ErrorKind::Protocol);
        }
        let waiting = self.queue.len();
        self.queue.retain(|waits| waits.claim.owner != request.owner);
        match (own, request.keep) {
            (Some(index), Some(keep)) => {
                let own = &mut self.held[index];
                let until = now + keep;
                own.until = if own.owner == request.owner { until } else { until.min(own.until) };
                own.owner = request.owner.kept();
            }
            (Some(index), None) => _ = self.held.remove(index),
            (None, _) => {}
        }
        if request.certainty == Certainty::Unknown {
            self.tombstones.push((request.owner, tombstone(now, request.terms)));
        }
        let left = self.queue.len() < waiting;
        self.serve(now, None);
        Ok(match (own, left) {
            (Some(_), _) => Released::Released,
            (None, true) => Released::Left,
            (None, false) => Released::NotHeld,
        })
    }

    fn living(&mut self, now: Moment, lease: &Lease) -> Option<&mut Held> {
        let tokens = (lease.tokens.low().get(), lease.tokens.high().get());
        self.own(lease.owner).filter(|own| now < own.until && own.tokens == tokens)
    }

    /// Whether the lease was renewed, and whether others wait.
    pub(crate) fn renew(&mut self, now: Moment, lease: &Lease) -> Option<bool> {
        let waits = self.queue.iter().any(|waits| now < waits.until);
        let own = self.living(now, lease)?;
        let wanted = waits && own.mode != Mode::Exclusive;
        own.until = now + lease.terms.ttl.get();
        Some(wanted)
    }

    pub(crate) fn fence(&mut self, now: Moment, lease: &Lease) -> Fenced {
        if self.living(now, lease).is_some() {
            return Fenced::Acknowledged;
        }
        let writer = self.held.iter().find(|held| held.mode == Mode::Exclusive && now < held.until);
        match writer.filter(|writer| writer.tokens.0 > lease.tokens.high().get()) {
            Some(writer) => Fenced::Higher(lock_core::FencingToken::new(writer.tokens.0).unwrap()),
            None => Fenced::NotHeld,
        }
    }

    /// Whether a lease spans the token.
    pub(crate) fn revoke(&mut self, now: Moment, token: u64) -> bool {
        self.sweep(now);
        let before = self.held.len();
        self.held.retain(|held| !(held.tokens.0..=held.tokens.1).contains(&token));
        let ended = self.held.len() < before;
        if ended {
            self.serve(now, None);
        }
        ended
    }
}
