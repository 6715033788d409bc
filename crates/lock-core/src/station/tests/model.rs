//! A small store: one lock that readers share, or one semaphore, a queue, a counter, and a clock that runs one percent fast.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, FencingToken, Holder, Lease, Mode, Moment, Note,
    Operation, Owner, Queueing, ReleaseRequest, Released, Renewed, Slots, TokenRange, Waiting,
};

/// How long a place lasts at most.
const PLACE_MAX: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Store {
    waiting: Waiting,
    counter: u64,
    holds: Vec<Stored>,
    queue: VecDeque<Place>,
    /// Owners whose late claims are refused.
    buried: BTreeSet<Owner>,
    /// The undelivered events, with the number of their client.
    pub(super) news: Vec<(usize, Event)>,
}

#[derive(Debug)]
struct Stored {
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
        self.hold_of(owner).is_some_and(|hold| clock(until) <= hold.ends)
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
        let (ends, wanted) = (clock(now) + claim.terms.ttl.get(), !self.queue.is_empty());
        if let Some(hold) = self.holds.iter_mut().find(|hold| hold.lease.owner == claim.owner) {
            hold.ends = ends;
            let lease = hold.lease.clone();
            return Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted });
        }
        if let Some(old) = claim.replaces {
            return self.replace(now, client, claim, old);
        }
        self.check_use(claim.terms.mode)?;
        self.hand_over(now);
        let waits = self.queue.iter().any(|place| place.claim.owner != claim.owner);
        if self.hold_of(claim.owner).is_none() && !waits && self.fits(claim) {
            self.queue.clear();
            let free = self.free_slots();
            self.take(client, claim, free, ends);
        }
        Ok(self.wait(now, client, claim))
    }

    fn replace(&mut self, now: Moment, client: usize, claim: &Claim, old: Owner) -> Result<Answer, BackendError> {
        let Some(index) = self.holds.iter().position(|hold| hold.lease.owner == old) else {
            return Err(nothing_to_replace());
        };
        if claim.terms.mode == Mode::Exclusive && self.holds.len() > 1 {
            let (remaining, holder) = (None, self.shown());
            return Ok(Answer::Busy { remaining, holder, drawn: None });
        }
        let slots = self.holds.remove(index).lease.slots.get().to_vec();
        self.buried.insert(old);
        let lease = self.take(client, claim, slots, clock(now) + claim.terms.ttl.get());
        self.hand_over(now);
        Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: !self.queue.is_empty() })
    }

    fn wait(&mut self, now: Moment, client: usize, claim: &Claim) -> Answer {
        let (owner, wanted) = (claim.owner, !self.queue.is_empty());
        if let Some(hold) = self.hold_of(owner) {
            return Answer::Granted { lease: hold.lease.clone(), valid_for: hold.ends.since(clock(now)), wanted };
        }
        let holder = self.shown();
        let remaining = self.holds.iter().map(|hold| hold.ends.since(clock(now))).max();
        // The only holder of a lock drew the highest token.
        let several = self.is_shared() || claim.terms.mode.count() > 0;
        let drawn = several.then(|| FencingToken::new(self.counter).unwrap());
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
        let wanted = || Event::Wanted { name: place.claim.name.clone() };
        if self.queue.is_empty() && self.waiting == Waiting::QueueWithPush {
            self.news.extend(self.holds.iter().map(|hold| (hold.client, wanted())));
        }
        self.queue.push_back(place);
    }

    pub(super) fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        self.forget_old(now);
        let wanted = !self.queue.is_empty();
        let mut renew = |lease: &Lease| match self.holds.iter_mut().find(|hold| hold.lease == *lease) {
            Some(hold) => {
                hold.ends = clock(now) + lease.terms.ttl.get();
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
        let left = self.queue.len() < places;
        let (owner, kept) = (request.owner, request.owner.kept());
        let Some(index) = self.holds.iter().position(|hold| [owner, kept].contains(&hold.lease.owner)) else {
            self.hand_over(now);
            return if left { Released::Left } else { Released::NotHeld };
        };
        if let Some(keep) = request.keep.filter(|_| !self.is_shared()) {
            let (hold, until) = (&mut self.holds[index], clock(now) + keep);
            hold.ends = if hold.lease.owner == kept { until.min(hold.ends) } else { until };
            hold.lease.owner = kept;
        } else {
            self.holds.remove(index);
            self.hand_over(now);
        }
        Released::Released
    }

    /// To those at the head of the queue, as many as fit.
    fn hand_over(&mut self, now: Moment) {
        while self.queue.front().is_some_and(|next| self.fits(&next.claim)) {
            let Some(Place { client, claim, .. }) = self.queue.pop_front() else { return };
            let valid_for = claim.terms.ttl.get().min(PLACE_MAX);
            let free = self.free_slots();
            let lease = self.take(client, &claim, free, clock(now) + valid_for);
            if self.waiting == Waiting::QueueWithPush {
                self.news.push((client, Event::Granted { lease, valid_for, wanted: !self.queue.is_empty() }));
            }
        }
    }

    fn take(&mut self, client: usize, claim: &Claim, slots: impl IntoIterator<Item = u32>, ends: Moment) -> Lease {
        let tokens = TokenRange::above(self.counter, claim.width).unwrap();
        self.counter = tokens.high().get();
        let count = usize::try_from(claim.terms.mode.count()).unwrap();
        let lease = Lease { slots: Slots::new(slots.into_iter().take(count)), ..claim.lease(tokens) };
        assert!(self.fits(claim), "{lease:?} beside {:?}", self.holds);
        self.holds.push(Stored { client, lease: lease.clone(), note: claim.note.clone(), ends });
        lease
    }

    /// Whether the claim could be granted, if nobody waited before it.
    fn fits(&self, claim: &Claim) -> bool {
        match claim.terms.mode {
            Mode::Exclusive => self.holds.is_empty(),
            Mode::Shared => self.holds.is_empty() || self.is_shared(),
            Mode::Permits { count, limit } => {
                self.holds.iter().map(|hold| hold.lease.terms.mode.count()).sum::<u32>() + count.get() <= limit.get()
            }
        }
    }

    fn check_use(&self, wanted: Mode) -> Result<(), BackendError> {
        let waiting = self.queue.iter().map(|place| place.claim.terms.mode);
        let mut used = self.holds.iter().map(|hold| hold.lease.terms.mode).chain(waiting);
        match used.find(|mode| !mode.suits(wanted)) {
            Some(mode) => Err(BackendError::in_other_use("model", mode, wanted)),
            None => Ok(()),
        }
    }

    fn free_slots(&self) -> impl Iterator<Item = u32> + use<> {
        let taken: BTreeSet<u32> = self.holds.iter().flat_map(|hold| hold.lease.slots.get().to_vec()).collect();
        (0..).filter(move |slot| !taken.contains(slot))
    }

    fn is_shared(&self) -> bool {
        self.holds.iter().any(|hold| hold.lease.terms.mode == Mode::Shared)
    }

    fn hold_of(&self, owner: Owner) -> Option<&Stored> {
        self.holds.iter().find(|hold| hold.lease.owner == owner)
    }

    /// The holder whose lease ends last.
    fn shown(&self) -> Holder {
        let last = self.holds.iter().max_by_key(|hold| hold.ends).expect("somebody holds it");
        Holder::Leasehold { tokens: last.lease.tokens, note: last.note.clone() }
    }

    fn forget_old(&mut self, now: Moment) {
        self.holds.retain(|hold| hold.ends > clock(now));
        self.queue.retain(|place| place.ends > clock(now));
    }
}

fn nothing_to_replace() -> BackendError {
    let message = "the lease to replace is not held";
    BackendError::new("model", Operation::Acquire, ErrorKind::Protocol, Effect::None, message)
}

/// The store's clock, which is as much too fast as the drift allows.
fn clock(now: Moment) -> Moment {
    now + std::time::Duration::from_nanos(now.as_nanos() / 100)
}
