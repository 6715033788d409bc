//! The turns of all workers, from their histories.

use std::collections::BTreeMap;

use crate::history::{Event, What};
use crate::hold::Hold;

/// One hold of one guard, for as long as the guard's own check passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The lock.
    pub lock: String,
    /// Who had it: worker and seat.
    pub who: String,
    /// What it held, with its fencing tokens.
    pub hold: Hold,
    /// When its seat began to wait.
    pub since: u64,
    /// When it was admitted.
    pub from: u64,
    /// The last moment at which its check still passed.
    pub until: u64,
}

/// The turns in a worker's history.
pub fn turns(worker: &str, history: &[Event]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    let mut current: BTreeMap<usize, usize> = BTreeMap::new();
    let mut waits: BTreeMap<usize, u64> = BTreeMap::new();
    for event in history {
        match &event.what {
            What::Has(hold) => {
                current.insert(event.seat, turns.len());
                let (lock, who) = (event.lock.clone(), seat_name(worker, event.seat));
                let (since, from) = (waits.get(&event.seat).copied().unwrap_or(event.at), event.at);
                turns.push(Turn { lock, who, hold: hold.clone(), since, from, until: from });
            }
            What::Still => turns[current[&event.seat]].until = event.at,
            What::Waits => _ = waits.insert(event.seat, event.at),
            What::Asks(_) | What::Answered(_) | What::Ended(_) | What::Left(_) => {}
        }
    }
    turns
}

/// How the turns and the problems name a waiter.
pub fn seat_name(worker: &str, seat: usize) -> String {
    format!("{worker}/{seat}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read;

    #[test]
    fn turns_are_read_from_a_history() {
        let text = "1 0 hot waits\n2 0 hot has 7\n2 1 cold reads 5\n3 0 hot still\n4 0 hot released\n\
                    5 0 hot waits\n6 0 hot cancelled\n7 0 hot has 9\n8 0 hot reads 10\n9 0 hot still\n9 1 cold lost\n";
        let history = read(text).unwrap();
        let spans =
            turns("w1", &history).into_iter().map(|turn| (turn.who, turn.hold, [turn.since, turn.from, turn.until]));
        let expected = [
            ("w1/0", Hold::Write(7), [1, 2, 3]),
            ("w1/1", Hold::Read(5), [2, 2, 2]),
            ("w1/0", Hold::Write(9), [5, 7, 7]),
            ("w1/0", Hold::Read(10), [5, 8, 9]),
        ];
        assert!(spans.eq(expected.map(|(who, hold, times)| (who.to_owned(), hold, times))));
    }
}
