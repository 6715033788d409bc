//! What a guard knows: its token, how long it may rely on it, and whether it lost it.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::{BackendError, FencingToken, Lease, LockName, Moment};

/// Why a hold ended before it was given up.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LossReason {
    /// Its validity ended without a renewal that the store confirmed; with the last error, if there was one.
    Expired(Option<BackendError>),
    /// The store says that it holds the lock no more: it expired there, was revoked, or the store lost it.
    NotHeld,
    /// It was held for as long as `max_hold` allows.
    MaxHold,
    /// The client was closed, or whatever renewed its leases ended.
    Closed,
}

impl fmt::Display for LossReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(None) => f.write_str("its lease ended before a renewal was confirmed"),
            Self::Expired(Some(error)) => write!(f, "its lease ended before a renewal was confirmed ({error})"),
            Self::NotHeld => {
                f.write_str("the store no longer knows the lease: it expired there, was revoked, or the store lost it")
            }
            Self::MaxHold => f.write_str("it was held for the longest time allowed (max_hold)"),
            Self::Closed => f.write_str("the client was closed"),
        }
    }
}

/// The lock is not held any more: stop what it protects.
#[derive(Clone, Debug, thiserror::Error)]
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
/// Reading it takes no lock: the validity is one atomic number, the loss is written once.
#[derive(Debug)]
pub struct Hold {
    lease: Lease,
    token: FencingToken,
    valid_until: AtomicU64,
    lost: OnceLock<LossReason>,
}

impl Hold {
    /// A turn under `lease` with this token, valid until this moment unless it is extended.
    pub fn new(lease: Lease, token: FencingToken, valid_until: Moment) -> Self {
        Self { lease, token, valid_until: AtomicU64::new(valid_until.as_nanos()), lost: OnceLock::new() }
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
        Moment::from_nanos(self.valid_until.load(Ordering::Acquire))
    }

    /// How much of the hold remains; zero once it is lost.
    pub fn remaining(&self, now: Moment) -> Duration {
        if self.lost.get().is_some() { Duration::ZERO } else { self.valid_until().since(now) }
    }

    /// Whether the lock is still held. Local and cheap: compares the deadline with `now`.
    ///
    /// # Errors
    /// `Lost`, with the reason.
    pub fn check(&self, now: Moment) -> Result<(), Lost> {
        match self.lost.get() {
            Some(reason) => Err(self.loss(reason.clone())),
            None if now >= self.valid_until() => Err(self.loss(LossReason::Expired(None))),
            None => Ok(()),
        }
    }

    /// Why the hold was lost, once it is.
    pub fn lost(&self) -> Option<Lost> {
        self.lost.get().map(|reason| self.loss(reason.clone()))
    }

    /// Moves the end of the validity. Never called on a lost hold by a station.
    pub fn extend(&self, valid_until: Moment) {
        self.valid_until.fetch_max(valid_until.as_nanos(), Ordering::Release);
    }

    /// Marks the hold as lost; the first reason stays.
    pub fn lose(&self, reason: LossReason) {
        _ = self.lost.set(reason);
    }

    fn loss(&self, reason: LossReason) -> Lost {
        Lost { name: self.lease.name.clone(), token: self.token, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Owner, TokenRange, Ttl, Width};

    fn hold() -> Hold {
        let lease = Lease {
            name: "a".parse().unwrap(),
            owner: Owner::from_random([1; 16]),
            tokens: TokenRange::above(6, Width::ONE).unwrap(),
            ttl: Ttl::DEFAULT,
        };
        Hold::new(lease.clone(), lease.tokens.low(), Moment::from_nanos(100))
    }

    #[test]
    fn a_hold_ends_at_its_deadline_to_the_nanosecond() {
        let hold = hold();
        assert!(hold.check(Moment::from_nanos(99)).is_ok());
        assert_eq!(hold.remaining(Moment::from_nanos(99)), Duration::from_nanos(1));
        let lost = hold.check(Moment::from_nanos(100)).unwrap_err();
        assert!(matches!(lost.reason, LossReason::Expired(None)));
        assert_eq!(lost.to_string(), "lost the lock \"a\" (token 7): its lease ended before a renewal was confirmed");
        assert_eq!(hold.token().get(), 7);
        assert!(hold.lost().is_none());
    }

    #[test]
    fn extending_never_shortens_and_the_first_loss_stays() {
        let hold = hold();
        hold.extend(Moment::from_nanos(50));
        assert_eq!(hold.valid_until(), Moment::from_nanos(100));
        hold.extend(Moment::from_nanos(200));
        assert!(hold.check(Moment::from_nanos(150)).is_ok());
        hold.lose(LossReason::NotHeld);
        hold.lose(LossReason::MaxHold);
        assert!(matches!(hold.check(Moment::from_nanos(0)).unwrap_err().reason, LossReason::NotHeld));
        assert!(matches!(hold.lost().unwrap().reason, LossReason::NotHeld));
        assert_eq!(hold.remaining(Moment::from_nanos(0)), Duration::ZERO);
    }
}
