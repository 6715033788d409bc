//! The plots of two lists: nodes are moved from the first to the second while clients of both run, or clients were
//! given the second one by mistake.
//!
//! Each client's passes reach all its nodes. A blank node looks the same to both deployments, and a pass to which no
//! node of the other deployment answers takes it: two holders follow, as the model shows. So no node is suspended here,
//! and nothing is lost except what the first operator sends, and what clients of the second list send to a node with data from
//! before the move: they would move it again.

use std::ops::Range;
use std::time::Duration;

use lock_core::Ttl;

use super::deed::{Actor, Deed, Script};
use crate::dice::Dice;
use crate::network::Fate;
use crate::quorum::list::List;
use crate::quorum::node::Return;
use crate::wish::{Part, Wait, Wish};

/// The clients of the first list. The next two actors have the second one.
const OLD: [Actor; 3] = [Actor(0), Actor(1), Actor(2)];
const NEW: [Actor; 2] = [Actor(3), Actor(4)];
const MOVER: Actor = Actor(5);
const TAKER: Actor = Actor(6);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One of the three; `longest` is the longest ttl.
pub(super) fn draw(dice: &mut Dice, script: &mut Script, begins: Duration, longest: Duration) {
    let end = begins + longest * 2 + dice.millis(5000, 10_000);
    let plots = [moved, moved, outdated, mistaken];
    let end = match dice.pick(&plots) {
        Some(plot) => end.max(plot(dice, script, begins, longest)),
        None => end,
    };
    for actor in OLD.into_iter().chain(NEW) {
        ask(dice, script, actor, begins..end, longest);
    }
}

/// A process wants the lock again and again, for a short or a long time.
fn ask(dice: &mut Dice, script: &mut Script, actor: Actor, when: Range<Duration>, longest: Duration) {
    let mut time = when.start;
    while time < when.end {
        time += dice.millis(20, 3000);
        let ttl = if dice.chance(500) { longest } else { dice.millis(600, 5000) };
        let ttl = Ttl::new(ttl).unwrap_or(Ttl::DEFAULT);
        let hold_for = if dice.chance(300) { dice.between(Duration::ZERO, longest) } else { dice.millis(0, 1000) };
        let wait = Wait::For(dice.millis(1, 4000));
        script.at(
            time,
            Deed::Ask(actor, Wish { site: 0, ttl, wait, cancel: None, max_hold: None, hold_for, part: Part::Alone }),
        );
    }
}

/// A node forgets, and another one is not reached by the move. These return when it is over.
fn moved(dice: &mut Dice, script: &mut Script, begins: Duration, _: Duration) -> Duration {
    let moves = begins + dice.millis(1000, 4000);
    if dice.chance(700) {
        let node = if dice.chance(500) { dice.from(0, 1) } else { dice.from(2, 3) };
        script.at(moves + dice.millis(0, 3000) - millis(500), Deed::Forget(node));
    }
    script.at(moves, Deed::Move(MOVER));
    if dice.chance(700) {
        // Its look has passed by then, most of the time.
        let gap = Deed::Gap {
            actor: MOVER,
            node: dice.pick(&[0, 1, 2, 2]).unwrap_or(2),
            fate: Fate::Lost,
            lasts: millis(3000),
        };
        script.at(moves + dice.between(Duration::ZERO, millis(4)), gap);
    }
    script.at(moves + dice.millis(5, 2500), Deed::TakeOver(TAKER, NEW));
    script.end()
}

/// The move does not reach the node that leaves the list. Once the second list grants locks, another node restarts with data from
/// before the move.
fn outdated(dice: &mut Dice, script: &mut Script, begins: Duration, longest: Duration) -> Duration {
    let moves = begins + dice.millis(1000, 4000);
    script.at(moves - millis(500), Deed::Copy(0));
    script.at(moves, Deed::Move(MOVER));
    script.at(moves, Deed::Gap { actor: MOVER, node: 2, fate: Fate::Lost, lasts: millis(3000) });
    script.at(moves + dice.millis(100, 2500), Deed::TakeOver(TAKER, NEW));
    let restarts = moves + longest + dice.millis(5000, 15_000);
    for actor in NEW.into_iter().chain([TAKER]) {
        script.at(restarts, Deed::Gap { actor, node: 0, fate: Fate::Lost, lasts: longest * 3 });
    }
    script.at(restarts, Deed::Restart(0, Return::FromCopy, dice.millis(10, 300)));
    restarts + longest * 2
}

/// One node forgets, or two of them.
fn mistaken(dice: &mut Dice, script: &mut Script, begins: Duration, _: Duration) -> Duration {
    for actor in NEW {
        script.at(begins, Deed::Enter(actor, List::Second, None));
    }
    for _ in 0..dice.from(1, 2) {
        script.at(begins + dice.millis(100, 8000), Deed::Forget(dice.from(0, 3)));
    }
    script.end()
}
