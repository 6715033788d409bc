//! What a run leaves behind when its command is over.

use super::supervise::Verdict;
use super::wire::Status;
use crate::exit::Failure;
use crate::hold::Hold;

/// Marks the slot, or gives up what was to be left behind. Gives the verdict, with the reason of the loss as far as it is known.
pub(super) fn settle(
    hold: &mut Hold,
    verdict: Result<Verdict, Failure>,
    overrun: Option<String>,
) -> (Result<Verdict, Failure>, Result<(), Failure>) {
    let marked = match &verdict {
        Ok(Verdict::Ended(Status::Code(_))) => hold.mark(),
        Ok(Verdict::Ended(Status::Signal(_))) => {
            hold.unmark();
            Ok(())
        }
        Ok(Verdict::Lost(_) | Verdict::Unreported | Verdict::Refused(_) | Verdict::Unguarded) | Err(_) => {
            hold.abandon();
            Ok(())
        }
    };
    let verdict = match (verdict, overrun) {
        (Ok(Verdict::Lost(_) | Verdict::Unreported), Some(reason)) => Ok(Verdict::Lost(reason)),
        (verdict, _) => verdict,
    };
    (verdict, marked)
}
