//! A small store: one name, a queue, a counter, and a clock that runs one percent fast.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use crate::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Fairness, Holder, Lease, Mode, Moment, Note, Operation,
    Owner, Queueing, ReleaseRequest, Released, Renewed, Slots, StoreEvent, TokenRange, Waiting,
};

/// How long a place lasts at most.
const PLACE_MAX: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Store {
    waiting: Waiting,
    counter: u64,
    holds: Vec<Held>,
    queue: VecDeque<Place>,
    /// Owners whose late claims are refused.
    buried: BTreeSet<Owner>,
    /// The undelivered events, with the number of their client.
    pub(super) news: Vec<(usize, StoreEvent)>,
}

#[derive(Debug)]
struct Held {
    client: usize,
    lease: Lease,
    note: Note,
    ends: Moment,
}

#[derive(Debug)]
struct Place {
    client: usize,
    claim: Claim,
    ends: Moment,
}

impl Store {
    pub(super) fn new(waiting: Waiting) -> Self {
        let (holds, queue, buried) = (Vec::new(), VecDeque::new(), BTreeSet::new());
        Self { waiting, counter: 0, holds, queue, buried, news: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.holds.is_empty() && self.queue.is_empty()
    }

    /// Whether this owner's lease is stored, and lasts at least until then.
    pub(super) fn keeps(&self, owner: Owner, until: Moment) -> bool {
        self.holds.iter().any(|held| held.lease.owner == owner && clock(until) <= held.ends)
    }

    /// Whether all holds and all places would be over by then.
    pub(super) fn is_over(&mut self, now: Moment) -> bool {
        self.forget_old(now);
        self.is_empty()
    }

    pub(super) fn acquire(&mut self, now: Moment, client: usize, claim: &Claim) -> Result<Answer, BackendError> {
        self.forget_old(now);
        if self.buried.contains(&claim.owner) {
            return Ok(Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None });
        }
        self.hand_over(now);
        if self.holds.iter().all(|held| held.lease.owner != claim.owner) {
            match claim.replaces {
                Some(old) if !self.may_replace(old, claim)? => return Ok(self.wait(now, client, claim)),
                Some(old) => {
                    let index = self.holds.iter().position(|held| held.lease.owner == old).unwrap();
                    let slots = self.holds.remove(index).lease.slots;
                    self.buried.insert(old);
                    self.take(client, claim, slots.get().iter().copied(), clock(now) + claim.terms.ttl.get());
                    self.hand_over(now);
                }
                None => {
                    self.check_use(claim.terms.mode)?;
                    let first = self.queue.front().is_none_or(|place| place.claim.owner == claim.owner);
                    let may_be_next = first || claim.fairness == Fairness::Barging;
                    if !may_be_next || !self.fits(claim.terms.mode) {
                        return Ok(self.wait(now, client, claim));
                    }
                    let free = self.free_slots();
                    self.take(client, claim, free, clock(now) + claim.terms.ttl.get());
                }
            }
        }
        self.queue.retain(|place| place.claim.owner != claim.owner);
        let held = self.holds.iter_mut().find(|held| held.lease.owner == claim.owner).expect("it holds");
        held.ends = clock(now) + claim.terms.ttl.get();
        let (lease, wanted) = (held.lease.clone(), !self.queue.is_empty());
        Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted })
    }

    /// Whether the lease to replace is held, and nobody else stands in the way.
    fn may_replace(&self, old: Owner, claim: &Claim) -> Result<bool, BackendError> {
        let Some(held) = self.holds.iter().find(|held| held.lease.owner == old) else {
            return Err(refused(ErrorKind::NotHeld, "the lease to replace is not held"));
        };
        match (held.lease.terms.mode, claim.terms.mode) {
            (Mode::Exclusive, Mode::Exclusive | Mode::Shared) | (Mode::Shared, Mode::Shared) => Ok(true),
            (Mode::Shared, Mode::Exclusive) => Ok(self.holds.len() == 1),
            (Mode::Permits { count, limit, .. }, Mode::Permits { count: fewer, limit: same, .. })
                if fewer <= count && same == limit =>
            {
                Ok(true)
            }
            (old, new) => Err(refused(ErrorKind::Protocol, &format!("{old:?} is not replaced by {new:?}"))),
        }
    }

    fn check_use(&self, wanted: Mode) -> Result<(), BackendError> {
        let waiting = self.queue.iter().map(|place| place.claim.terms.mode);
        let mut used = self.holds.iter().map(|held| held.lease.terms.mode).chain(waiting);
        match used.find(|mode| !mode.suits(wanted)) {
            Some(mode) => Err(BackendError::in_other_use("model", mode, wanted)),
            None => Ok(()),
        }
    }

    fn fits(&self, wanted: Mode) -> bool {
        let modes = || self.holds.iter().map(|held| held.lease.terms.mode);
        match wanted {
            Mode::Exclusive => self.holds.is_empty(),
            Mode::Shared => modes().all(|mode| mode == Mode::Shared),
            Mode::Permits { count, limit, .. } => modes().map(Mode::count).sum::<u32>() + count.get() <= limit.get(),
        }
    }

    fn wait(&mut self, now: Moment, client: usize, claim: &Claim) -> Answer {
        let owner = claim.owner;
        let last = self.holds.iter().max_by_key(|held| held.ends);
        let holder = match last {
            Some(held) => Holder::Leasehold { tokens: held.lease.tokens, note: held.note.clone() },
            None => Holder::Foreign,
        };
        let remaining = last.map(|held| held.ends.since(clock(now)));
        // Where one holds at a time, its tokens are the last ones drawn.
        let many = self.holds.iter().any(|held| held.lease.terms.mode != Mode::Exclusive);
        let drawn = crate::FencingToken::new(self.counter).ok().filter(|_| many);
        if self.waiting == Waiting::Poll || claim.queueing == Queueing::Unwanted {
            self.queue.retain(|place| place.claim.owner != owner);
            return Answer::Busy { remaining, holder, drawn };
        }
        let valid_for = claim.terms.ttl.get().min(PLACE_MAX);
        let fresh = Place { client, claim: claim.clone(), ends: clock(now) + valid_for };
        match self.queue.iter_mut().find(|place| place.claim.owner == owner) {
            Some(place) => *place = fresh,
            None => self.append(fresh),
        }
        let ahead = self.queue.iter().position(|place| place.claim.owner == owner).unwrap();
        Answer::Queued { position: u32::try_from(ahead + 1).unwrap(), remaining, valid_for, holder, drawn }
    }

    /// The holders hear of the first that waits.
    fn append(&mut self, place: Place) {
        let wanted = || StoreEvent::Wanted { name: place.claim.name.clone() };
        if self.queue.is_empty() && self.waiting == Waiting::QueueWithPush {
            self.news.extend(self.holds.iter().map(|held| (held.client, wanted())));
        }
        self.queue.push_back(place);
    }

    pub(super) fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        self.forget_old(now);
        let wanted = !self.queue.is_empty();
        let mut renew = |lease: &Lease| match self.holds.iter_mut().find(|held| held.lease == *lease) {
            Some(held) => {
                held.ends = clock(now) + lease.terms.ttl.get();
                Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted }
            }
            None => Renewed::NotHeld,
        };
        leases.iter().map(&mut renew).collect()
    }

    pub(super) fn release(&mut self, now: Moment, request: &ReleaseRequest) -> Released {
        self.forget_old(now);
        if request.certainty == Certainty::Unknown {
            self.buried.insert(request.owner);
        }
        let places = self.queue.len();
        self.queue.retain(|place| place.claim.owner != request.owner);
        let owners = [request.owner, request.owner.kept()];
        let released = if let Some(index) = self.holds.iter().position(|held| owners.contains(&held.lease.owner)) {
            self.end(now, index, request);
            Released::Released
        } else if self.queue.len() < places {
            Released::Left
        } else {
            Released::NotHeld
        };
        self.hand_over(now);
        released
    }

    fn end(&mut self, now: Moment, index: usize, request: &ReleaseRequest) {
        let Some(keep) = request.keep else {
            self.holds.remove(index);
            return;
        };
        let (held, kept) = (&mut self.holds[index], request.owner.kept());
        let until = clock(now) + keep;
        held.ends = if held.lease.owner == kept { until.min(held.ends) } else { until };
        held.lease.owner = kept;
    }

    /// Grants what was freed to as many as fit, in order.
    fn hand_over(&mut self, now: Moment) {
        while self.queue.front().is_some_and(|place| self.fits(place.claim.terms.mode)) {
            let Some(Place { client, claim, .. }) = self.queue.pop_front() else { return };
            let valid_for = claim.terms.ttl.get().min(PLACE_MAX);
            let free = self.free_slots();
            let lease = self.take(client, &claim, free, clock(now) + valid_for);
            if self.waiting == Waiting::QueueWithPush {
                self.news.push((client, StoreEvent::Granted { lease, valid_for, wanted: !self.queue.is_empty() }));
            }
        }
    }

    fn take(&mut self, client: usize, claim: &Claim, slots: impl IntoIterator<Item = u32>, ends: Moment) -> Lease {
        let tokens = TokenRange::above(self.counter, claim.width).unwrap();
        self.counter = tokens.high().get();
        let slots = Slots::new(slots.into_iter().take(usize::try_from(claim.terms.mode.count()).unwrap()));
        let lease = Lease { slots, ..claim.lease(tokens) };
        self.holds.push(Held { client, lease: lease.clone(), note: claim.note.clone(), ends });
        lease
    }

    fn free_slots(&self) -> impl Iterator<Item = u32> + use<> {
        let taken: BTreeSet<u32> = self.holds.iter().flat_map(|held| held.lease.slots.get().to_vec()).collect();
        (0..).filter(move |slot| !taken.contains(slot))
    }

    fn forget_old(&mut self, now: Moment) {
        self.holds.retain(|held| held.ends > clock(now));
        self.queue.retain(|place| place.ends > clock(now));
    }
}

fn refused(kind: ErrorKind, message: &str) -> BackendError {
    BackendError::new("model", Operation::Acquire, kind, Effect::None, message)
}

/// The store's clock, which is as much too fast as the drift allows.
fn clock(now: Moment) -> Moment {
    now + Duration::from_nanos(now.as_nanos() / 100)
}
