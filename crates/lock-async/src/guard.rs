//! Proof of holding a lock.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lock_core::station::{Input, TurnId};
use lock_core::{BackendError, Ended, Fenced, FencingToken, Hold, LockName, LossReason, Lost, Renewed, VerifyError};
use lock_host::{NAP_MAX, StationCell};
use tokio::sync::oneshot;

use crate::cell::Cell;
use crate::client::Shared;

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Hand [`fencing_token`](Self::fencing_token) to what the lock protects, call [`check`](Self::check) before each step
/// that matters, and stop when [`lost`](Self::lost) resolves. Dropping a guard releases the lock in the background,
/// in order, without waiting; [`release`](Self::release) waits and tells how it went.
#[must_use = "the lock is released when the guard is dropped"]
pub struct Guard {
    turn: Turn,
    hold: Arc<Hold>,
}

/// A turn of this process; leaving it is dropping it.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    cell: Arc<Cell>,
    id: TurnId,
}

impl Turn {
    pub(crate) fn new(shared: Arc<Shared>, cell: Arc<Cell>, id: TurnId) -> Self {
        Self { shared, cell, id }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.cell.leave(self.id, None);
    }
}

impl Guard {
    pub(crate) fn new(turn: Turn, hold: Arc<Hold>) -> Self {
        Self { turn, hold }
    }

    /// The name of the lock.
    pub fn name(&self) -> &LockName {
        &self.hold.lease().name
    }

    /// The number that the protected resource checks: higher than that of every earlier holder.
    pub fn fencing_token(&self) -> FencingToken {
        self.hold.token()
    }

    /// When the hold ends, unless it is renewed before; renewal moves it on.
    ///
    /// An [`Instant`] stands still while the machine is suspended, so ask anew after a pause; [`check`](Self::check) and
    /// [`remaining`](Self::remaining) count suspend.
    pub fn valid_until(&self) -> Instant {
        Instant::now() + self.remaining()
    }

    /// How much longer the hold is sure to last without a renewal; zero once it is lost.
    pub fn remaining(&self) -> Duration {
        self.hold.remaining(self.turn.shared.ports.clock.now())
    }

    /// Whether the lock is still held: local and cheap, compares the deadline with the clock.
    ///
    /// A `yes` may be over when you act on it; the fencing token covers that gap.
    ///
    /// # Errors
    /// `Lost`, with the reason.
    pub fn check(&self) -> Result<(), Lost> {
        self.hold.check(self.turn.shared.ports.clock.now())
    }

    /// Asks the store whether this is still the stored grant.
    ///
    /// # Errors
    /// `Lost` where it is not, `Backend` where the store could not say.
    ///
    /// # Cancel safety
    /// Changes nothing at the store; can be dropped at any point.
    pub async fn verify(&self) -> Result<(), VerifyError> {
        self.check()?;
        let Turn { shared, cell, .. } = &self.turn;
        let (lease, asked_at) = (self.hold.lease(), shared.ports.clock.now());
        match shared.backend.fence(lease, shared.policy.within(lease.terms.ttl)).await? {
            Fenced::Acknowledged => {}
            Fenced::NotHeld | Fenced::Higher(_) => {
                cell.handle(Input::Renewal { owner: lease.owner, asked_at, answer: Ok(Renewed::NotHeld) });
            }
        }
        Ok(self.check()?)
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
        self.check()?;
        let Turn { shared, cell, .. } = &self.turn;
        let (lease, asked_at) = (self.hold.lease(), shared.ports.clock.now());
        let renewed = shared.backend.renew(std::slice::from_ref(lease), shared.policy.within(lease.terms.ttl)).await?;
        for answer in renewed {
            cell.handle(Input::Renewal { owner: lease.owner, asked_at, answer: Ok(answer) });
        }
        Ok(self.check()?)
    }

    /// Waits until the hold is lost, and tells why: at the latest at its local deadline.
    ///
    /// # Cancel safety
    /// Changes nothing; can be dropped and called again.
    pub async fn lost(&self) -> Lost {
        loop {
            let told = self.turn.cell.a_loss();
            if let Some(lost) = self.hold.lost() {
                return lost;
            }
            let remaining = self.remaining();
            if remaining.is_zero() {
                self.turn.cell.handle(Input::Tick);
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
        self.turn.cell.leave(self.turn.id, Some(sender));
        match ended.await {
            Ok(result) => result,
            // The seat was gone: the hold had been lost.
            Err(_) => Ok(Ended::AlreadyLost(self.hold.lost().map_or(LossReason::Closed, |lost| lost.reason))),
        }
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", self.name()).field("token", &self.fencing_token()).finish_non_exhaustive()
    }
}
