//! A store that may have forgotten leases: what a release says of its hold, and a store that says when it will grant again.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, error, holding, join, millis, none, told_in_order};
use crate::{Effect, ErrorKind, Evidence, OnUnavailable, Renewed};

/// What the pending release says of the hold.
fn evidence(rig: &Rig) -> Evidence {
    let Some(pending) = rig.station.releases.0.first() else { panic!("there is one release") };
    pending.request.evidence
}

#[test]
fn the_first_release_of_a_valid_hold_says_so_and_its_repeats_do_not() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    assert_eq!(evidence(&rig), Evidence::ValidHold);
    rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown)));
    rig.wake();
    assert_eq!(evidence(&rig), Evidence::Nothing);
}

#[test]
fn a_hold_that_is_lost_proves_nothing() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.pass(Duration::from_secs(30));
    rig.feed(Input::Tick);
    assert_eq!(evidence(&rig), Evidence::Nothing, "it has expired");
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.renewal(rig.now, Ok(Renewed::NotHeld));
    assert_eq!(evidence(&rig), Evidence::Nothing, "the store does not know it");
}

#[test]
fn a_claim_that_nobody_wants_any_more_proves_nothing() {
    let mut rig = Rig::new(told_in_order());
    rig.join(1);
    rig.queue();
    rig.leave(1);
    assert_eq!(evidence(&rig), Evidence::Nothing);
}

#[test]
fn a_store_that_says_when_it_will_grant_again_is_waited_for() {
    let mut rig = Rig::new(told_in_order());
    rig.feed(Input::Join(Join { on_unavailable: OnUnavailable::Fail, ..join(1) }));
    for left in (1..30).rev() {
        let refusal = error(ErrorKind::Unavailable, Effect::None).with_end(Duration::from_secs(left));
        assert_eq!(rig.answer(Err(refusal)), none(), "{left} s are left");
        rig.pass(millis(1_000));
        rig.wake();
    }
    assert!(rig.grant(7, 9).iter().any(|output| output.starts_with("admit 1: token 7")));
}

/// A store that forgot the adoption may let the ticket be adopted again.
#[test]
fn an_adopted_lease_proves_nothing() {
    let mut rig = Rig::new(told_in_order());
    rig.adopt(join(1), 8);
    rig.grant(9, 9);
    rig.leave(1);
    assert_eq!(evidence(&rig), Evidence::Nothing);
}

/// The store has one of the two leases.
#[test]
fn a_hold_that_ends_before_its_replacement_is_answered_proves_nothing() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.replace(1, "60s");
    rig.leave(1);
    let pending: Vec<_> = rig.station.releases.0.iter().map(|pending| pending.request.evidence).collect();
    assert_eq!(pending, [Evidence::Nothing; 2]);
}
