//! The number of a station's pending releases is bounded, and a new claim waits for those that could affect it.

use lock_core::station::{Action, Request};
use lock_core::{Certainty, Moment, NameKind, Waiting};

use crate::ledger::Ledger;

/// How many pending releases a station of a lock may have.
const OWED_MAX: usize = 4;
/// With so many at a semaphore, nobody asks anew. Each turn that ends adds one.
const OWED_AT_SEMAPHORE: usize = 19;

/// At a store without a queue, no new claim is sent while an unanswered claim may be under way.
pub(crate) fn check(ledger: &Ledger, now: Moment, action: &Action) -> Result<(), String> {
    let owed: Vec<_> = ledger.owed(now).collect();
    if ledger.kind == NameKind::Lock && owed.len() > OWED_MAX {
        return Err(format!("{} releases are pending: {owed:?}", owed.len()));
    }
    let Request::Acquire(claim) = &action.request else { return Ok(()) };
    if ledger.kind == NameKind::Semaphore && ledger.asks_anew && owed.len() >= OWED_AT_SEMAPHORE {
        return Err(format!("{claim:?} goes out with {} releases pending", owed.len()));
    }
    let unanswered = owed.iter().find(|(_, certainty)| *certainty == Certainty::Unknown);
    match unanswered.filter(|_| ledger.waiting == Waiting::Poll) {
        Some((owner, _)) => Err(format!("{:?} asks before {owner:?} was released", claim.owner)),
        None => Ok(()),
    }
}
