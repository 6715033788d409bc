//! Requests about a lease that is held: renewals, and fences.

use lock_core::{Fenced, Lease, Mode, Renewed};

use crate::rows::{Changes, Hold, Rows, Standing, Write};

/// Re-arms the ttl of a lease. Never creates anything. Only the holders of a lock that several can hold learn whether others wait.
///
/// # Errors
/// Those of the rows. Then nothing was changed.
pub fn renew<R: Rows>(rows: &mut R, lease: &Lease) -> Result<Renewed, R::Error> {
    let Some(hold) = own(rows, lease)? else {
        let by = rows.revoked_by(lease.tokens.high())?;
        return Ok(by.map_or(Renewed::NotHeld, |by| Renewed::Revoked { by }));
    };
    let valid_for = lease.terms.ttl.get();
    let wanted = hold.mode != Mode::Exclusive && rows.next_place(0)?.is_some();
    let writes = vec![Write::Extend(lease.owner, rows.now() + valid_for)];
    let standing = rows.standing()?;
    rows.write(Changes { writes, standing, notices: Vec::new() })?;
    Ok(Renewed::Renewed { valid_for, wanted })
}

/// Returns whether the lease is still the stored grant.
///
/// # Errors
/// Those of the rows.
pub fn fence<R: Rows>(rows: &mut R, lease: &Lease) -> Result<Fenced, R::Error> {
    if own(rows, lease)?.is_some() {
        return Ok(Fenced::Acknowledged);
    }
    // The token of a reader raises no fence.
    let is_exclusive = |standing: &Standing| standing.mode == Mode::Exclusive;
    let holder =
        if rows.standing()?.is_some_and(|standing| is_exclusive(&standing)) { rows.last_hold(None)? } else { None };
    let later = holder.map(|hold| hold.tokens.low()).filter(|low| *low > lease.tokens.high());
    Ok(later.map_or(Fenced::NotHeld, Fenced::Higher))
}

fn own<R: Rows>(rows: &mut R, lease: &Lease) -> Result<Option<Hold>, R::Error> {
    Ok(rows.hold(lease.owner)?.filter(|hold| hold.tokens == lease.tokens))
}
