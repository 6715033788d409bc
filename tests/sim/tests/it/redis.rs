//! One Redis: the real machine, and every rule that can be turned off is missed within a few seeds.

use lock_sim::redis::{Mistake, play, tell};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played by default.
const SEEDS: u64 = 1000;

#[test]
fn redis_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("redis", SEEDS, &Fault::WITH_ONE_REDIS, |seed| play(seed, None), |seed| tell(seed, None));
}

#[test]
fn a_seed_decides_everything() {
    seeds::decides_everything(|seed| tell(seed, None));
}

#[track_caller]
fn found(mistake: Mistake) -> Rule {
    seeds::found(500, |seed| play(seed, Some(mistake)))
}

#[test]
fn a_validity_that_counts_from_the_message_is_found() {
    assert!(matches!(found(Mistake::CountedFromPush), Rule::OneHolder | Rule::StoreKeeps));
}

#[test]
fn a_hand_over_for_the_releasers_ttl_is_found() {
    assert!(matches!(found(Mistake::ReleasersTtl), Rule::OneHolder | Rule::StoreKeeps));
}

#[test]
fn asking_again_without_re_arming_is_found() {
    assert!(matches!(found(Mistake::NotRearmed), Rule::OneHolder | Rule::StoreKeeps));
}

/// A store that draws the token of a lease again, which it has lost, looks as if it had given that lease to somebody else.
#[test]
fn a_counter_that_nobody_verifies_is_found() {
    let rule = found(Mistake::Unverified);
    assert!(matches!(rule, Rule::TokensRise | Rule::Refusals | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn an_unwanted_grant_that_is_kept_is_found() {
    assert_eq!(found(Mistake::UnwantedKept), Rule::Cancelled);
}

#[test]
fn sets_that_are_acquired_in_any_order_are_found() {
    assert_eq!(found(Mistake::AnyOrder), Rule::Everybody);
}

#[test]
fn unbounded_pending_releases_are_found() {
    assert_eq!(found(Mistake::UnboundedDebt), Rule::BoundedDebt);
}

/// This needs a message that arrives after its grant has ended, and an answer in between.
#[test]
fn an_answer_that_forgets_what_was_drawn_is_found() {
    let rule = seeds::found(5000, |seed| play(seed, Some(Mistake::DrawnForgotten)));
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}
