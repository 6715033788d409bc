//! The hold of a guard, with the client's clock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::{FencingToken, Hold, LeaseId, LockName, Lost};

use crate::SharedClock;

/// Proof that a lock is held: a hold, and the clock to compare its deadline with. Every guard derefs to it.
pub struct Proof {
    hold: Arc<Hold>,
    clock: SharedClock,
}

impl Proof {
    /// Proof of a hold.
    pub fn new(hold: Arc<Hold>, clock: SharedClock) -> Self {
        Self { hold, clock }
    }

    /// The same guard's proof of the hold that replaces this one.
    pub(crate) fn under(self, hold: Arc<Hold>) -> Self {
        Self { hold, ..self }
    }

    /// The name of the lock.
    pub fn name(&self) -> &LockName {
        &self.hold.lease().name
    }

    /// The number that the protected resource checks: higher than that of every earlier holder.
    ///
    /// Of a reader, it tells how fresh its reads are, and must not go with a write. Of several permits, it is the token of the
    /// first slot.
    pub fn fencing_token(&self) -> FencingToken {
        self.hold.token()
    }

    /// A value that no other holder has, for a resource that can compare values but not tokens. It is public: nobody can renew or
    /// release the lock with it. It changes with the token.
    pub fn lease_id(&self) -> LeaseId {
        LeaseId::of(self.hold.lease().owner, self.hold.token())
    }

    /// When the hold ends unless it is renewed first. Each renewal moves it.
    ///
    /// An [`Instant`] stands still while the machine is suspended, so ask again after a pause; [`check`](Self::check)
    /// and [`remaining`](Self::remaining) count suspend.
    pub fn valid_until(&self) -> Instant {
        Instant::now() + self.remaining()
    }

    /// How much longer the hold is sure to last without a renewal; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.hold.remaining(self.clock.now())
    }

    /// The clock of a proof. Not a method, so that guards do not have it.
    #[doc(hidden)]
    pub fn clock(this: &Self) -> &SharedClock {
        &this.clock
    }

    /// Whether the lock is still held. Local and cheap: compares the deadline with the clock.
    ///
    /// `Ok` may be out of date by the time you act on it; the fencing token covers that gap.
    ///
    /// # Errors
    /// `Lost`, with the reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.hold.check(self.clock.now())
    }

    /// The hold, for the client that made the proof. Not a method, so that guards do not have it.
    pub fn hold(proof: &Self) -> &Arc<Hold> {
        &proof.hold
    }
}

impl fmt::Debug for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lease = self.hold.lease();
        let mut proof = f.debug_struct("Proof");
        proof.field("name", &lease.name).field("mode", &lease.terms.mode.kind()).field("token", &self.fencing_token());
        if !lease.slots.get().is_empty() {
            proof.field("slots", &lease.slots.get());
        }
        proof.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use lock_core::{Lease, LossReason, Mode, Owner, Slots, Terms, TokenRange, Ttl, Width};

    use super::*;
    use crate::{Clock, ManualClock};

    const TTL: Duration = Duration::from_secs(30);

    fn proof(clock: &ManualClock, mode: Mode, slots: Slots) -> (Proof, Arc<Hold>) {
        let tokens = TokenRange::above(6, Width::ONE).unwrap();
        let (name, owner) = ("a".parse().unwrap(), Owner::from_random([1; 16]));
        let lease = Arc::new(Lease { name, owner, tokens, terms: Terms { mode, ttl: Ttl::DEFAULT }, slots });
        let hold = Arc::new(Hold::new(lease, tokens.low(), clock.now() + TTL, None));
        (Proof::new(Arc::clone(&hold), Arc::new(clock.clone())), hold)
    }

    #[test]
    fn a_proof_shows_what_is_held() {
        let shown = |mode, slots| format!("{:?}", proof(&ManualClock::new(), mode, slots).0);
        assert!(
            shown(Mode::Exclusive, Slots::NONE).contains("mode: Exclusive")
                && !shown(Mode::Shared, Slots::NONE).contains("slots")
        );
        let permits = shown(Mode::permits(2, 4).unwrap(), Slots::new([1, 3]));
        assert!(permits.contains("mode: Permits") && permits.contains("slots: [1, 3]"), "{permits}");
    }

    #[test]
    fn a_proof_ends_with_its_deadline_by_its_clock() {
        let clock = ManualClock::new();
        let name: LockName = "a".parse().unwrap();
        let (proof, hold) = proof(&clock, Mode::Exclusive, Slots::NONE);
        assert_eq!((proof.name(), proof.fencing_token().get(), proof.remaining()), (&name, 7, TTL));
        assert!(proof.check().is_ok() && proof.valid_until() > Instant::now());
        assert_eq!(proof.lease_id(), LeaseId::of(Owner::from_random([1; 16]), proof.fencing_token()));
        clock.advance(TTL);
        assert!(matches!(proof.check().unwrap_err().reason, LossReason::Expired(None)));
        hold.extend(clock.now() + TTL);
        assert_eq!(proof.remaining(), Duration::ZERO, "a no is final");
    }
}
