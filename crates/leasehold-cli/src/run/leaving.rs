//! What a run leaves behind: slots that nobody has run, before it begins, and its own slot, when its command is over.

use std::thread::sleep;
use std::time::Duration;

use leasehold::kit::Slot;
use lock_core::{FLUSH_WITHIN, FencingToken, LockName};
use lock_host::{Clock, HostClock};

use super::supervise::Verdict;
use super::wire::Status;
use crate::exit::Failure;
use crate::hold::Hold;
use crate::job::{Failed, Job, Marked};
use crate::locks::Locks;
use crate::report::Voice;

/// How often to ask a store whether an unanswered release has taken effect.
const RELEASE_POLL: Duration = Duration::from_millis(20);

/// How many missed slots a warning names.
const NAMED_MAX: usize = 5;

/// What is left to be done about the slot.
#[derive(Debug)]
pub(super) enum Slotted {
    /// It is marked, or was given up.
    Settled,
    /// It has to be freed.
    Marked(Marked),
}

/// Marks the slot, or gives up what was to be left behind. Gives the verdict, with the reason of the loss as far as it is known.
pub(super) fn settle(
    hold: &mut Hold,
    job: &Job,
    verdict: Result<Verdict, Failure>,
    overrun: Option<String>,
) -> (Result<Verdict, Failure>, Result<Slotted, Failure>) {
    let again = job.failed == Failed::HasNotRun;
    let slotted = match &verdict {
        Ok(Verdict::Ended(Status::Code(1..)) | Verdict::Refused(_)) if again => {
            Ok(hold.fail().map_or(Slotted::Settled, Slotted::Marked))
        }
        Ok(Verdict::Ended(Status::Code(_))) => hold.mark().map(|()| Slotted::Settled),
        Ok(Verdict::Ended(Status::Signal(_))) => {
            hold.unmark();
            Ok(Slotted::Settled)
        }
        Ok(Verdict::Lost(_) | Verdict::Unreported | Verdict::Refused(_) | Verdict::Unguarded) | Err(_) => {
            hold.abandon();
            Ok(Slotted::Settled)
        }
    };
    let verdict = match (verdict, overrun) {
        (Ok(Verdict::Lost(_) | Verdict::Unreported), Some(reason)) => Ok(Verdict::Lost(reason)),
        (verdict, _) => verdict,
    };
    (verdict, slotted)
}

/// Frees the slot of a command that has failed. If that is not confirmed, the slot counts as run.
pub(super) fn free(slotted: Slotted, locks: &Locks, voice: &mut Voice) {
    let Slotted::Marked(marked) = slotted else { return };
    match locks.free(&marked) {
        Ok(()) => voice.note(&format!("the command failed, so its slot may be run again: {} is free", marked.name)),
        Err(failure) => voice.warn_afterwards(&format!(
            "the command failed, but its slot may count as run: {} was not freed: {failure}",
            marked.name
        )),
    }
}

/// Warns of slots that nobody has run.
pub(super) fn warn_of_missed(name: &str, missed: &[Slot], voice: &mut Voice) {
    let text = match missed {
        [] => return,
        [first, .., last] if missed.len() > NAMED_MAX => format!("{} slots, {first} to {last}", missed.len()),
        [one] => format!("the slot {one}"),
        some => format!("the slots {}", some.iter().map(Slot::to_string).collect::<Vec<_>>().join(", ")),
    };
    voice.warn(&format!("nobody has run {text} of {name}; run what is missing by hand, if it is still wanted"));
}

/// Whether a release that was not answered takes effect while it is repeated.
pub(super) fn is_over_soon(locks: &Locks, name: &LockName, token: FencingToken) -> bool {
    let until = HostClock.now() + FLUSH_WITHIN;
    while HostClock.now() < until {
        match locks.is_over(name, token) {
            Some(true) => return true,
            Some(false) | None => sleep(RELEASE_POLL),
        }
    }
    false
}
