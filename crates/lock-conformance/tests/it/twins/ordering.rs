//! Twins that are wrong about the order of requests. They are async: a thread waits for each answer.

use std::panic::catch_unwind;

use lock_conformance::{Absent, Facade, case, run};

use super::cover::{Breakage, Broken, NO_TIME};
use super::is_spared;

const IN_ORDER: &str = "truth::requests_for_a_lock_take_effect_in_order_as_the_capabilities_say";

pub(super) const CAUGHT: &[&str] = &[IN_ORDER];

/// A release overtakes the claim that it ends.
#[derive(Default)]
struct OvertakesClaims;

impl Breakage for OvertakesClaims {
    fn are_overtaken(&self) -> [bool; 2] {
        [true, false]
    }
}

/// A claim is sent before the release that makes the lock free for it.
#[derive(Default)]
struct OvertakesReleases;

impl Breakage for OvertakesReleases {
    fn are_overtaken(&self) -> [bool; 2] {
        [false, true]
    }
}

fn is_caught<B: Breakage>() {
    let outcome = catch_unwind(|| run::<Broken<B, NO_TIME>>(Facade::Nonblocking, case(IN_ORDER), "", &Absent::new()));
    assert!(outcome.is_err(), "the twin is not caught");
    is_spared::<B>(&["exclusion::a_second_owner_is_refused"]);
}

#[test]
fn one_whose_releases_overtake_their_claims() {
    is_caught::<OvertakesClaims>();
}

#[test]
fn one_whose_claims_overtake_releases() {
    is_caught::<OvertakesReleases>();
}
