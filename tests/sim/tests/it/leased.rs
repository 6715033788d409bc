//! A store whose entries end with a lease each: every rule holds, and each that can be turned off is missed.

use lock_sim::leased::{Mistake, play, tell};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played.
const SEEDS: u64 = 1000;

#[test]
fn leased_every_rule_holds_and_every_fault_fires() {
    seeds::play_all("leased", SEEDS, &Fault::WITH_LEASES, |seed| play(seed, None), |seed| tell(seed, None));
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
fn a_renewal_that_counts_when_it_is_answered_is_found() {
    let rule = found(Mistake::KeepaliveCounts);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_renewal_that_counts_in_a_later_term_than_the_grant_is_found() {
    let rule = found(Mistake::AnyTermCounts);
    assert!(matches!(rule, Rule::OneHolder | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_renewal_that_does_not_read_the_key_is_found() {
    assert_eq!(found(Mistake::KeyUnread), Rule::StoreKeeps);
}

#[test]
fn a_change_that_compares_only_the_creation_is_found() {
    let rule = found(Mistake::CreationCompared);
    assert!(matches!(rule, Rule::Cancelled | Rule::Kept), "{rule:?}");
}
