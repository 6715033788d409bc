//! What must be true of the histories of all workers together.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use crate::history::{Event, Leaving, What};
use crate::register::LostUpdate;

/// One hold of one guard, for as long as the guard's own check passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The lock.
    pub lock: String,
    /// Who had it: worker and seat.
    pub who: String,
    /// Its fencing token.
    pub token: u64,
    /// When it was admitted.
    pub from: u64,
    /// The last moment at which its check still passed.
    pub until: u64,
}

/// A moment at which the server lost its data. Earlier leases stay valid until they expire, and others may be granted
/// meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Loss {
    /// When the loss was complete.
    pub at: u64,
    /// The server's clock in microseconds then: tokens of grants before are lower, and those of grants after are not.
    pub watermark: u64,
}

/// What histories are checked against.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// The losses of data.
    pub losses: &'a [Loss],
    /// The ttl of all leases.
    pub ttl: Duration,
}

/// The end of a run, after the last fault.
#[derive(Clone, Copy, Debug)]
pub struct Calm {
    /// When everything worked again.
    pub from: u64,
    /// When the workers were told to end.
    pub until: u64,
    /// How long a waiter may be without a turn.
    pub patience: Duration,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Two turns of one lock at once.
    Overlap(Turn, Turn),
    /// A turn with a token that is not above that of a turn before it.
    Order(Turn, Turn),
    /// A waiter without a turn for this many nanoseconds while nothing was broken.
    Starved(String, u64),
    /// A worker that did not exit when told to: one of its seats waits forever.
    Stuck(String),
    /// A worker that exited by itself, or with an error.
    Broken(String, String),
    /// An answer that no waiter should get.
    Refused(String, String),
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
            Self::Starved(who, nanos) => write!(f, "{who} had no turn for {:?}", Duration::from_nanos(*nanos)),
            Self::Stuck(who) => write!(f, "{who} does not end"),
            Self::Broken(who, how) => write!(f, "{who} ended with {how}"),
            Self::Refused(who, why) => write!(f, "{who} was told: {why}"),
            Self::Early(turn) => write!(f, "granted too early: {turn:?}"),
            Self::Lost(LostUpdate { entry, before }) => {
                write!(f, "an update was lost: {entry} where it was {before}")
            }
        }
    }
}

/// The turns in a worker's history.
pub fn turns(worker: &str, history: &[Event]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut current: BTreeMap<usize, usize> = BTreeMap::new();
    for event in history {
        match event.what {
            What::Has(token) => {
                current.insert(event.seat, turns.len());
                let (lock, who) = (event.lock.clone(), seat_name(worker, event.seat));
                turns.push(Turn { lock, who, token, from: event.at, until: event.at });
            }
            What::Still => turns[current[&event.seat]].until = event.at,
            What::Waits | What::Ended(_) | What::Left(_) => {}
        }
    }
    turns
}

/// How the turns and the problems name a waiter.
pub fn seat_name(worker: &str, seat: usize) -> String {
    format!("{worker}/{seat}")
}

/// The answers in a worker's history that no waiter should get.
pub fn refusals(worker: &str, history: &[Event]) -> Vec<Problem> {
    let refused = history.iter().filter_map(|event| match &event.what {
        What::Left(Leaving::Refused(why)) => Some(Problem::Refused(seat_name(worker, event.seat), why.clone())),
        What::Waits | What::Has(_) | What::Still | What::Ended(_) | What::Left(_) => None,
    });
    refused.collect()
}

/// Whether turns overlapped, and whether tokens rose in the order in which turns began.
pub fn exclusion(mut turns: Vec<Turn>, rules: Rules<'_>) -> Vec<Problem> {
    turns.sort_by_key(|turn| turn.from);
    let locks: BTreeSet<&str> = turns.iter().map(|turn| turn.lock.as_str()).collect();
    let of_lock = |lock| turns.iter().filter(move |turn| turn.lock == lock).collect::<Vec<_>>();
    locks.into_iter().flat_map(|lock| one_lock(&of_lock(lock), rules)).collect()
}

fn one_lock(turns: &[&Turn], rules: Rules<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    let (mut open, mut highest): (Vec<&Turn>, u64) = (Vec::new(), 0);
    for (place, &turn) in turns.iter().enumerate() {
        open.retain(|before| before.until >= turn.from);
        let together = open.iter().filter(|before| !rules.excuses(before, turn, before.until.min(turn.until)));
        problems.extend(together.map(|&before| Problem::Overlap(before.clone(), turn.clone())));
        if turn.token <= highest {
            let above = turns[..place].iter().filter(|before| before.token >= turn.token);
            let unexcused = above.filter(|before| !rules.excuses(turn, before, turn.from));
            problems.extend(unexcused.map(|&before| Problem::Order(before.clone(), turn.clone())));
        }
        highest = highest.max(turn.token);
        open.push(turn);
    }
    problems
}

impl Rules<'_> {
    /// Whether one of the two was granted before a loss and the other after it, and the older lease may have lasted
    /// until `last`.
    fn excuses(&self, one: &Turn, other: &Turn, last: u64) -> bool {
        let (old, new) = (one.token.min(other.token), one.token.max(other.token));
        let lease = u64::try_from(self.ttl.as_nanos()).unwrap();
        self.losses.iter().any(|loss| old < loss.watermark && loss.watermark <= new && last <= loss.at + lease)
    }
}

/// Which of the seats were without a turn for too long while nothing was broken.
pub fn starved(turns: &[Turn], seats: &[String], calm: Calm) -> Vec<Problem> {
    let patience = u64::try_from(calm.patience.as_nanos()).unwrap();
    let waited = seats.iter().map(|seat| (seat, longest_without(turns, seat, calm)));
    waited.filter(|(_, nanos)| *nanos > patience).map(|(seat, nanos)| Problem::Starved(seat.clone(), nanos)).collect()
}

fn longest_without(turns: &[Turn], seat: &str, calm: Calm) -> u64 {
    let mut own: Vec<(u64, u64)> =
        turns.iter().filter(|turn| turn.who == seat).map(|turn| (turn.from, turn.until)).collect();
    own.sort_unstable();
    let (mut since, mut longest) = (calm.from, 0);
    for (from, until) in own.into_iter().chain([(calm.until, calm.until)]) {
        longest = longest.max(from.min(calm.until).saturating_sub(since));
        since = since.max(until);
    }
    longest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    const TTL: Duration = Duration::from_nanos(100);
    const LOSS: Loss = Loss { at: 1_000, watermark: 50 };

    fn turn(token: u64, from: u64, until: u64) -> Turn {
        Turn { lock: "hot".into(), who: format!("w{token}"), token, from, until }
    }

    fn judged(turns: &[Turn]) -> Vec<Problem> {
        exclusion(turns.to_vec(), Rules { losses: &[LOSS], ttl: TTL })
    }

    #[test]
    fn turns_are_read_from_a_history() {
        let text = "1 0 hot waits\n2 0 hot has 7\n2 1 cold has 5\n3 0 hot still\n4 0 hot released\n\
                    5 0 hot waits\n6 0 hot cancelled\n7 0 hot has 9\n8 1 cold lost\n9 0 hot refused no such thing\n";
        let history = read(text).unwrap();
        let spans: Vec<_> =
            turns("w1", &history).into_iter().map(|turn| (turn.who, turn.token, turn.from, turn.until)).collect();
        let expected = [("w1/0", 7, 2, 3), ("w1/1", 5, 2, 2), ("w1/0", 9, 7, 7)];
        assert_eq!(spans, expected.map(|(who, token, from, until)| (who.to_owned(), token, from, until)));
        assert_eq!(refusals("w1", &history), [Problem::Refused("w1/0".into(), "no such thing".into())]);
    }

    #[test]
    fn turns_one_after_the_other_are_no_problem() {
        assert_eq!(judged(&[turn(2, 30, 40), turn(1, 10, 29), turn(3, 60, 60)]), []);
        let elsewhere = Turn { lock: "cold".into(), ..turn(1, 15, 25) };
        assert_eq!(judged(&[turn(2, 10, 20), elsewhere]), []);
    }

    #[test]
    fn two_turns_at_once_are_found() {
        let problems = judged(&[turn(1, 10, 50), turn(2, 20, 25), turn(3, 40, 45)]);
        let pairs = [(1, 10, 50, 2, 20, 25), (1, 10, 50, 3, 40, 45)];
        let expected = pairs.map(|(a, b, c, d, e, f)| Problem::Overlap(turn(a, b, c), turn(d, e, f)));
        assert_eq!(problems, expected);
    }

    #[test]
    fn tokens_that_do_not_rise_are_found() {
        assert_eq!(judged(&[turn(5, 1, 2), turn(4, 3, 4)]), [Problem::Order(turn(5, 1, 2), turn(4, 3, 4))]);
        assert_eq!(judged(&[turn(5, 1, 2), turn(5, 3, 4)]), [Problem::Order(turn(5, 1, 2), turn(5, 3, 4))]);
        // Even across a loss: here the later turn has the lower token.
        assert_eq!(judged(&[turn(60, 900, 950), turn(40, 2_000, 2_010)]).len(), 1);
    }

    #[test]
    fn after_a_loss_an_old_and_a_new_turn_may_overlap_until_the_old_lease_ends() {
        assert_eq!(judged(&[turn(40, 900, 1_100), turn(60, 1_010, 1_200)]), []);
        assert_eq!(judged(&[turn(40, 900, 1_101), turn(60, 1_010, 1_200)]).len(), 1, "too long");
        assert_eq!(judged(&[turn(51, 900, 1_100), turn(60, 1_010, 1_020)]).len(), 1, "both are new");
        assert_eq!(judged(&[turn(40, 900, 1_020), turn(49, 1_010, 1_020)]).len(), 1, "both are old");
        // An earlier grant whose answer came late.
        assert_eq!(judged(&[turn(60, 1_010, 1_015), turn(40, 1_020, 1_030)]), []);
    }

    #[test]
    fn starved_seats_are_found() {
        let calm = Calm { from: 100, until: 200, patience: Duration::from_nanos(40) };
        let without = |turns: &[Turn]| starved(turns, &["w1".into()], calm);
        let starved = |nanos| [Problem::Starved("w1".into(), nanos)];
        assert_eq!(without(&[]), starved(100));
        assert_eq!(without(&[turn(1, 50, 90)]), starved(100));
        assert_eq!(without(&[turn(1, 50, 130), turn(1, 165, 170)]), []);
        assert_eq!(without(&[turn(1, 120, 130), turn(1, 180, 190)]), starved(50));
        assert_eq!(without(&[turn(1, 110, 130), turn(1, 140, 150)]), starved(50));
        assert_eq!(without(&[turn(1, 130, 160), turn(1, 250, 260)]), []);
    }
}
