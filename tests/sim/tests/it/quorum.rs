//! A quorum: the real code that decides, and every rule that can be turned off is missed within a few seeds.

use lock_sim::quorum::{Mistake, play, play_plot, tell, tell_plot};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played by default.
const SEEDS: u64 = 800;
const PLOTS: u64 = 400;

#[test]
fn quorum_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("quorum", SEEDS, &Fault::WITH_A_QUORUM, |seed| play(seed, None), |seed| tell(seed, None));
}

#[test]
fn a_seed_decides_everything() {
    seeds::decides_everything(|seed| tell(seed, None));
}

/// Checks that a mistake is found within this many seeds, by one of these rules.
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

/// The connection of both breaks, the release is sent once more over the next one, and the claim arrives after it.
#[test]
fn a_release_that_does_not_wait_for_its_claim_is_found() {
    finds(Mistake::ReleaseAtOnce, 1000, &[Rule::Ghosts]);
}

#[test]
fn plots_do_no_harm_with_all_rules() {
    seeds::play_all("plots", PLOTS, &Fault::IN_A_PLOT, |seed| play_plot(seed, None), |seed| tell_plot(seed, None));
}

#[test]
fn a_seed_decides_a_whole_plot() {
    seeds::decides_everything(|seed| tell_plot(seed, None));
}

/// Whether a plot without a rule of the guard makes two holders, or leaves one with too few nodes.
#[track_caller]
fn finds_in_a_plot(mistake: Mistake, within: u64) {
    let rule = seeds::found(within, |seed| play_plot(seed, Some(mistake)));
    assert!(matches!(rule, Rule::StoreKeeps | Rule::OneHolder), "{mistake:?} was found by {rule:?}");
}

#[test]
fn a_ttl_that_is_not_announced_is_found() {
    finds_in_a_plot(Mistake::NoAnnouncement, 200);
}

#[test]
fn a_dwell_that_ends_by_one_note_is_found() {
    finds_in_a_plot(Mistake::OneRecord, 200);
}

#[test]
fn a_node_that_comes_back_by_its_clock_and_knows_no_ttl_is_found() {
    finds_in_a_plot(Mistake::LowLongest, 200);
}

#[test]
fn a_dwell_that_counts_past_the_look_is_found() {
    finds_in_a_plot(Mistake::PastLook, 200);
}

#[test]
fn a_blank_node_that_another_deployment_may_have_is_found() {
    finds_in_a_plot(Mistake::BlankIsOurs, 600);
}

#[test]
fn a_node_with_data_from_before_a_move_is_found() {
    finds_in_a_plot(Mistake::OutdatedIsOurs, 600);
}
