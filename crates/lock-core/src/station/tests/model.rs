//! A small store: one lock, a queue, a counter, and a clock that runs one percent fast.

use std::collections::{BTreeSet, VecDeque};

use crate::{
    Answer, BackendError, Certainty, Claim, Effect, ErrorKind, Event, Holder, Lease, Moment, Note, Operation, Owner,
    Queueing, ReleaseRequest, Released, Renewed, TokenRange, Waiting,
};

/// How long a place lasts at most.
const PLACE_MAX: std::time::Duration = std::time::Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Store {
    waiting: Waiting,
    counter: u64,
    hold: Option<(Lease, Note, Moment)>,
    queue: VecDeque<Place>,
    /// Owners whose late claims are refused.
    buried: BTreeSet<Owner>,
    /// The undelivered events, with the number of their client.
    pub(super) news: Vec<(usize, Event)>,
}

#[derive(Debug)]
struct Place {
    client: usize,
    claim: Claim,
    ends: Moment,
}

impl Store {
    pub(super) fn new(waiting: Waiting) -> Self {
        let (queue, buried) = (VecDeque::new(), BTreeSet::new());
        Self { waiting, counter: 0, hold: None, queue, buried, news: Vec::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.hold.is_none() && self.queue.is_empty()
    }

    /// Whether this owner's lease is stored, and lasts at least until then.
    pub(super) fn keeps(&self, owner: Owner, until: Moment) -> bool {
        self.hold.as_ref().is_some_and(|(held, _, ends)| held.owner == owner && clock(until) <= *ends)
    }

    /// Whether the hold and all places would be over by then.
    pub(super) fn is_over(&mut self, now: Moment) -> bool {
        self.forget_old(now);
        self.is_empty()
    }

    pub(super) fn acquire(&mut self, now: Moment, client: usize, claim: &Claim) -> Result<Answer, BackendError> {
        self.forget_old(now);
        if self.buried.contains(&claim.owner) {
            return Ok(Answer::Busy { remaining: None, holder: Holder::Foreign, drawn: None });
        }
        let granted = match &mut self.hold {
            Some((lease, _, ends)) if lease.owner == claim.owner => {
                *ends = clock(now) + claim.terms.ttl.get();
                Some(lease.clone())
            }
            Some((lease, ..)) if claim.replaces == Some(lease.owner) => {
                self.buried.insert(lease.owner);
                Some(self.take(claim, clock(now) + claim.terms.ttl.get()))
            }
            _ if claim.replaces.is_some() => return Err(nothing_to_replace()),
            Some(_) => None,
            None => {
                self.hand_over(now);
                if self.hold.is_none() { Some(self.take(claim, clock(now) + claim.terms.ttl.get())) } else { None }
            }
        };
        if let Some(lease) = granted {
            self.queue.retain(|place| place.claim.owner != claim.owner);
            return Ok(Answer::Granted { lease, valid_for: claim.terms.ttl.get(), wanted: false });
        }
        Ok(self.wait(now, client, claim))
    }

    fn wait(&mut self, now: Moment, client: usize, claim: &Claim) -> Answer {
        let Some((lease, note, ends)) = &self.hold else { unreachable!("somebody holds it") };
        let owner = claim.owner;
        if lease.owner == owner {
            return Answer::Granted { lease: lease.clone(), valid_for: ends.since(clock(now)), wanted: false };
        }
        let holder = Holder::Leasehold { tokens: lease.tokens, note: note.clone() };
        let remaining = Some(ends.since(clock(now)));
        if self.waiting == Waiting::Poll || claim.queueing == Queueing::Unwanted {
            self.queue.retain(|place| place.claim.owner != owner);
            return Answer::Busy { remaining, holder, drawn: None };
        }
        let valid_for = claim.terms.ttl.get().min(PLACE_MAX);
        let fresh = Place { client, claim: claim.clone(), ends: clock(now) + valid_for };
        match self.queue.iter_mut().find(|place| place.claim.owner == owner) {
            Some(place) => *place = fresh,
            None => self.queue.push_back(fresh),
        }
        let ahead = self.queue.iter().position(|place| place.claim.owner == owner).unwrap();
        Answer::Queued { position: u32::try_from(ahead + 1).unwrap(), remaining, valid_for, holder, drawn: None }
    }

    pub(super) fn renew(&mut self, now: Moment, leases: &[Lease]) -> Vec<Renewed> {
        self.forget_old(now);
        let mut renew = |lease: &Lease| match &mut self.hold {
            Some((held, _, ends)) if held == lease => {
                *ends = clock(now) + lease.terms.ttl.get();
                Renewed::Renewed { valid_for: lease.terms.ttl.get(), wanted: false }
            }
            Some(_) | None => Renewed::NotHeld,
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
        let (owner, kept) = (request.owner, request.owner.kept());
        if let Some((lease, _, ends)) = self.hold.as_mut().filter(|(lease, ..)| [owner, kept].contains(&lease.owner)) {
            if let Some(keep) = request.keep {
                let until = clock(now) + keep;
                *ends = if lease.owner == kept { until.min(*ends) } else { until };
                lease.owner = kept;
            } else {
                self.hold = None;
                self.hand_over(now);
            }
            return Released::Released;
        }
        if self.queue.len() < places { Released::Left } else { Released::NotHeld }
    }

    fn hand_over(&mut self, now: Moment) {
        let Some(Place { client, claim, .. }) = self.queue.pop_front() else { return };
        let valid_for = claim.terms.ttl.get().min(PLACE_MAX);
        let lease = self.take(&claim, clock(now) + valid_for);
        if self.waiting == Waiting::QueueWithPush {
            self.news.push((client, Event::Granted { lease, valid_for, wanted: false }));
        }
    }

    fn take(&mut self, claim: &Claim, ends: Moment) -> Lease {
        let tokens = TokenRange::above(self.counter, claim.width).unwrap();
        self.counter = tokens.high().get();
        let lease = claim.lease(tokens);
        self.hold = Some((lease.clone(), claim.note.clone(), ends));
        lease
    }

    fn forget_old(&mut self, now: Moment) {
        self.hold.take_if(|(_, _, ends)| *ends <= clock(now));
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
