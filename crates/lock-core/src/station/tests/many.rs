//! Many turns at one station: what an input costs does not grow with them.

use std::time::Duration;

use super::super::turns::LOOKS;
use super::super::{Input, Join, Leaving, TurnId};
use super::rig::{Rig, reader, rig};

const MANY: u64 = 20_000;

impl Rig {
    /// Gives the station an input, and returns how many turns it looked at that the input need not be about.
    fn looks(&mut self, input: Input) -> usize {
        LOOKS.set(0);
        drop(self.station.handle_input(self.now, input));
        assert!(self.station.next_wake() > Some(self.now));
        LOOKS.get()
    }
}

/// The readers from the second on. `max_hold` ends every other one, each at a moment of its own.
fn many_readers() -> impl Iterator<Item = Input> {
    (2..MANY).map(|turn| {
        let max_hold = (turn % 2 == 0).then(|| Duration::from_secs(MANY - turn + 10));
        Input::Join(Join { turn: TurnId(turn), max_hold, ..reader(2) })
    })
}

#[test]
fn readers_join_and_leave_a_lease_without_a_look_at_the_others() {
    let mut rig = rig();
    rig.read(1);
    rig.grant(7, 7);
    for join in many_readers() {
        assert_eq!(rig.looks(join), 0);
    }
    assert_eq!(rig.looks(Input::Tick), 0);
    // Neither the first nor the last.
    for turn in (2..MANY).map(|turn| 2 + (turn * 7919) % (MANY - 2)) {
        assert_eq!(rig.looks(Input::Leave(Leaving::now(TurnId(turn)))), 0);
    }
    assert_eq!(rig.station.leases.first().map(|held| held.turns.len()), Some(1));
}

#[test]
fn a_renewal_looks_once_at_each_turn_that_it_extends() {
    let mut rig = rig();
    rig.read(1);
    rig.grant(7, 7);
    for join in many_readers() {
        rig.looks(join);
    }
    rig.pass(Duration::from_secs(1));
    LOOKS.set(0);
    rig.renewed(false);
    assert_eq!(LOOKS.get(), usize::try_from(MANY - 1).unwrap());
}
