//! A store whose entries end with the session of their client: every rule holds, and each that can be turned off is missed.

use lock_sim::session::{Mistake, play, tell};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played.
const SEEDS: u64 = 1000;

#[test]
fn session_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("session", SEEDS, &Fault::WITH_SESSIONS, |seed| play(seed, None), |seed| tell(seed, None));
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
fn a_release_that_is_given_up_after_the_ttl_leaves_an_entry_behind() {
    for rule in [Rule::Cancelled, Rule::Everybody] {
        let breaks = |seed| play(seed, Some(Mistake::GivenUpAfterTtl)).broken.is_some_and(|broken| broken.rule == rule);
        assert!((0..500).any(breaks), "{rule:?} was not found broken");
    }
}

#[test]
fn a_session_that_does_not_end_for_what_is_owed_keeps_others_out() {
    let rule = found(Mistake::SessionKept);
    assert!(matches!(rule, Rule::Everybody | Rule::Outliving), "{rule:?}");
}

#[test]
fn a_session_that_ends_before_its_holders_are_told_is_found() {
    let rule = found(Mistake::ToldAfterwards);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_claim_that_is_judged_by_an_old_list_is_found() {
    let rule = found(Mistake::OldListBelieved);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn the_newest_write_proves_nothing() {
    assert_eq!(found(Mistake::NewestProves), Rule::StoreKeeps);
}

#[test]
fn a_reader_that_watches_only_the_entry_before_its_own_is_found() {
    assert_eq!(found(Mistake::PredecessorWatched), Rule::Overslept);
}

#[test]
fn a_waiter_that_does_not_look_again_sleeps_for_ever() {
    assert_eq!(found(Mistake::WakingTrusted), Rule::Everybody);
}

#[test]
fn a_session_that_ends_early_is_found() {
    let rule = found(Mistake::ExpiredEarly);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}
