//! Proof of holding a lock.

use std::fmt;
use std::ops::Deref;

use lock_core::station::Input;
use lock_core::{BackendError, Ended, LossReason, Lost, VerifyError};
use lock_host::{Inquiry, NAP_MAX, Proof};
use tokio::sync::oneshot;

use crate::turn::Turn;

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Hand [`fencing_token`](Proof::fencing_token) to what the lock protects, call [`check`](Proof::check) before each step
/// that matters, and stop when [`lost`](Self::lost) resolves. Dropping a guard releases the lock in the background,
/// in order, without waiting; [`release`](Self::release) waits and tells how it went.
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
    /// # Cancel safety
    /// Changes nothing at the store; can be dropped at any point.
    pub async fn verify(&self) -> Result<(), VerifyError> {
        let inquiry = Inquiry::new(&self.turn.site, &self.proof)?;
        let answer = inquiry.driver().backend.fence(inquiry.lease(), inquiry.within()).await?;
        Ok(inquiry.fenced(&answer)?)
    }

    /// Renews the lease now, without waiting for the regular renewal: a hold that another client handed over may have
    /// little time left.
    ///
    /// # Errors
    /// `Lost` where it is not held any more, `Backend` where the store did not renew it; the regular renewals go on.
    ///
    /// # Cancel safety
    /// A dropped call may or may not have renewed the lease; it can be called again.
    pub async fn renew(&self) -> Result<(), VerifyError> {
        let inquiry = Inquiry::new(&self.turn.site, &self.proof)?;
        let leases = std::slice::from_ref(inquiry.lease());
        let answers = inquiry.driver().backend.renew(leases, inquiry.within()).await?;
        Ok(inquiry.renewed(answers)?)
    }

    /// Waits until the hold is lost, and tells why: at the latest at its local deadline.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Lost {
        loop {
            let told = self.turn.site.lock().waiters.next_loss();
            if let Some(lost) = Proof::hold(self).lost() {
                return lost;
            }
            let remaining = self.remaining();
            if remaining.is_zero() {
                self.turn.site.handle(Input::Tick);
            } else {
                // Told by the alarms, or by our own timer should they be late.
                _ = tokio::time::timeout(remaining.min(NAP_MAX), told).await;
            }
        }
    }

    /// Releases the lock and waits for the store's answer.
    ///
    /// # Errors
    /// Those of the store. The release is then repeated in the background until the lease is over, as long as the client
    /// lives.
    ///
    /// # Cancel safety
    /// The release is on its way when this is first polled; dropping it gives up the waiting only.
    pub async fn release(self) -> Result<Ended, BackendError> {
        let (sender, ended) = oneshot::channel();
        self.turn.leave(Some(sender));
        // Nobody answers where the turn was over already: the hold had been lost.
        let lost = |_| Ok(Ended::AlreadyLost(Proof::hold(&self).lost().map_or(LossReason::Closed, |lost| lost.reason)));
        ended.await.unwrap_or_else(lost)
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
