//! What may be wrong with the histories of all workers together.

use std::fmt;
use std::time::Duration;

use crate::history::{Ending, Event, Leaving, What};
use crate::register::LostUpdate;
use crate::turn::{Turn, seat_name};

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Two turns at once of one lock or one slot, at least one of which should be alone.
    Overlap(Turn, Turn),
    /// A turn with a token that is not above that of a turn before it.
    Order(Turn, Turn),
    /// A turn that made it so many permits at once: more than there are.
    TooMany(Turn, usize),
    /// A turn with a slot that the semaphore does not have.
    NoSuchSlot(Turn),
    /// A waiter without a turn for this many nanoseconds while nothing was broken.
    Starved(String, u64),
    /// A worker that did not exit when told to: one of its seats waits forever.
    Stuck(String),
    /// A worker that exited by itself, or with an error.
    Broken(String, String),
    /// An answer that no waiter should get.
    Refused(String, String),
    /// A hold that was lost without a signal.
    Untold(String),
    /// A turn that began when nothing may be granted.
    Early(Turn),
    /// A write to what the lock protects, made without knowing of an earlier one.
    Lost(LostUpdate),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overlap(one, other) => write!(f, "two at once:\n  {one:?}\n  {other:?}"),
            Self::Order(before, after) => write!(f, "the token did not rise:\n  {before:?}\n  {after:?}"),
            Self::TooMany(turn, count) => write!(f, "{count} permits at once: {turn:?}"),
            Self::NoSuchSlot(turn) => write!(f, "there is no such slot: {turn:?}"),
            Self::Starved(who, nanos) => write!(f, "{who} had no turn for {:?}", Duration::from_nanos(*nanos)),
            Self::Stuck(who) => write!(f, "{who} does not end"),
            Self::Broken(who, how) => write!(f, "{who} ended with {how}"),
            Self::Refused(who, why) => write!(f, "{who} was told: {why}"),
            Self::Untold(who) => write!(f, "{who} lost its hold and was not told"),
            Self::Early(turn) => write!(f, "granted too early: {turn:?}"),
            Self::Lost(LostUpdate { entry, before }) => {
                write!(f, "an update was lost: {entry} where it was {before}")
            }
        }
    }
}

/// The answers in a worker's history that no waiter should get, and the losses without a signal.
pub fn refusals(worker: &str, history: &[Event]) -> Vec<Problem> {
    let who = |event: &Event| seat_name(worker, event.seat);
    let problem = |event: &Event| match &event.what {
        What::Left(Leaving::Refused(why)) => Some(Problem::Refused(who(event), why.clone())),
        What::Ended(Ending::Untold) => Some(Problem::Untold(who(event))),
        What::Waits | What::Has(_) | What::Still | What::Ended(_) | What::Left(_) => None,
        What::Asks(_) | What::Answered(_) => None,
    };
    history.iter().filter_map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    #[test]
    fn what_no_waiter_should_be_told_is_found() {
        let history = read("8 1 cold lost\n9 0 hot refused no such thing\n9 2 hot untold\n9 2 hot busy\n").unwrap();
        let expected = [Problem::Refused("w1/0".into(), "no such thing".into()), Problem::Untold("w1/2".into())];
        assert_eq!(refusals("w1", &history), expected);
    }
}
