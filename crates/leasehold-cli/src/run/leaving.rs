//! What a run leaves behind when its command is over.

use super::supervise::Verdict;
use super::wire::Status;
use crate::exit::Failure;
use crate::hold::Hold;

/// Marks the slot, or gives up what was to be left behind.
pub(super) fn settle(hold: &mut Hold, verdict: &Result<Verdict, Failure>) -> Result<(), Failure> {
    match verdict {
        Ok(Verdict::Ended(Status::Code(_))) => return hold.mark(),
        Ok(Verdict::Ended(Status::Signal(_))) => hold.unmark(),
        Ok(Verdict::Lost(_) | Verdict::Unreported | Verdict::Refused(_) | Verdict::Unguarded) | Err(_) => {
            hold.abandon();
        }
    }
    Ok(())
}
