//! A Redis with replicas: every rule that can be turned off is missed within some seeds.

use lock_sim::replicated::{Mistake, play, play_failover, play_hand_overs, tell, tell_failover, tell_hand_overs};
use lock_sim::{Fault, Report, Rule};

use crate::seeds;

/// How many seeds are played by default.
const SEEDS: u64 = 200;
const FAILOVERS: u64 = 400;
const HAND_OVERS: u64 = 200;

#[test]
fn replicated_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("replicated", SEEDS, &Fault::WITH_REPLICAS, |seed| play(seed, None), |seed| tell(seed, None));
}

#[test]
fn failovers_do_no_harm_with_all_rules() {
    let (play, tell) = (|seed| play_failover(seed, None), |seed| tell_failover(seed, None));
    seeds::play_all("failovers", FAILOVERS, &Fault::IN_A_FAILOVER, play, tell);
}

#[test]
fn hand_overs_do_no_harm_with_all_rules() {
    let (play, tell) = (|seed| play_hand_overs(seed, None), |seed| tell_hand_overs(seed, None));
    seeds::play_all("hand_overs", HAND_OVERS, &Fault::IN_HAND_OVERS, play, tell);
}

#[test]
fn a_seed_decides_everything() {
    seeds::decides_everything(|seed| tell(seed, None));
}

/// Checks that one fail-over of these finds a mistake, as two holders, or as the tokens of two.
#[track_caller]
fn finds(mistake: Mistake, within: u64) {
    finds_in(play_failover, mistake, within);
}

#[track_caller]
fn finds_in(play: fn(u64, Option<Mistake>) -> Report, mistake: Mistake, within: u64) {
    let rule = seeds::found(within, |seed| play(seed, Some(mistake)));
    assert!(matches!(rule, Rule::OneHolder | Rule::TokensRise), "{mistake:?} was found by {rule:?}");
}

#[test]
fn a_server_that_does_not_dwell_is_found() {
    finds(Mistake::NoDwell, 200);
}

#[test]
fn a_dwell_without_acknowledgements_is_found() {
    finds(Mistake::NoAcknowledgement, 400);
}

#[test]
fn an_acknowledgement_of_one_replica_of_two_is_found() {
    finds(Mistake::OneOfTwo, 1000);
}

#[test]
fn a_repeated_release_that_hands_over_during_a_dwell_is_found() {
    finds(Mistake::EveryReleaseHandsOver, 1500);
}

#[test]
fn a_lock_that_was_handed_over_and_counts_without_an_acknowledgement_is_found() {
    finds_in(play_hand_overs, Mistake::PushedAtOnce, 1500);
}

#[test]
fn a_client_that_goes_back_to_an_old_primary_is_found() {
    assert_eq!(seeds::found(100, |seed| play(seed, Some(Mistake::GoesBack))), Rule::NeverBack);
}
