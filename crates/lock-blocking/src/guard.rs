//! Proof of holding a lock.

use std::fmt;
use std::ops::Deref;
use std::time::Duration;

use lock_core::station::Input;
use lock_core::{BackendError, Ended, LossReason, Lost, VerifyError};
use lock_host::{Inquiry, NAP_MAX, Proof};

use crate::turn::Turn;

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Hand [`fencing_token`](Proof::fencing_token) to what the lock protects, call [`check`](Proof::check) before each step
/// that matters, and stop when [`lost`](Self::lost) returns. Dropping a guard releases the lock, and blocks for at most
/// an operation timeout; [`release`](Self::release) does the same and tells how it went.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    turn: Turn,
    proof: Proof,
}

impl Guard {
    pub(crate) fn new(turn: Turn, proof: Proof) -> Self {
        Self { turn, proof }
    }

    /// Asks the store whether this is still the stored grant.
    ///
    /// # Errors
    /// `Lost` where it is not, `Backend` where the store could not say.
    ///
    /// # Blocking
    /// For an operation timeout.
    pub fn verify(&self) -> Result<(), VerifyError> {
        let inquiry = Inquiry::new(&self.turn.site, &self.proof)?;
        let answer = inquiry.driver().backend.fence(inquiry.lease(), inquiry.within())?;
        Ok(inquiry.fenced(&answer)?)
    }

    /// Renews the lease now, without waiting for the regular renewal: a hold that another client handed over may have
    /// little time left.
    ///
    /// # Errors
    /// `Lost` where it is not held any more, `Backend` where the store did not renew it; the regular renewals go on.
    ///
    /// # Blocking
    /// For an operation timeout.
    pub fn renew(&self) -> Result<(), VerifyError> {
        let inquiry = Inquiry::new(&self.turn.site, &self.proof)?;
        let leases = std::slice::from_ref(inquiry.lease());
        let answers = inquiry.driver().backend.renew(leases, inquiry.within())?;
        Ok(inquiry.renewed(answers)?)
    }

    /// Waits until the hold is lost, and tells why: at the latest at its local deadline.
    ///
    /// # Blocking
    /// For as long as the lock is held: call it from another thread than the one that works.
    pub fn lost(&self) -> Lost {
        loop {
            if let Some(lost) = self.lost_within(NAP_MAX) {
                return lost;
            }
        }
    }

    /// Waits until the hold is lost, but for at most `patience`.
    ///
    /// # Blocking
    /// For as long as `patience`.
    pub fn lost_within(&self, patience: Duration) -> Option<Lost> {
        let clock = &self.turn.site.ports().clock;
        let end = clock.now() + patience;
        loop {
            let left = end.since(clock.now());
            if let Some(lost) = Proof::hold(self).lost() {
                return Some(lost);
            }
            if left.is_zero() {
                return None;
            }
            let remaining = self.remaining();
            if remaining.is_zero() {
                self.turn.site.handle(Input::Tick);
            } else {
                // Told by the alarms, or looking ourselves should they be late.
                self.turn.nap_until_lost(Proof::hold(self), left.min(remaining).min(NAP_MAX));
            }
        }
    }

    /// Releases the lock and waits for the store's answer.
    ///
    /// # Errors
    /// Those of the store. The release is then repeated in the background until the lease is over, as long as the client
    /// lives.
    ///
    /// # Blocking
    /// For an operation timeout.
    pub fn release(self) -> Result<Ended, BackendError> {
        let ended = self.turn.leave();
        ended.unwrap_or_else(|| Ok(Ended::AlreadyLost(LossReason::Closed)))
    }
}

impl Deref for Guard {
    type Target = Proof;

    fn deref(&self) -> &Proof {
        &self.proof
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.proof).finish()
    }
}
