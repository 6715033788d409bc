//! Proof of holding a lock.

use std::fmt;
use std::time::{Duration, Instant};

use lock_core::station::{Input, TurnId};
use lock_core::{BackendError, Ended, Fenced, FencingToken, Hold, LockName, LossReason, Lost, Renewed, VerifyError};
use lock_host::{NAP_MAX, StationCell};

use crate::cell::Cell;
use crate::client::Shared;
use crate::sync::Arc;

/// Proof that the lock is held, until it is released, dropped or lost.
///
/// Hand [`fencing_token`](Self::fencing_token) to what the lock protects, call [`check`](Self::check) before each step
/// that matters, and stop when [`lost`](Self::lost) returns. Dropping a guard releases the lock, and blocks for at most
/// an operation timeout; [`release`](Self::release) does the same and tells how it went.
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
        self.cell.leave(self.id);
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
    /// # Blocking
    /// For an operation timeout.
    pub fn verify(&self) -> Result<(), VerifyError> {
        self.check()?;
        let Turn { shared, cell, .. } = &self.turn;
        let (lease, asked_at) = (self.hold.lease(), shared.ports.clock.now());
        match shared.backend.fence(lease, shared.policy.within(lease.terms.ttl))? {
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
    /// # Blocking
    /// For an operation timeout.
    pub fn renew(&self) -> Result<(), VerifyError> {
        self.check()?;
        let Turn { shared, cell, .. } = &self.turn;
        let (lease, asked_at) = (self.hold.lease(), shared.ports.clock.now());
        let renewed = shared.backend.renew(std::slice::from_ref(lease), shared.policy.within(lease.terms.ttl))?;
        for answer in renewed {
            cell.handle(Input::Renewal { owner: lease.owner, asked_at, answer: Ok(answer) });
        }
        Ok(self.check()?)
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
        let clock = &self.turn.shared.ports.clock;
        let end = clock.now() + patience;
        loop {
            let left = end.since(clock.now());
            if let Some(lost) = self.hold.lost() {
                return Some(lost);
            }
            if left.is_zero() {
                return None;
            }
            let remaining = self.remaining();
            if remaining.is_zero() {
                self.turn.cell.handle(Input::Tick);
            } else {
                // Told by the alarms, or looking ourselves should they be late.
                self.turn.cell.nap_until_lost(self.turn.id, &self.hold, left.min(remaining).min(NAP_MAX));
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
        let ended = self.turn.cell.leave(self.turn.id);
        ended.unwrap_or_else(|| Ok(Ended::AlreadyLost(LossReason::Closed)))
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("name", self.name()).field("token", &self.fencing_token()).finish_non_exhaustive()
    }
}
