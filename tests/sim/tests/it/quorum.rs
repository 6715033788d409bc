//! A quorum: the real code that decides, and every rule that can be turned off is missed within a few seeds.

use lock_sim::quorum::{Mistake, play, tell};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played where nothing else is said.
const SEEDS: u64 = 800;

#[test]
fn quorum_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("quorum", SEEDS, &Fault::WITH_A_QUORUM, |seed| play(seed, None), |seed| tell(seed, None));
}

#[test]
fn a_seed_decides_everything() {
    seeds::decides_everything(|seed| tell(seed, None));
}

/// Whether a mistake is found within so many seeds, by one of these rules.
#[track_caller]
fn finds(mistake: Mistake, within: u64, rules: &[Rule]) {
    let rule = seeds::found(within, |seed| play(seed, Some(mistake)));
    assert!(rules.contains(&rule), "{mistake:?} was found by {rule:?}");
}

#[test]
fn a_node_that_acknowledges_whatever_its_grant_is_is_found() {
    finds(Mistake::NoGrantTest, 400, &[Rule::NothingBelow, Rule::NodesAgree]);
}

#[test]
fn grants_without_a_second_round_are_found() {
    finds(Mistake::NoSecondRound, 100, &[Rule::NodesAgree, Rule::TokensRise]);
}

#[test]
fn a_node_that_forgot_and_votes_on_is_found() {
    finds(Mistake::NoMarker, 400, &[Rule::StoreKeeps, Rule::OneHolder, Rule::TokensRise]);
}

#[test]
fn a_node_that_votes_before_its_dwell_is_over_is_found() {
    finds(Mistake::NoDwell, 400, &[Rule::StoreKeeps, Rule::OneHolder, Rule::TokensRise]);
}

#[test]
fn a_lease_that_counts_from_its_answer_is_found() {
    finds(Mistake::CountedFromAnswer, 400, &[Rule::StoreKeeps, Rule::OneHolder]);
}

#[test]
fn a_failed_claim_that_is_not_released_everywhere_is_found() {
    finds(Mistake::NoReleaseToAll, 100, &[Rule::FailedLeavesNothing]);
}

#[test]
fn a_node_that_counts_on_from_its_own_counter_is_found() {
    finds(Mistake::OwnCounter, 1500, &[Rule::Recovers, Rule::TokensRise, Rule::NodesAgree]);
}
