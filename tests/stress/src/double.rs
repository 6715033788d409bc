//! For how long more than one had a lock, and for how long nobody did.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::turn::Turn;

/// For how long each lock had more than one holder, added up. The turns have to be those of writers.
pub fn doubly_held(turns: &[Turn]) -> Duration {
    let nanos = spans_by_lock(turns).into_values().map(|spans| doubly(&spans)).sum();
    Duration::from_nanos(nanos)
}

/// The longest time after this moment in which nobody had the lock, up to the last turn.
pub fn longest_pause(turns: &[Turn], lock: &str, after: u64) -> Duration {
    let spans = spans_by_lock(turns).remove(lock).unwrap_or_default();
    let (mut covered, mut longest) = (after, 0);
    for (from, until) in spans.into_iter().filter(|(_, until)| *until > after) {
        longest = longest.max(from.saturating_sub(covered));
        covered = covered.max(until);
    }
    Duration::from_nanos(longest)
}

fn spans_by_lock(turns: &[Turn]) -> BTreeMap<&str, Vec<(u64, u64)>> {
    let mut by_lock: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for turn in turns {
        by_lock.entry(&turn.lock).or_default().push((turn.from, turn.until));
    }
    by_lock.values_mut().for_each(|spans| spans.sort_unstable());
    by_lock
}

/// What of each span others had covered already, but each moment once. The spans are in order.
fn doubly(spans: &[(u64, u64)]) -> u64 {
    let (mut once, mut twice, mut nanos) = (0, 0, 0);
    for (from, until) in spans {
        let (begin, end) = ((*from).max(twice), (*until).min(once));
        nanos += end.saturating_sub(begin);
        twice = twice.max(end);
        once = once.max(*until);
    }
    nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hold::Hold;

    fn turns(lock: &str, spans: &[(u64, u64)]) -> Vec<Turn> {
        let turn = |&(from, until): &(u64, u64)| {
            let (lock, who) = (lock.to_owned(), "w".to_owned());
            Turn { lock, who, hold: Hold::Write(from), since: from, from, until }
        };
        spans.iter().map(turn).collect()
    }

    #[test]
    fn each_moment_with_two_holders_counts_once() {
        let nanos = |spans: &[(u64, u64)]| doubly_held(&turns("a", spans)).as_nanos();
        assert_eq!(nanos(&[(0, 4), (4, 9), (12, 20)]), 0);
        assert_eq!(nanos(&[(10, 30), (0, 20), (12, 14), (13, 16), (40, 50)]), 10);
        let both = [turns("a", &[(0, 5), (3, 9)]), turns("b", &[(0, 5), (4, 5)])].concat();
        assert_eq!(doubly_held(&both), Duration::from_nanos(3));
    }

    #[test]
    fn a_pause_is_a_time_without_any_turn() {
        let turns = turns("a", &[(0, 50), (10, 20), (60, 65), (80, 90)]);
        let nanos = |after| longest_pause(&turns, "a", after).as_nanos();
        assert_eq!([0, 62, 70, 90].map(nanos), [15, 15, 10, 0]);
    }
}
