//! What a station owes its store is bounded, and does not stand in the way of what it asks for.

use lock_core::station::{Action, Request};
use lock_core::{Certainty, Moment, Waiting};

use crate::ledger::Ledger;

/// How many releases a station may owe.
const OWED_MAX: usize = 4;

/// Where there is no queue, nothing new is asked while a claim may be under way that was not answered.
pub(crate) fn check(ledger: &Ledger, now: Moment, action: &Action) -> Result<(), String> {
    let owed: Vec<_> = ledger.owed(now).collect();
    if owed.len() > OWED_MAX {
        return Err(format!("{} releases are owed: {owed:?}", owed.len()));
    }
    let Request::Acquire(claim) = &action.request else { return Ok(()) };
    let unanswered = owed.iter().find(|(_, certainty)| *certainty == Certainty::Unknown);
    match unanswered.filter(|_| ledger.waiting == Waiting::Poll) {
        Some((owner, _)) => Err(format!("{:?} asks before {owner:?} was released", claim.owner)),
        None => Ok(()),
    }
}
