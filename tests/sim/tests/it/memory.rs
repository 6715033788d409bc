//! A store that keeps locks and replaces leases: every rule that can be turned off is missed within some seeds.

use lock_sim::memory::{Mistake, play, tell};
use lock_sim::{Fault, Rule};

use crate::seeds;

/// How many seeds are played where nothing else is said.
const SEEDS: u64 = 1000;

#[test]
fn memory_every_rule_holds_and_every_fault_fires() {
    let faults = [&Fault::WITH_ONE_REDIS[..], &Fault::OF_ALL_KINDS].concat();
    seeds::play_all("memory", SEEDS, &faults, |seed| play(seed, None), |seed| tell(seed, None));
}

#[test]
fn a_seed_decides_everything() {
    seeds::decides_everything(|seed| tell(seed, None));
}

#[track_caller]
fn found(mistake: Mistake) -> Rule {
    seeds::found(500, |seed| play(seed, Some(mistake)))
}

/// Some seed finds that this rule is broken, whatever others find.
#[track_caller]
fn finds(mistake: Mistake, rule: Rule) {
    let breaks = |seed| play(seed, Some(mistake)).broken.is_some_and(|broken| broken.rule == rule);
    assert!((0..500).any(breaks), "{rule:?} was not found broken");
}

#[test]
fn a_kept_lock_that_is_free_at_once_is_found() {
    assert_eq!(found(Mistake::FreedAtOnce), Rule::Kept);
}

#[test]
fn a_lock_that_is_kept_for_its_old_owner_is_found() {
    assert!(matches!(found(Mistake::KeptForItsOwner), Rule::Kept | Rule::Cancelled));
}

#[test]
fn a_replacement_in_two_steps_is_found() {
    assert!(matches!(found(Mistake::InTwoSteps), Rule::OneHolder | Rule::StoreKeeps));
}

#[test]
fn a_replacement_that_is_released_too_soon_is_found() {
    finds(Mistake::ReleasedTooSoon, Rule::StoreKeeps);
}

#[test]
fn a_replacement_that_is_asked_as_another_owner_is_found() {
    assert!(matches!(found(Mistake::AskedAsAnother), Rule::OneHolder | Rule::StoreKeeps));
}

#[test]
fn a_lease_that_two_adopt_is_found() {
    finds(Mistake::AdoptedTwice, Rule::StoreKeeps);
}

#[test]
fn a_reader_that_becomes_the_writer_beside_others_is_found() {
    assert!(matches!(found(Mistake::UpgradedBesideReaders), Rule::OneHolder | Rule::StoreKeeps));
}

#[test]
fn a_permit_too_many_is_found() {
    finds(Mistake::OneTooMany, Rule::Limit);
}

#[test]
fn a_slot_that_is_granted_twice_is_found() {
    finds(Mistake::SlotReused, Rule::Slots);
}

#[test]
fn a_latch_that_counts_twice_is_found() {
    assert_eq!(found(Mistake::CountsTwice), Rule::Latches);
}

#[test]
fn a_count_that_is_set_for_a_later_generation_is_found() {
    assert_eq!(found(Mistake::CountsAnything), Rule::Latches);
}

#[test]
fn tokens_that_fall_after_a_loss_of_data_are_found() {
    let rule = found(Mistake::TokensFall);
    assert!(matches!(rule, Rule::TokensRise | Rule::Refusals | Rule::StoreKeeps), "{rule:?}");
}

#[test]
fn a_store_that_serves_the_last_first_is_found() {
    assert_eq!(found(Mistake::LastServedFirst), Rule::Overtaken);
}

#[test]
fn readers_that_join_past_a_waiting_writer_are_found() {
    assert_eq!(found(Mistake::DeafReaders), Rule::Overtaken);
}

#[test]
fn a_lease_that_ends_early_is_found() {
    let rule = found(Mistake::EndedEarly);
    assert!(matches!(rule, Rule::StoreKeeps | Rule::OneHolder | Rule::Limit | Rule::Kept), "{rule:?}");
}

#[test]
fn a_lease_that_never_ends_is_found() {
    assert!(matches!(found(Mistake::NeverEnded), Rule::Everybody | Rule::Outliving));
}
