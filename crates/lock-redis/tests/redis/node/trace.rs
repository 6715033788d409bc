//! The reference node is right: it and the scripts on a real Redis get the same random requests, and give the same answers.
//!
//! The reference is asked at the moment at which the server says that it answered, or else just before or after: so even
//! tokens that the clock decides are equal, and only how long something lasts may differ a little.
//!
//! `LEASEHOLD_SEED=n` plays another trace with the first facade, and the next one with the other.

mod author;
mod met;
mod pair;

use std::collections::BTreeSet;
use std::env;

use author::{Author, Step};
use lock_core::node::Ask;
use met::Met;
use pair::Pair;

use super::BOTH;

/// How many steps a trace has, of each facade.
const STEPS: usize = 1500;

#[test]
fn the_scripts_answer_as_the_reference_node_does() {
    let seed = env::var("LEASEHOLD_SEED").map_or(4, |text| text.parse().unwrap());
    let mut met = BTreeSet::new();
    for ((facade, connect), own) in BOTH.into_iter().zip(seed..) {
        let here = format!("LEASEHOLD_SEED={seed}, {facade}");
        let (mut pair, mut author) = (Pair::start(connect), Author::new(own));
        for number in 0..STEPS {
            let step = author.step(&pair.view());
            play(&step, &mut pair, &mut author, &mut met)
                .unwrap_or_else(|differ| panic!("{here}, step {number}: {step:?}\n{differ}"));
        }
        pair.ask(&Ask::Look).unwrap_or_else(|differ| panic!("{here}, at the end: {differ}"));
    }
    let missed: Vec<_> = Met::ALL.into_iter().filter(|kind| !met.contains(kind)).collect();
    assert!(missed.is_empty(), "LEASEHOLD_SEED={seed} met no {missed:?}");
}

/// Plays a step on both. Returns how they differ after it, if they do.
fn play(step: &Step, pair: &mut Pair, author: &mut Author, met: &mut BTreeSet<Met>) -> Result<(), String> {
    match step {
        Step::Ask(ask) => {
            let answered = pair.ask(ask)?;
            author.heard(ask, &answered.told);
            met.extend(met::met_in(ask, &answered));
        }
        Step::LoseKey(name) => pair.lose_key(name),
        Step::Wait => met.extend((pair.wait_for_an_end() > 0).then_some(Met::Ended)),
        Step::Restart => pair.restart(),
        Step::Forget => pair.forget(),
    }
    pair.compare_holds()
}
