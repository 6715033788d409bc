//! The number of a station's pending releases is bounded, and a new claim waits for those that could affect it.

use lock_core::station::{Action, Request};
use lock_core::{Certainty, Moment, Waiting};

use crate::ledger::Ledger;

/// How many pending releases a station of a lock may have.
const OWED_MAX: usize = 4;
/// With how many a station of a semaphore asks for nothing new: each turn that ends adds one.
const PERMITS_OWED_MAX: usize = 19;

/// At a store without a queue, no new claim is sent while an unanswered claim may be in flight.
pub(crate) fn check(ledger: &Ledger, now: Moment, action: &Action) -> Result<(), String> {
    let owed: Vec<_> = ledger.owed(now).collect();
    let of_locks = owed.iter().filter(|(owner, _)| !ledger.is_adopted(*owner)).count();
    if !ledger.permits && of_locks > OWED_MAX {
        return Err(format!("{of_locks} releases are pending: {owed:?}"));
    }
    let Request::Acquire(claim) = &action.request else { return Ok(()) };
    if owed.len() >= PERMITS_OWED_MAX && ledger.is_new(claim.owner) && !ledger.is_adopted(claim.owner) {
        return Err(format!("{:?} asks with {} releases pending", claim.owner, owed.len()));
    }
    let unanswered = owed.iter().find(|(_, certainty)| *certainty == Certainty::Unknown);
    match unanswered.filter(|_| ledger.waiting == Waiting::Poll) {
        Some((owner, _)) => Err(format!("{:?} asks before {owner:?} was released", claim.owner)),
        None => Ok(()),
    }
}
