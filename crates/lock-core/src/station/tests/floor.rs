//! The floor for tokens across the stations of one client: a store that forgot its tokens is noticed at every lock.

use super::super::{Floor, Owners, Station};
use super::rig::{Rig, SECRET, none, told_in_order};
use crate::{Counter, Effect, ErrorKind, NameKind};

/// The stations of one client.
fn stations(counter: Counter) -> [Rig; 2] {
    let (floor, mut policy) = (Floor::default(), told_in_order());
    policy.store.counter = counter;
    [0, 1].map(|_| {
        let mut rig = Rig::new(policy);
        rig.station = Station::new("a".parse().unwrap(), NameKind::Lock, policy, Owners::new(SECRET)).sharing(&floor);
        rig
    })
}

#[test]
fn with_a_shared_counter_a_token_must_be_above_those_of_other_locks() {
    let [mut one, mut other] = stations(Counter::Shared);
    one.join(1);
    one.grant(20, 22);
    assert_eq!(other.join(2), ["run #1: acquire o1, above 20"]);
    let forgotten = ["refuse 2: the store forgot, token 20 after 20", "run #2: release o1"];
    assert_eq!(other.grant(20, 20), forgotten);
}

#[test]
fn the_tokens_of_a_dropped_station_are_remembered() {
    let floor = Floor::default();
    let mut policy = told_in_order();
    policy.store.counter = Counter::Shared;
    for above in ["", ", above 7"] {
        let mut rig = Rig::new(policy);
        rig.station = Station::new("a".parse().unwrap(), NameKind::Lock, policy, Owners::new(SECRET)).sharing(&floor);
        let claim = format!("run #1: acquire o1{above}");
        assert_eq!(rig.join(1), [claim]);
        rig.grant(7, 7);
    }
}

#[test]
fn answers_for_different_locks_may_overtake_each_other() {
    let [mut one, mut other] = stations(Counter::Shared);
    other.join(2);
    one.join(1);
    one.grant(20, 20);
    assert_eq!(other.grant(15, 15)[1], "admit 2: token 15, valid for 29698ms");
}

/// The first claim may have been granted long before the second one was sent.
#[test]
fn a_repeated_claim_is_compared_with_the_floor_of_the_first() {
    let [mut one, mut other] = stations(Counter::Shared);
    other.join(2);
    one.join(1);
    one.grant(20, 20);
    assert_eq!(other.fail(ErrorKind::Timeout, Effect::Unknown), none());
    assert_eq!(other.wake(), ["run #2: acquire o1"]);
    assert_eq!(other.grant(15, 15)[1], "admit 2: token 15, valid for 29698ms");
}

#[test]
fn locks_with_separate_counters_do_not_affect_each_other() {
    let [mut one, mut other] = stations(Counter::PerName);
    one.join(1);
    one.grant(20, 20);
    other.join(2);
    assert_eq!(other.grant(1, 1)[1], "admit 2: token 1, valid for 29698ms");
}
