//! Slots around a run: those that nobody has run, before it begins, and its own, when its command has ended.

use std::fmt::Display;
use std::thread::sleep;
use std::time::Duration;

use leasehold::clock::{Clock, HostClock};
use leasehold::kit::{Slot, SlotAfter};
use leasehold::{FencingToken, LockName};

use super::supervise::CommandResult;
use crate::command_end::CommandEnd;
use crate::exit::{Exit, Failure};
use crate::hold::End;
use crate::job::{Again, Job};
use crate::locks::Locks;
use crate::report::Voice;

/// How long a release may be repeated before it is reported. Chosen: the longest time that one request takes by default.
const RELEASE_WITHIN: Duration = Duration::from_secs(1);
/// How often to ask a store whether an unanswered release has taken effect.
const RELEASE_POLL: Duration = Duration::from_millis(20);

/// How many missed slots a warning names.
const NAMED_MAX: usize = 5;

/// How a command ended, for the job that it is a run of.
pub(super) fn end(job: &Job, result: &Result<CommandResult, Failure>) -> End {
    match result {
        Ok(CommandResult::Ended(CommandEnd::Code(1..)) | CommandResult::Refused(_)) if job.failed == Again::Yes => {
            End::Failed
        }
        Ok(CommandResult::Ended(CommandEnd::Code(_))) => End::Done,
        Ok(CommandResult::Ended(CommandEnd::Signal(_))) => End::Crashed,
        Ok(
            CommandResult::Lost(_) | CommandResult::Unreported | CommandResult::Refused(_) | CommandResult::Unguarded,
        )
        | Err(_) => End::Abandoned,
    }
}

/// The result, with the reason of a loss as far as it is known.
pub(super) fn explain(result: CommandResult, overrun: Option<String>) -> CommandResult {
    match (result, overrun) {
        (CommandResult::Lost(_) | CommandResult::Unreported, Some(reason)) => CommandResult::Lost(reason),
        (result, _) => result,
    }
}

/// Says what became of the slot of a command that ended like this.
///
/// # Errors
/// The store did not confirm that the slot has run, so another machine may run it.
pub(super) fn tell_slot(end: End, slot: SlotAfter, voice: &mut Voice) -> Result<(), Failure> {
    match (end, slot) {
        (End::Failed, SlotAfter::Free) => voice.note("the command failed, so its slot may be run again"),
        (End::Failed, SlotAfter::Unknown) => {
            voice.warn_afterwards(
                "the command failed, but its slot may count as run: the store did not confirm that it is free",
            );
        }
        (End::Done, SlotAfter::Unknown) => {
            let message = "the slot was not marked as run: the store did not confirm it; another machine may run it";
            return Err(Failure::new(Exit::Unavailable, message));
        }
        (_, _) => {}
    }
    Ok(())
}

/// Warns of slots that nobody has run.
pub(super) fn warn_of_missed(name: &str, missed: &[Slot], voice: &mut Voice) {
    let text = match missed {
        [] => return,
        [first, .., last] if missed.len() > NAMED_MAX => format!("{} slots, {first} to {last}", missed.len()),
        [one] => format!("the slot {one}"),
        some => format!("the slots {}", some.iter().map(Slot::to_string).collect::<Vec<_>>().join(", ")),
    };
    voice.warn(&format!("{name} has missed {text}; run the command by hand for each that is still needed"));
}

/// The possible remains of a lease whose release was not confirmed for this reason.
pub(super) fn unreleased(name: &LockName, ttl: &impl Display, problem: &str) -> String {
    // Such a lock outlives its lease. Nothing but the text tells this error from others.
    if problem.contains("fenced by this lease") {
        return format!("{name} is kept until its lease ends, and the transaction that is fenced by it");
    }
    format!("{name} may not have been released, and then expires within {ttl}: {problem}")
}

/// Whether a release that was not answered takes effect while it is repeated.
pub(super) fn is_over_soon(locks: &Locks, name: &LockName, token: FencingToken) -> bool {
    let until = HostClock.now() + RELEASE_WITHIN;
    while HostClock.now() < until {
        match locks.is_over(name, token) {
            Some(true) => return true,
            Some(false) | None => sleep(RELEASE_POLL),
        }
    }
    false
}
