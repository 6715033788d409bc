//! Every rule that can be turned off is missed within a few seeds.

use lock_sim::{Mistake, Rule, play};

/// The rules that are found broken within so many seeds.
#[track_caller]
fn found(mistake: Mistake, within: u64) -> Rule {
    let mut broken = (0..within).filter_map(|seed| play(seed, Some(mistake)).broken);
    broken.next().unwrap_or_else(|| panic!("{mistake:?} was not found within {within} seeds")).rule
}

#[test]
fn a_validity_that_counts_from_the_message_is_found() {
    let rule = found(Mistake::CountedFromPush, 200);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_hand_over_for_the_releasers_ttl_is_found() {
    let rule = found(Mistake::ReleasersTtl, 200);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn asking_again_without_re_arming_is_found() {
    let rule = found(Mistake::NotRearmed, 200);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_counter_that_nobody_verifies_is_found() {
    let rule = found(Mistake::Unverified, 200);
    assert!(matches!(rule, Rule::TokensRise | Rule::Refusals), "{rule:?}");
}

#[test]
fn an_unwanted_grant_that_is_kept_is_found() {
    assert_eq!(found(Mistake::UnwantedKept, 200), Rule::Cancelled);
}
