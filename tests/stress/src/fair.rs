//! How long a waiter may be without a turn: in time while nothing is broken, and in turns of others.

use std::collections::BTreeMap;
use std::ops::Range;
use std::time::Duration;

use crate::history::{Event, What};
use crate::problem::Problem;
use crate::turn::Turn;

/// The end of a run, after the last fault.
#[derive(Clone, Copy, Debug)]
pub struct Calm {
    /// When everything worked again.
    pub from: u64,
    /// When the workers were told to end.
    pub until: u64,
    /// How long a waiter may be without a turn ...
    pub patience: Duration,
    /// ... if all seats together had this many times as many turns as there are seats: on a slow machine, turns take longer. Otherwise, it
    /// may be four times as long.
    pub rounds: usize,
}

/// How many times as long a waiter may be without a turn if the others have few turns, too.
const MUCH_LONGER: u64 = 4;

/// Which of the seats were without a turn for too long while nothing was broken.
pub fn starved(turns: &[Turn], seats: &[String], calm: Calm) -> Vec<Problem> {
    let patience = u64::try_from(calm.patience.as_nanos()).unwrap();
    let is_starved = |gap: &Range<u64>| {
        let (others, length) = (turns.iter().filter(|turn| gap.contains(&turn.from)).count(), gap.end - gap.start);
        length > MUCH_LONGER * patience || length > patience && others >= calm.rounds * seats.len()
    };
    let waited = seats.iter().map(|seat| (seat, longest_without(turns, seat, calm)));
    let starved = waited.filter(|(_, gap)| is_starved(gap));
    starved.map(|(seat, gap)| Problem::Starved(seat.clone(), gap.end - gap.start)).collect()
}

fn longest_without(turns: &[Turn], seat: &str, calm: Calm) -> Range<u64> {
    let mut own: Vec<(u64, u64)> =
        turns.iter().filter(|turn| turn.who == seat).map(|turn| (turn.from, turn.until)).collect();
    own.sort_unstable();
    let (mut since, mut longest) = (calm.from, calm.from..calm.from);
    for (from, until) in own.into_iter().chain([(calm.until, calm.until)]) {
        let gap = since..from.min(calm.until).max(since);
        if gap.end - gap.start > longest.end - longest.start {
            longest = gap;
        }
        since = since.max(until);
    }
    longest
}

/// How many turns of these the seat with the fewest had, and the one with the most.
pub fn fewest_and_most(turns: &[Turn], seats: &[String]) -> (usize, usize) {
    let counts = || seats.iter().map(|seat| turns.iter().filter(|turn| turn.who == *seat).count());
    (counts().min().unwrap_or(0), counts().max().unwrap_or(0))
}

/// For each time that the only seat of a worker waited: how many turns the same other seat began meanwhile, at most. A wait
/// that did not end counts as well.
pub fn generations(history: &[Event], others: &[Turn]) -> Vec<usize> {
    let mut since = None;
    let mut waits = Vec::new();
    for event in history {
        match &event.what {
            What::Waits => since = since.or(Some(event.at)),
            What::Has(_) => waits.extend(since.take().map(|since| (since, event.at))),
            What::Still | What::Asks(_) | What::Answered(_) | What::Ended(_) | What::Left(_) => {}
        }
    }
    waits.extend(since.map(|since| (since, u64::MAX)));
    waits.into_iter().map(|(since, until)| most_turns(others, since, until)).collect()
}

/// How many turns the same seat began in this time, at most.
fn most_turns(turns: &[Turn], since: u64, until: u64) -> usize {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for turn in turns.iter().filter(|turn| since < turn.from && turn.from < until) {
        *counts.entry(&turn.who).or_default() += 1;
    }
    counts.into_values().max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;
    use crate::hold::Hold;

    fn turn(who: &str, from: u64, until: u64) -> Turn {
        Turn { lock: "hot".into(), who: who.into(), hold: Hold::Read(1), since: from, from, until }
    }

    #[test]
    fn starved_seats_are_found() {
        let calm = Calm { from: 100, until: 200, patience: Duration::from_nanos(40), rounds: 0 };
        let turn = |from, until| turn("w1", from, until);
        let without = |turns: &[Turn]| starved(turns, &["w1".into()], calm);
        let starved = |nanos| [Problem::Starved("w1".into(), nanos)];
        assert_eq!(without(&[]), starved(100));
        assert_eq!(without(&[turn(50, 90)]), starved(100));
        assert_eq!(without(&[turn(50, 130), turn(165, 170)]), []);
        assert_eq!(without(&[turn(120, 130), turn(180, 190)]), starved(50));
        assert_eq!(without(&[turn(110, 130), turn(140, 150)]), starved(50));
        assert_eq!(without(&[turn(130, 160), turn(250, 260)]), []);
    }

    /// Where nobody has turns, the machine is slow, or everything is stuck.
    #[test]
    fn a_seat_is_starved_by_the_turns_of_others() {
        let calm = Calm { from: 100, until: 200, patience: Duration::from_nanos(40), rounds: 2 };
        let seats = ["w1".to_owned(), "w2".to_owned()];
        let turns: Vec<_> = (0..4).map(|number| turn("w2", 110 + 20 * number, 111 + 20 * number)).collect();
        assert_eq!(starved(&turns, &seats, calm), [Problem::Starved("w1".into(), 100)]);
        assert_eq!(starved(&turns[..3], &seats, calm), []);
        let stuck = Calm { until: 261, ..calm };
        assert_eq!(starved(&[], &seats, stuck), seats.map(|seat| Problem::Starved(seat, 161)));
    }

    #[test]
    fn turns_are_counted_by_seat() {
        let turns =
            [("a", 1), ("b", 2), ("a", 3), ("c", 4), ("b", 5), ("a", 6)].map(|(who, from)| turn(who, from, from));
        let counts =
            |seats: &[&str]| fewest_and_most(&turns, &seats.iter().map(|seat| (*seat).into()).collect::<Vec<_>>());
        assert_eq!([counts(&["a", "b"]), counts(&["b", "none"]), counts(&[])], [(2, 3), (0, 2), (0, 0)]);
    }

    #[test]
    fn generations_are_those_of_one_seat() {
        let text = "10 0 hot waits\n20 0 hot busy\n25 0 hot waits\n40 0 hot has 7\n50 0 hot released\n60 0 hot waits\n";
        let others = [(5, "a"), (15, "a"), (16, "b"), (35, "a"), (45, "a"), (65, "b"), (66, "b"), (67, "b")];
        let others = others.map(|(from, who)| turn(who, from, from + 1));
        assert_eq!(generations(&read(text).unwrap(), &others), [2, 3]);
    }
}
