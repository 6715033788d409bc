//! The rules as the specification of a store: what they answer to a request, and whether a store's answer says the same.

use std::time::Duration;

use lock_core::inspect::{Entry, Held, Revoked};
use lock_core::limit::{Request, Usage};
use lock_core::{
    Answer, BackendError, BlockingBackend, Claim, EntriesEnd, ErrorKind, Fenced, Holder, Lease, LockName, Mode, Moment,
    ReleaseRequest, Released, Renewed, Slots, TokenRange,
};
use lock_memory::store::{ClientId, Store};

use crate::verbs::operator;

/// A request about one lock.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Acquire(Claim),
    Release(ReleaseRequest),
    Renew(Lease),
    Fence(Lease),
    Revoke(Lease),
    Limit(Request),
    Show(LockName),
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Acquired(Answer),
    Released(Released),
    Renewed(Renewed),
    Fenced(Fenced),
    Revoked(Revoked),
    Limited(Usage),
    Shown(Option<Entry>),
}

type Said = Result<Reply, BackendError>;

impl Ask {
    pub(crate) fn name(&self) -> &LockName {
        match self {
            Self::Acquire(claim) => &claim.name,
            Self::Release(request) => &request.name,
            Self::Renew(lease) | Self::Fence(lease) | Self::Revoke(lease) => &lease.name,
            Self::Limit(request) => &request.name,
            Self::Show(name) => name,
        }
    }

    /// Asks a store.
    pub(crate) fn send(&self, store: &dyn BlockingBackend, within: Duration) -> Said {
        Ok(match self {
            Self::Acquire(claim) => Reply::Acquired(store.acquire(claim, within)?),
            Self::Release(request) => Reply::Released(store.release(request, within)?),
            Self::Renew(lease) => Reply::Renewed(store.renew(std::slice::from_ref(lease), within)?.remove(0)),
            Self::Fence(lease) => Reply::Fenced(store.fence(lease, within)?),
            Self::Revoke(lease) => {
                Reply::Revoked(store.revoke(&lease.name, lease.tokens.high(), &operator(), within)?)
            }
            Self::Limit(request) => Reply::Limited(store.limit(request, within)?),
            Self::Show(name) => Reply::Shown(store.holder(name, within)?),
        })
    }
}

/// How precisely answers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Timing {
    /// Requests come one after the other. Times that remain may differ by what a request takes.
    Sequential,
    /// Requests overlap, so a time or a hint may be from any moment of the request.
    Concurrent,
}

/// A ttl that ends while requests are compared.
pub(crate) const SHORT: Duration = Duration::from_millis(300);
/// How many places that were given up may count. More than there ever are.
const GIVEN_UP: u32 = 40;
/// By how much both may differ about the time that is left. Far more than a request takes, and less than any two ttls differ.
const ABOUT: Duration = Duration::from_secs(2);

/// The rules over maps, and which tokens of the store are which of theirs.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    timing: Timing,
    entries_end: EntriesEnd,
    /// Whether an expired place may still be stored.
    may_be_stale: bool,
    store: Store,
    /// The tokens of the rules and those of the store, in the order in which both rise.
    tokens: Vec<(TokenRange, TokenRange)>,
}

impl Reference {
    pub(crate) fn new(timing: Timing, entries_end: EntriesEnd) -> Self {
        Self { timing, entries_end, may_be_stale: false, store: Store::new(), tokens: Vec::new() }
    }

    /// Carries out the request by the rules.
    ///
    /// # Errors
    /// Both answers, if the store's is another one.
    pub(crate) fn agrees(&mut self, now: Moment, ask: &Ask, said: &Said) -> Result<(), String> {
        self.may_be_stale |= matches!(ask, Ask::Acquire(claim) if claim.terms.ttl.get() == SHORT);
        let expected = self.answer(now, ask);
        self.store.take_notices();
        let is_same = match (said, &expected) {
            (Err(said), Err(expected)) => told(said) == told(expected) || is_refused_either_way(ask, [said, expected]),
            (Ok(said), Ok(expected)) => self.is_same(now, ask, said, expected),
            (Ok(_), Err(_)) | (Err(_), Ok(_)) => false,
        };
        if is_same {
            Ok(())
        } else {
            Err(format!("{ask:?}\n  was answered {said:?},\n  and the rules say {expected:?}"))
        }
    }

    /// Carries out a request whose answer nobody knows.
    pub(crate) fn apply(&mut self, now: Moment, ask: &Ask) {
        drop(self.answer(now, ask));
    }

    fn answer(&mut self, now: Moment, ask: &Ask) -> Said {
        Ok(match ask {
            Ask::Acquire(claim) => Reply::Acquired(self.store.acquire(now, ClientId::new(1), claim)?),
            Ask::Release(request) => Reply::Released(self.store.release(now, request)?),
            Ask::Renew(lease) => {
                let lease = self.theirs(lease);
                Reply::Renewed(self.store.renew(now, std::slice::from_ref(&lease)).remove(0))
            }
            Ask::Fence(lease) => Reply::Fenced(self.store.fence(now, &self.theirs(lease))),
            Ask::Revoke(lease) => {
                let lease = self.theirs(lease);
                Reply::Revoked(self.store.revoke(now, &lease.name, lease.tokens.high(), &operator()))
            }
            Ask::Limit(request) => Reply::Limited(self.store.limit(now, request)?),
            Ask::Show(name) => Reply::Shown(self.store.holder(now, name)),
        })
    }

    /// A lease of the store with the tokens that the rules gave.
    fn theirs(&self, lease: &Lease) -> Lease {
        let known = self.tokens.iter().find(|(_, ours)| *ours == lease.tokens);
        Lease { tokens: known.map_or(lease.tokens, |(theirs, _)| *theirs), ..lease.clone() }
    }

    fn is_same(&mut self, now: Moment, ask: &Ask, said: &Reply, expected: &Reply) -> bool {
        match (said, expected) {
            (Reply::Acquired(said), Reply::Acquired(expected)) => self.is_same_answer(now, ask, said, expected),
            (Reply::Released(said), Reply::Released(expected)) => {
                // A place that has expired may still be there to be left.
                said == expected || (*said, *expected) == (Released::Left, Released::NotHeld) && may_expire(ask)
            }
            (Reply::Renewed(said), Reply::Renewed(expected)) => self.is_same_renewal(ask, said, expected),
            (Reply::Shown(Some(said)), Reply::Shown(Some(expected))) => self.is_same_entry(said, expected),
            (Reply::Fenced(Fenced::Higher(ours)), Reply::Fenced(Fenced::Higher(theirs))) => {
                self.tokens.iter().all(|(known, same)| (known.low() == *theirs) == (same.low() == *ours))
            }
            (said, expected) => said == expected,
        }
    }

    fn is_same_answer(&mut self, now: Moment, ask: &Ask, said: &Answer, expected: &Answer) -> bool {
        let Ask::Acquire(Claim { name, .. }) = ask else { return false };
        match (said, expected) {
            (
                Answer::Granted { lease, valid_for, wanted },
                Answer::Granted { lease: theirs, valid_for: for_them, wanted: wanted_there },
            ) => {
                let same_lease = self.rise(theirs.tokens, lease.tokens) && self.theirs(lease) == *theirs;
                let same_hint = self.is_same_hint(lease.terms.mode, *wanted, *wanted_there);
                same_lease && self.is_about(*valid_for, *for_them) && same_hint
            }
            (
                Answer::Queued { position, remaining, valid_for, holder, .. },
                Answer::Queued { position: place, remaining: left, valid_for: place_for, .. },
            ) => {
                // Places that were given up may count, but not before the first one.
                let is_near = (*place..=place + GIVEN_UP).contains(position) && (*position == 1) == (*place == 1);
                // A waiter that cannot be notified yet is answered with a shorter time, so that it asks again sooner.
                let is_sooner = self.timing == Timing::Concurrent && valid_for < place_for;
                let same_validity =
                    valid_for == place_for || is_sooner || self.is_cut_by_session(*valid_for, *place_for);
                let same_place = is_near && same_validity;
                same_place && self.is_about_remaining(*remaining, *left) && self.is_holder(now, name, holder)
            }
            (Answer::Busy { remaining, holder, .. }, Answer::Busy { remaining: left, .. }) => {
                self.is_about_remaining(*remaining, *left) && self.is_holder(now, name, holder)
            }
            (_, _) => false,
        }
    }

    fn is_same_renewal(&self, ask: &Ask, said: &Renewed, expected: &Renewed) -> bool {
        let Ask::Renew(lease) = ask else { return false };
        match (said, expected) {
            (
                Renewed::Renewed { valid_for, wanted },
                Renewed::Renewed { valid_for: for_them, wanted: wanted_there },
            ) => {
                (valid_for == for_them || self.is_cut_by_session(*valid_for, *for_them))
                    && self.is_same_hint(lease.terms.mode, *wanted, *wanted_there)
            }
            (said, expected) => said == expected,
        }
    }

    /// Whether both entries show the same leases. The store may still count waiters that gave up.
    fn is_same_entry(&mut self, said: &Entry, expected: &Entry) -> bool {
        let same_number = (said.leases, said.holders.len()) == (expected.leases, expected.holders.len());
        let mut here: Vec<_> = said.holders.iter().map(seen).collect();
        let mut there: Vec<_> = expected.holders.iter().map(seen).collect();
        here.sort_unstable_by_key(|(tokens, ..)| tokens.low());
        there.sort_unstable_by_key(|(tokens, ..)| tokens.low());
        let mut both = here.into_iter().zip(there);
        let same_leases =
            both.all(|(here, there)| self.rise(there.0, here.0) && (here.1, here.2) == (there.1, there.2));
        same_number && same_leases && said.waiters >= expected.waiters
    }

    /// Records the tokens of a grant on both sides. Returns whether they rise in the same order, and are the same as before.
    fn rise(&mut self, theirs: TokenRange, ours: TokenRange) -> bool {
        let at = self.tokens.partition_point(|(known, _)| known.low() < theirs.low());
        if let Some((known, same)) = self.tokens.get(at).filter(|(known, _)| known.low() == theirs.low()) {
            return (*known, *same) == (theirs, ours);
        }
        let is_above = self.tokens[..at].last().is_none_or(|(_, below)| below.high() < ours.low());
        let is_below = self.tokens.get(at).is_none_or(|(_, above)| ours.high() < above.low());
        self.tokens.insert(at, (theirs, ours));
        is_above && is_below && theirs.width() == ours.width()
    }

    /// Whether both say the same of waiters. An exclusive lease need not say it.
    fn is_same_hint(&self, mode: Mode, said: bool, expected: bool) -> bool {
        // A waiter whose place has expired may still be there.
        let is_stale = said && self.may_be_stale;
        said == expected || is_stale || mode == Mode::Exclusive || self.timing == Timing::Concurrent
    }

    fn is_about(&self, said: Duration, expected: Duration) -> bool {
        self.timing == Timing::Concurrent || said.abs_diff(expected) < ABOUT || self.is_cut_by_session(said, expected)
    }

    /// Whether the time is shorter because the session is not sure to last longer.
    fn is_cut_by_session(&self, said: Duration, expected: Duration) -> bool {
        self.entries_end == EntriesEnd::WithSession && said < expected && !said.is_zero()
    }

    fn is_about_remaining(&self, said: Option<Duration>, expected: Option<Duration>) -> bool {
        match (said, expected) {
            (Some(said), Some(expected)) => self.is_about(said, expected),
            (None, None) => true,
            // A store whose first place has expired may be unable to tell.
            (None, Some(_)) => {
                self.may_be_stale || self.timing == Timing::Concurrent || self.entries_end == EntriesEnd::WithSession
            }
            (Some(_), None) => self.timing == Timing::Concurrent,
        }
    }

    /// Whether the answer names a current holder.
    fn is_holder(&self, now: Moment, name: &LockName, holder: &Holder) -> bool {
        let Holder::Leasehold { tokens, .. } = holder else { return false };
        let known = self.tokens.iter().find(|(_, ours)| ours == tokens);
        known.is_none_or(|(theirs, _)| self.store.holds(now, name).any(|hold| hold.tokens == *theirs))
    }
}

/// The tokens, the mode and the slots of a lease.
fn seen(held: &Held) -> (TokenRange, Mode, &Slots) {
    let Holder::Leasehold { tokens, .. } = held.holder else { panic!("{held:?} is none of ours") };
    (tokens, held.mode, &held.slots)
}

/// Of a replacement that is wrong in two ways, a store may name either.
fn is_refused_either_way(ask: &Ask, errors: [&BackendError; 2]) -> bool {
    let wrong = [ErrorKind::NotHeld, ErrorKind::OtherKind];
    let replaces = matches!(ask, Ask::Acquire(claim) if claim.replaces.is_some());
    replaces && errors.iter().all(|error| wrong.contains(&error.kind()))
}

fn may_expire(ask: &Ask) -> bool {
    matches!(ask, Ask::Release(request) if request.terms.ttl.get() == SHORT)
}

/// An error without the name of the store.
fn told(error: &BackendError) -> (ErrorKind, lock_core::Effect, String) {
    let text = error.gist();
    let text = text.split_once(": ").map_or(text.as_str(), |(_, text)| text);
    (error.kind(), error.effect(), text.split(';').next().unwrap_or_default().to_owned())
}
