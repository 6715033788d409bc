//! The end of a lease or a place: by its owner, or by an operator.

use std::time::Duration;

use lock_core::inspect::Revoked;
use lock_core::{Certainty, FencingToken, LockName, Mode, Moment, Note, Owner, ReleaseRequest, Released};

use crate::periods::{remembered_until, tombstone_for};
use crate::plan::Plan;
use crate::refusal::{Undone, cannot_keep};
use crate::rows::{Hold, Rows, Standing, Write};

/// Ends the owner's lease and passes the lock on, now or after the time for which the lock is to be kept; or drops the
/// owner's place. Touches nobody else's. Then serves the waiters that fit.
///
/// If a claim of the owner may still be in flight, such a claim is refused for a while: see [`tombstone_for`].
///
/// # Errors
/// `Protocol` if the lock is to be kept and the lease is not exclusive. Those of the rows. Then nothing was changed.
pub fn release<R: Rows>(rows: &mut R, request: &ReleaseRequest) -> Result<Released, Undone<R::Error>> {
    let mut plan = Plan::new(rows, &request.name)?;
    let held = plan.held_or_kept(request.owner)?;
    if request.keep.is_some() && held.as_ref().is_some_and(|hold| hold.mode != Mode::Exclusive) {
        return Err(Undone::Refused(cannot_keep(R::BACKEND)));
    }
    // An owner may have both: it kept the lock, and asked again.
    let has_left = plan.leave(request.owner)?;
    let released = match (held, request.keep) {
        (Some(hold), keep) => {
            match keep {
                Some(keep) => plan.keep(hold, request.owner, keep)?,
                None => plan.end_hold(&hold)?,
            }
            Released::Released
        }
        (None, _) if has_left => Released::Left,
        (None, _) => Released::NotHeld,
    };
    if request.certainty == Certainty::Unknown {
        plan.write(Write::Tombstone(request.owner, plan.now + tombstone_for(request.terms.ttl)));
    }
    plan.end()?;
    Ok(released)
}

/// Ends the lease that spans `token`, for any owner, serves the waiters that fit, and remembers who ended it.
///
/// # Errors
/// Those of the rows. Then nothing was changed.
pub fn revoke<R: Rows>(rows: &mut R, name: &LockName, token: FencingToken, by: &Note) -> Result<Revoked, R::Error> {
    let mut plan = Plan::new(rows, name)?;
    let Some(hold) = plan.rows.hold_with(token)? else { return Ok(Revoked::NotHeld) };
    plan.end_hold(&hold)?;
    plan.write(Write::Revocation(hold.tokens.high(), by.clone(), remembered_until(plan.now, hold.until)));
    plan.end()?;
    Ok(Revoked::Revoked)
}

impl<R: Rows> Plan<'_, R> {
    /// The lease of this owner, or the lock that is kept for it.
    fn held_or_kept(&mut self, owner: Owner) -> Result<Option<Hold>, R::Error> {
        let is_exclusive = |standing: Standing| standing.mode == Mode::Exclusive;
        match self.rows.hold(owner)? {
            None if self.standing.is_some_and(is_exclusive) => self.rows.hold(owner.kept()),
            held => Ok(held),
        }
    }

    /// Lets a lease end by itself after this time; until then it belongs to nobody. A lock that is kept already is never kept for
    /// longer.
    fn keep(&mut self, hold: Hold, owner: Owner, keep: Duration) -> Result<(), R::Error> {
        let (kept, end) = (owner.kept(), self.now + keep);
        let until: Moment = if hold.owner == kept { hold.until.min(end) } else { end };
        self.end_hold(&hold)?;
        self.add(Hold { owner: kept, until, ..hold });
        // It learns how long the lock is kept, and asks again then.
        self.tell_head_to_ask()
    }
}
