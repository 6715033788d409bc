//! A hold: its token, how long its guard may rely on it, and whether it was lost.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::{BackendError, FencingToken, Lease, LockName, Moment, Note};

/// Why a hold ended before it was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// Its validity ended before the store confirmed a renewal; with the last error, if there was one. Observers are notified of the same about a
    /// leader that stepped down before that.
    Expired(Option<BackendError>),
    /// An operator ended the lease, as `leasehold break` does.
    Revoked {
        /// The operator, by their own description.
        by: Note,
    },
    /// The store says that the lease no longer exists, although it should have lasted longer: the store lost it, or somebody else has the
    /// lock now, or an operator ended it and the answer did not say who.
    NotHeld,
    /// It lasted for as long as `max_hold` allows.
    MaxHold,
    /// The client was closed, or the thread that renewed its leases ended.
    Closed,
}

impl LossReason {
    /// Why it ended, in a few fixed words, for counting.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Expired(_) => "expired",
            Self::Revoked { .. } => "revoked",
            Self::NotHeld => "not held",
            Self::MaxHold => "max hold",
            Self::Closed => "closed",
        }
    }
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(None) => f.write_str("no renewal of its lease was confirmed in time"),
            Self::Expired(Some(error)) => write!(f, "no renewal of its lease was confirmed in time ({error})"),
            Self::Revoked { by } => write!(f, "an operator ended its lease early: {by}"),
            Self::NotHeld => f.write_str(
                "the store no longer has the lease: it lost it, gave the lock to somebody else, or was told to end it",
            ),
            Self::MaxHold => f.write_str("it was held for as long as `max_hold` allows"),
            Self::Closed => f.write_str("the client was closed"),
        }
    }
}

/// The lock is not held any more: stop what it protects.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("lost the lock \"{name}\" (token {token}): {reason}")]
pub struct Lost {
    /// The lock.
    pub name: LockName,
    /// The token of the lost hold.
    pub token: FencingToken,
    /// What happened.
    pub reason: LossReason,
}

/// One turn as its guard and the client share it.
///
/// Reading it takes no lock: the validity is one atomic number, the ends and the loss are written once.
#[derive(Debug)]
pub struct Hold {
    lease: Arc<Lease>,
    token: FencingToken,
    /// [`OVER`] once it was reported as expired: from then on no renewal can revive it.
    valid_until: AtomicU64,
    /// When `max_hold` ends the turn.
    pub(crate) hold_until: Option<Moment>,
    /// Boxed: few holds are lost.
    lost: OnceLock<Box<LossReason>>,
    /// Whether its guard has ended it.
    given_up: AtomicBool,
    /// Whether its user has stopped early, because no renewal was confirmed in time.
    stepped_down: AtomicBool,
    /// The same turn under the lease that has replaced this one.
    next: OnceLock<Arc<Self>>,
}

/// A deadline that no renewal moves again: the end was reported. No real deadline is so early.
const OVER: u64 = 0;

impl Hold {
    /// A turn under `lease` with this token, valid until this moment unless it is extended, but never beyond
    /// `hold_until`, where `max_hold` ends it.
    pub fn new(lease: Arc<Lease>, token: FencingToken, valid_until: Moment, hold_until: Option<Moment>) -> Self {
        let (valid_until, lost) = (AtomicU64::new(valid_until.as_nanos()), OnceLock::new());
        let (given_up, stepped_down, next) = (AtomicBool::new(false), AtomicBool::new(false), OnceLock::new());
        Self { lease, token, valid_until, hold_until, lost, given_up, stepped_down, next }
    }

    /// The lease that the turn is under.
    pub fn lease(&self) -> &Lease {
        &self.lease
    }

    /// The turn's token.
    pub fn token(&self) -> FencingToken {
        self.token
    }

    /// When the hold ends unless it is extended.
    pub fn valid_until(&self) -> Moment {
        let lease_until = self.lease_until();
        self.hold_until.map_or(lease_until, |end| end.min(lease_until))
    }

    /// How much of the hold remains; zero once it is lost.
    pub fn remaining(&self, now: Moment) -> Duration {
        if self.ended(now).is_some() { Duration::ZERO } else { self.valid_until().since(now) }
    }

    /// Whether the lock is still held. Local and cheap: compares the deadline with `now`. An error is final: no renewal
    /// that is confirmed later revives the hold.
    ///
    /// # Errors
    /// `Lost`, with the reason as far as it is known here; [`lost`](Self::lost) may know more a moment later.
    pub fn check(&self, now: Moment) -> Result<(), Lost> {
        while let Some(reason) = self.ended(now) {
            // The end by `max_hold` is final by itself, and so is a loss.
            if !matches!(reason, LossReason::Expired(_)) || self.lost.get().is_some() || self.expire(now) {
                return Err(self.loss(reason));
            }
        }
        Ok(())
    }

    /// Ends the validity, so that no renewal extends it, unless one was confirmed in between.
    fn expire(&self, now: Moment) -> bool {
        let over = |until| (until <= now.as_nanos()).then_some(OVER);
        self.valid_until.fetch_update(Ordering::AcqRel, Ordering::Acquire, over).is_ok()
    }

    /// Why the hold is not valid, if it is not.
    pub(crate) fn ended(&self, now: Moment) -> Option<LossReason> {
        if let Some(reason) = self.lost.get() {
            return Some(LossReason::clone(reason));
        }
        let lease_until = self.lease_until();
        match self.hold_until.filter(|end| *end <= lease_until) {
            Some(end) => (end <= now).then_some(LossReason::MaxHold),
            None => (lease_until <= now).then_some(LossReason::Expired(None)),
        }
    }

    fn lease_until(&self) -> Moment {
        Moment::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    /// Why the hold was lost, once it is.
    pub fn lost(&self) -> Option<Lost> {
        self.lost.get().map(|reason| self.loss(LossReason::clone(reason)))
    }

    /// Moves the end of the validity. Returns false for a hold that was reported as expired, which is not revived.
    pub fn extend(&self, valid_until: Moment) -> bool {
        let later = |until| (until != OVER).then(|| valid_until.as_nanos().max(until));
        self.valid_until.fetch_update(Ordering::AcqRel, Ordering::Acquire, later).is_ok()
    }

    /// Marks the hold as lost; the first reason stays.
    pub fn lose(&self, reason: LossReason) {
        _ = self.lost.set(Box::new(reason));
    }

    /// Whether the guard has ended the hold: it was dropped, or its release has begun. Then no loss is looked for any more.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Ordering::Acquire)
    }

    /// Notes that the guard has ended the hold.
    pub(crate) fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
    }

    /// Notes that its user has stopped before the lease could end, because no renewal was confirmed in time. For its observers, the
    /// end of this hold is a loss.
    pub fn step_down(&self) {
        self.stepped_down.store(true, Ordering::Release);
    }

    /// Whether its user has stopped early. That is final: a renewal that is confirmed later does not change it.
    pub fn has_stepped_down(&self) -> bool {
        self.stepped_down.load(Ordering::Acquire)
    }

    /// The station has dropped the hold: it is lost, unless it was released or its lease was replaced.
    pub(crate) fn let_go(&self) {
        if !self.is_given_up() && self.next.get().is_none() {
            self.lose(LossReason::Closed);
        }
    }

    /// The present hold of the turn: this one, unless its lease was replaced.
    pub fn latest(&self) -> &Self {
        let mut latest = self;
        while let Some(next) = latest.next.get() {
            latest = next;
        }
        latest
    }

    /// Records that the turn continues under another lease.
    pub(crate) fn continue_as(&self, next: Arc<Self>) {
        _ = self.next.set(next);
    }

    fn loss(&self, reason: LossReason) -> Lost {
        Lost { name: self.lease.name.clone(), token: self.token, reason }
    }
}

impl Drop for Hold {
    /// One after the other: a guard may have changed its mode any number of times while a watch kept its first hold.
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(hold) = next {
            next = Arc::into_inner(hold).and_then(|mut hold| hold.next.take());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owner, Slots, Terms, TokenRange, Ttl, Width};

    fn hold(hold_until: Option<u64>) -> Hold {
        let lease = Arc::new(Lease {
            name: "a".parse().unwrap(),
            owner: Owner::from_random([1; 16]),
            tokens: TokenRange::above(6, Width::ONE).unwrap(),
            terms: Terms::exclusive(Ttl::DEFAULT),
            slots: Slots::NONE,
        });
        let token = lease.tokens.low();
        Hold::new(lease, token, Moment::from_nanos(100), hold_until.map(Moment::from_nanos))
    }

    #[test]
    fn a_hold_ends_at_its_deadline_to_the_nanosecond() {
        let hold = hold(None);
        assert!(hold.check(Moment::from_nanos(99)).is_ok());
        assert_eq!(hold.remaining(Moment::from_nanos(99)), Duration::from_nanos(1));
        let lost = hold.check(Moment::from_nanos(100)).unwrap_err();
        assert_eq!(lost.reason, LossReason::Expired(None));
        assert_eq!(lost.to_string(), "lost the lock \"a\" (token 7): no renewal of its lease was confirmed in time");
        assert_eq!(hold.token().get(), 7);
        assert!(hold.lost().is_none());
    }

    #[test]
    fn a_hold_that_ends_with_its_lease_ends_by_its_max_hold() {
        assert_eq!(hold(Some(100)).check(Moment::from_nanos(100)).unwrap_err().reason, LossReason::MaxHold);
        assert_eq!(hold(Some(101)).check(Moment::from_nanos(101)).unwrap_err().reason, LossReason::Expired(None));
    }

    #[test]
    fn extending_never_shortens_and_the_first_loss_stays() {
        let hold = hold(None);
        hold.extend(Moment::from_nanos(50));
        assert_eq!(hold.valid_until(), Moment::from_nanos(100));
        hold.extend(Moment::from_nanos(200));
        assert!(hold.check(Moment::from_nanos(150)).is_ok());
        hold.lose(LossReason::NotHeld);
        hold.lose(LossReason::MaxHold);
        assert_eq!(hold.check(Moment::from_nanos(0)).unwrap_err().reason, LossReason::NotHeld);
        assert_eq!(hold.lost().unwrap().reason, LossReason::NotHeld);
        assert_eq!(hold.remaining(Moment::from_nanos(0)), Duration::ZERO);
    }

    #[test]
    fn a_turn_that_has_changed_its_lease_any_number_of_times_is_found_from_its_first_hold() {
        let mut chain = Arc::new(hold(Some(150)));
        for _ in 0..200_000 {
            let earlier = Arc::new(hold(None));
            earlier.continue_as(chain);
            chain = earlier;
        }
        assert_eq!(chain.latest().hold_until, Some(Moment::from_nanos(150)));
        drop(chain);
    }

    #[test]
    fn a_no_is_final() {
        let hold = hold(None);
        assert_eq!(hold.remaining(Moment::from_nanos(100)), Duration::ZERO);
        hold.extend(Moment::from_nanos(200));
        assert!(hold.check(Moment::from_nanos(199)).is_ok(), "nobody was told otherwise");
        assert!(hold.check(Moment::from_nanos(200)).is_err());
        hold.extend(Moment::from_nanos(300));
        assert_eq!(hold.check(Moment::from_nanos(250)).unwrap_err().reason, LossReason::Expired(None));
        assert_eq!(hold.remaining(Moment::from_nanos(250)), Duration::ZERO);
        hold.lose(LossReason::NotHeld);
        assert_eq!(hold.check(Moment::from_nanos(250)).unwrap_err().reason, LossReason::NotHeld);
    }

    #[test]
    fn the_end_by_max_hold_says_so_and_is_never_extended() {
        let hold = hold(Some(150));
        let reason = |now| hold.check(Moment::from_nanos(now)).unwrap_err().reason;
        assert_eq!(hold.valid_until(), Moment::from_nanos(100));
        hold.extend(Moment::from_nanos(200));
        assert_eq!(hold.valid_until(), Moment::from_nanos(150));
        assert!(matches!(reason(150), LossReason::MaxHold));
        assert!(matches!(reason(250), LossReason::MaxHold), "that came first");
    }
}
