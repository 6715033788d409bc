//! What is done at once is what the input would do.

use super::super::{Input, Join, Leaving, TurnId};
use super::rig::{Rig, millis, reader};
use super::states::{ATTEMPT, Drive, FIRST, HELD, READING, SECOND, SEMAPHORE};
use crate::Patience;

/// The waiter that joins.
const NEW: u8 = 3;

/// Does the input at once, if the station can, and says what the output would be.
fn at_once(rig: &mut Rig, input: &Input) -> Option<Vec<String>> {
    let now = rig.now;
    if let Input::Join(join) = input {
        let hold = rig.station.join_beside_others(now, join.turn, &join.note)?;
        let left = hold.valid_until().since(now).as_millis();
        return Some(vec![format!("admit {}: token {}, valid for {left}ms", join.turn.0, hold.token())]);
    }
    let Input::Leave(Leaving { turn, .. }) = input else { return None };
    rig.station.leave_beside_others(*turn).then(|| vec![format!("ended {}: released", turn.0)])
}

/// Compares both ways in a state, so much later. Returns whether the first one could be gone.
fn is_the_same(drive: Drive, later: u64, input: Input) -> bool {
    let [mut one, mut two] = [drive(), drive()];
    one.pass(millis(later));
    let before = one.state();
    let Some(outputs) = at_once(&mut one, &input) else {
        assert_eq!(one.state(), before);
        return false;
    };
    // The station is not told the time when somebody leaves at once.
    let (before, after) = if matches!(input, Input::Leave(_)) { (0, later) } else { (later, 0) };
    two.pass(millis(before));
    assert_eq!(two.feed(input), outputs);
    two.pass(millis(after));
    assert_eq!((one.state(), one.station.next_wake()), (two.state(), two.station.next_wake()));
    true
}

#[test]
fn in_every_state_it_is_the_same_as_the_input() {
    let mut count = 0;
    for (_, drive) in [ATTEMPT, HELD, READING, SEMAPHORE].concat() {
        // Soon after; when the word of the store is old; when the lease is over.
        for later in [1, 50, 40_000] {
            for patience in [Patience::Forever, Patience::Never] {
                count += usize::from(is_the_same(drive, later, Input::Join(Join { patience, ..reader(NEW) })));
            }
            for turn in [FIRST, SECOND, NEW, 99] {
                let leaving = Leaving::now(TurnId(u64::from(turn)));
                count += usize::from(is_the_same(drive, later, Input::Leave(leaving)));
            }
        }
    }
    assert!(count >= 4, "{count} were done at once");
}
