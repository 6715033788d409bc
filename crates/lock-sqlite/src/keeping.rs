//! A lock that is kept for a while after its release: nobody holds it, and nobody can acquire it.

use std::time::Duration;

use lock_core::{ErrorKind, Mode, Operation, Owner, ReleaseRequest};

use crate::error::{Fault, refusal};
use crate::transaction::Transaction;
use crate::wire::{Held, Hold};

impl Transaction<'_> {
    /// Keeps the lock if the request asks for that, and its owner holds the lock or has kept it already. Returns whether it did.
    ///
    /// A program of an earlier version sees a lock with a holder that never renews it.
    pub(crate) fn keep(&self, key: &str, held: Option<&Held>, request: &ReleaseRequest) -> Result<bool, Fault> {
        let (Some(keep), Some(held)) = (request.keep, held.filter(|held| held.is_living())) else { return Ok(false) };
        if held.mode != Mode::Exclusive {
            return match self.hold_of(key, request.owner)? {
                Some(_) => Err(cannot_keep()),
                None => Ok(false),
            };
        }
        let Some(remaining) = kept_for(&held.last, request.owner, keep) else { return Ok(false) };
        let kept = request.owner.kept();
        self.set_lock(key, &kept.to_wire(), &Hold { owner: kept, remaining, ..held.last.clone() })?;
        Ok(true)
    }
}

/// For how long a lock is kept for this owner: a lock that is kept already is never kept for longer. `None` if the owner has
/// nothing of it.
fn kept_for(hold: &Hold, owner: Owner, keep: Duration) -> Option<Duration> {
    if hold.owner == owner { Some(keep) } else { (hold.owner == owner.kept()).then(|| keep.min(hold.remaining)) }
}

fn cannot_keep() -> Fault {
    let error = refusal(Operation::Release, ErrorKind::Protocol, "only an exclusive lease can be kept");
    error.with_remedy("release it at once").into()
}
