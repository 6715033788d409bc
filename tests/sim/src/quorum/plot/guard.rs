//! The plots of the guard's rules, over three nodes. A majority is two: one node that forgets, and another one.

use std::time::Duration;

use lock_core::Ttl;

use super::deed::{Actor, Deed, HERO, Script};
use super::lists;
use crate::dice::Dice;
use crate::network::Fate;
use crate::quorum::list::List;
use crate::quorum::node::Return;
use crate::quorum::terms::Terms;
use crate::wish::{Part, Wait, Wish};

/// The hero's lock, and the one of the chorus.
const LOCK: usize = 0;
const OTHER: usize = 1;
/// The hero's ttl: the longest that is allowed, and long enough for a request to be in flight for longer than the least dwell.
const LONG: Duration = Duration::from_secs(30);
/// The ttls of all others: a node that knows no longer ttl dwells for the shortest time.
const SHORT: [Duration; 3] = [Duration::from_millis(600), Duration::from_secs(1), Duration::from_millis(1900)];
/// Who keeps the other lock, of the chorus.
const KEEPER: Actor = Actor(1);
/// How soon the chorus asks again: a client without users notices nothing.
const PACE: Duration = Duration::from_millis(250);

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Which nodes are what in a plot.
#[derive(Clone, Copy, Debug)]
struct Roles {
    /// The one that forgets.
    victim: usize,
    /// The other one of the hero's majority.
    witness: usize,
    /// The one that has nothing of the hero.
    stranger: usize,
}

impl Roles {
    fn draw(dice: &mut Dice) -> Self {
        let victim = dice.from(0, 2);
        let [witness, stranger] = if dice.chance(500) { [1, 2] } else { [2, 1] };
        Self { victim, witness: (victim + witness) % 3, stranger: (victim + stranger) % 3 }
    }
}

/// Any plot.
pub(in super::super) fn draw(dice: &mut Dice) -> (Terms, Script) {
    let terms = Terms::of_plot(dice, LONG);
    let mut script = Script::default();
    let begins = dice.millis(300, 1500);
    if dice.chance(300) {
        lists::draw(dice, &mut script, begins, LONG);
        return (Terms { spares: 1, troubles: Vec::new(), ..terms }, script);
    }
    let plots = [unannounced, one_old_record, back_by_clock, counted_past_the_look];
    let plot = dice.pick(&plots).unwrap_or(unannounced);
    let roles = Roles::draw(dice);
    plot(dice, &mut script, roles, begins);
    chorus(dice, &mut script);
    (terms, script)
}

/// Clients of another lock arrive all the time; some of them finally want the hero's lock, too. Most of the time one of
/// them holds the other lock and keeps it, so the nodes draw no tokens. If they did, a late grant for the hero would be
/// above the first one, and the node that forgot that one would not acknowledge it.
fn chorus(dice: &mut Dice, script: &mut Script) {
    let end = script.end() + millis(6000);
    let rivals = if dice.chance(500) { script.end() } else { end };
    let lasts = if dice.chance(900) { end } else { Duration::ZERO };
    for actor in [Actor(1), Actor(2)] {
        let mut time = dice.between(millis(20), PACE);
        while time < end {
            let site = if time > rivals && dice.chance(300) { LOCK } else { OTHER };
            let ttl = dice.pick(&SHORT).unwrap_or(SHORT[0]);
            let hold_for = if (actor, site) == (KEEPER, OTHER) { lasts } else { dice.millis(0, 30) };
            let wish = Wish { wait: Wait::For(dice.millis(1, 400)), ..wish(site, ttl, hold_for) };
            script.at(time, Deed::Ask(actor, wish));
            time += dice.between(millis(20), PACE);
        }
    }
}

fn wish(site: usize, ttl: Duration, hold_for: Duration) -> Wish {
    let ttl = Ttl::new(ttl).unwrap_or(Ttl::DEFAULT);
    Wish { site, ttl, wait: Wait::Forever, cancel: None, max_hold: None, hold_for, part: Part::Alone }
}

fn gap(actor: Actor, node: usize, fate: Fate, lasts: Duration) -> Deed {
    Deed::Gap { actor, node, fate, lasts }
}

/// The victim grants a claim and forgets it. The others learn its ttl only after the victim is back.
fn unannounced(dice: &mut Dice, script: &mut Script, roles: Roles, begins: Duration) {
    script.at(begins, gap(HERO, roles.witness, Fate::Late, dice.millis(1800, 4900)));
    script.at(begins, gap(HERO, roles.stranger, Fate::Lost, dice.millis(5000, 8000)));
    script.at(begins, Deed::Ask(HERO, wish(LOCK, LONG, dice.millis(2000, 20_000))));
    script.at(begins + dice.millis(1, 300), Deed::Forget(roles.victim));
}

/// The clock of a node that abstains steps forward, so its record looks older than the longest lease.
fn one_old_record(dice: &mut Dice, script: &mut Script, roles: Roles, begins: Duration) {
    script.at(begins, gap(HERO, roles.stranger, Fate::Lost, dice.millis(5000, 20_000)));
    script.at(begins, Deed::Ask(HERO, wish(LOCK, LONG, dice.millis(5000, 20_000))));
    let forgets = begins + dice.millis(2, 1000);
    script.at(forgets, Deed::Forget(roles.victim));
    let stepped = if dice.chance(700) { roles.victim } else { roles.stranger };
    script.at(forgets + dice.millis(1, 6000), Deed::StepClock(stepped, dice.millis(25_000, 90_000)));
}

/// The hero has announced its ttl to the victim and the witness. The victim is reset to an earlier state, and is
/// restored by its clock while the witness is suspended. Then the witness grants a claim and forgets, and no node knows
/// the ttl.
fn back_by_clock(dice: &mut Dice, script: &mut Script, roles: Roles, begins: Duration) {
    let Roles { victim, witness, stranger } = roles;
    script.at(begins, Deed::Copy(victim));
    let asks = begins + dice.millis(10, 100);
    script.at(asks, gap(HERO, stranger, Fate::Lost, dice.millis(300, 600)));
    script.at(asks, Deed::Ask(HERO, wish(LOCK, LONG, dice.millis(700, 1000))));
    // What was lost has failed by then, and after this the hero trusts all nodes again.
    let again = asks + dice.millis(5100, 6000);
    script.at(again, Deed::Ask(HERO, Wish { wait: Wait::Not, ..wish(OTHER, SHORT[1], Duration::ZERO) }));
    let restart = again + dice.millis(300, 1000);
    script.at(restart, Deed::Restart(victim, Return::FromCopy, dice.millis(10, 300)));
    let frozen = LONG + dice.millis(1000, 6000);
    script.at(restart, Deed::Freeze(witness, frozen));
    let last = restart + frozen + dice.millis(500, 2000);
    script.at(last, gap(HERO, stranger, Fate::Late, dice.millis(1800, 4900)));
    script.at(last, Deed::Ask(HERO, wish(LOCK, LONG, dice.millis(2000, 20_000))));
    script.at(last + dice.millis(2, 300), Deed::Forget(witness));
}

/// A pass looks at the others before the hero announces its ttl, and at the victim after the victim has granted and
/// forgotten it. Then the client of the pass is suspended for the dwell.
fn counted_past_the_look(dice: &mut Dice, script: &mut Script, roles: Roles, begins: Duration) {
    let Roles { victim, witness, stranger } = roles;
    // The chorus has two voices.
    let passer = Actor(3);
    let late = dice.millis(30, 900);
    script.at(begins, gap(HERO, stranger, Fate::Lost, dice.millis(5000, 10_000)));
    script.at(begins, Deed::Enter(passer, List::First, Some((victim, late))));
    let asks = begins + dice.millis(1, 5);
    script.at(asks, gap(passer, witness, Fate::Late, late + dice.millis(50, 500)));
    script.at(asks, Deed::Ask(HERO, wish(LOCK, LONG, dice.millis(5000, 20_000))));
    script.at(begins + dice.millis(5, 30), Deed::Forget(victim));
    script.at(begins + late + dice.millis(2, 60), Deed::Stop(passer, dice.millis(1700, 5000)));
}
