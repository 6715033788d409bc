//! What is done at once is what the input would do.

use super::super::{Input, Join, Leaving, TurnId};
use super::rig::{Rig, millis, reader};
use super::states::{Drive, FIRST, QUEST, READING, SECOND, SEMAPHORE, TENURE};
use crate::{Moment, Patience};

/// The waiter that joins.
const NEW: u8 = 3;

/// Does the input at once, if the station can, and says what the output would be.
fn at_once(rig: &mut Rig, input: &Input) -> Option<Vec<String>> {
    let now = rig.now;
    if let Input::Join(join) = input {
        let hold = rig.station.join_at_once(now, join.turn, join.patience, &join.note)?;
        let left = hold.valid_until().since(now).as_millis();
        return Some(vec![format!("admit {}: token {}, valid for {left}ms", join.turn.0, hold.token())]);
    }
    let Input::Leave(Leaving { turn, .. }) = input else { return None };
    rig.station.leave_at_once(now, *turn).then(|| vec![format!("ended {}: released", turn.0)])
}

/// Compares both ways in a state. Returns whether the first one could be gone.
fn is_the_same(drive: Drive, later: u64, input: impl Fn(Moment) -> Input) -> bool {
    let [mut one, mut two] = [drive(), drive()].map(|mut rig| {
        rig.pass(millis(later));
        rig
    });
    let before = one.state();
    match at_once(&mut one, &input(two.now)) {
        None => assert_eq!(one.state(), before),
        Some(outputs) => {
            assert_eq!(two.feed(input(two.now)), outputs);
            assert_eq!((one.state(), one.station.next_wake()), (two.state(), two.station.next_wake()));
            return true;
        }
    }
    false
}

#[test]
fn in_every_state_it_is_the_same_as_the_input() {
    let mut count = 0;
    for (_, drive) in [QUEST, TENURE, READING, SEMAPHORE].concat() {
        // Soon after; when the word of the store is old; when the lease is over.
        for later in [1, 50, 40_000] {
            let join = |patience| move |_| Input::Join(Join { patience, ..reader(NEW) });
            count += usize::from(is_the_same(drive, later, join(Patience::Forever)));
            count += usize::from(is_the_same(drive, later, join(Patience::Never)));
            let late = |now| Input::Join(Join { patience: Patience::Until(now), ..reader(NEW) });
            assert!(!is_the_same(drive, later, late), "its wait is over");
            for turn in [FIRST, SECOND, NEW, 99] {
                let leave = |_| Input::Leave(Leaving::now(TurnId(u64::from(turn))));
                count += usize::from(is_the_same(drive, later, leave));
            }
        }
    }
    assert!(count >= 4, "{count} were done at once");
}
