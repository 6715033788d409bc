//! Releases and claims that have no answer because nobody polls what sends them.

use super::super::{Action, Input, Leaving, Request, TurnId};
use super::rig::{Rig, all_modes, detached, holding, join, keep, millis, none, told_in_order};
use crate::{Effect, ErrorKind, Evidence, Mode, Moment, Policy, ReleaseRequest, Released, Waiting};

/// The releases that have had no answer for a tenth of a second, and since when the first other one has had none.
fn stalled(rig: &mut Rig, awaited: Option<TurnId>) -> (Vec<Action>, Option<Moment>) {
    rig.station.stalled_releases(rig.now, millis(100), |turn| awaited == Some(turn))
}

fn only_release((actions, _): (Vec<Action>, Option<Moment>)) -> ReleaseRequest {
    match &actions[..] {
        [Action { request: Request::Release(release), .. }] => release.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_release_without_an_answer_is_sent_another_way_once() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    let left_at = rig.now;
    rig.pass(millis(99));
    assert!(matches!(stalled(&mut rig, None), (none, Some(since)) if none.is_empty() && since == left_at));
    rig.pass(millis(1));
    let release = only_release(stalled(&mut rig, None));
    assert_eq!(release.evidence, Evidence::Nothing, "the lease may have expired meanwhile");
    assert!(matches!(stalled(&mut rig, None), (none, None) if none.is_empty()));
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
    assert_eq!(rig.release(Ok(Released::NotHeld)), [""; 0], "the second answer");
}

#[test]
fn a_release_that_somebody_awaits_is_sent_once() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    rig.pass(millis(500));
    assert!(matches!(stalled(&mut rig, Some(TurnId(1))), (none, None) if none.is_empty()));
    only_release(stalled(&mut rig, None));
}

#[test]
fn an_abandoned_place_is_released_another_way_as_well() {
    let mut rig = Rig::new(told_in_order());
    rig.join(1);
    rig.queue();
    rig.leave(1);
    rig.pass(millis(100));
    only_release(stalled(&mut rig, None));
}

/// What is sent later keeps the lock for less time, so that it is free at the same moment.
#[test]
fn a_stalled_release_keeps_the_lock_for_the_remaining_time() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.feed(Input::Leave(Leaving { turn: TurnId(1), keep: keep(millis(1_500)) }));
    rig.pass(millis(500));
    let release = only_release(stalled(&mut rig, None));
    assert_eq!(release.keep, Some(millis(1_000)));
}

/// A release that may overtake the claim of the first owner, sent as this action.
fn parts(action: u64) -> [String; 1] {
    [format!("run #{action}: release o1, claim may be in flight")]
}

/// A station whose claim was abandoned, which it parts from by now.
fn parted(policy: Policy) -> Rig {
    let mut rig = Rig::new(policy);
    rig.join(1);
    assert_eq!(rig.leave(1), none());
    let left_at = rig.now;
    assert_eq!(rig.wake(), parts(2));
    assert_eq!(rig.now, left_at + millis(100));
    rig
}

#[test]
fn an_abandoned_claim_without_an_answer_is_parted_from_after_a_tenth_of_a_second() {
    let mut rig = parted(told_in_order());
    assert_eq!(rig.join(2), ["run #3: acquire o2"]);
    rig.pass(millis(100));
    assert_eq!(only_release(stalled(&mut rig, None)).owner, rig.about(1).claimant());
    assert_eq!(rig.about(1).grant(7, 7), none(), "the release frees it");
    assert_eq!(rig.release(Ok(Released::Released)), none());
    assert_eq!(rig.about(3).grant(8, 8)[1], "admit 2: token 8, valid for 29598ms");
}

/// A task may compute for longer than the store refuses late claims, and its claim be sent after that.
#[test]
fn a_claim_that_the_store_answers_after_its_release_leaves_nothing_there() {
    let unknown = |rig: &mut Rig| rig.fail(ErrorKind::Timeout, Effect::Unknown);
    let again = [
        (", claim may be in flight", unknown as fn(&mut Rig) -> Vec<String>),
        ("", |rig| rig.grant(7, 7)),
        ("", Rig::queue),
    ];
    for (certainty, answer) in again {
        let mut rig = parted(told_in_order());
        rig.release(Ok(Released::NotHeld));
        assert!(rig.station.is_idle());
        assert_eq!(answer(&mut rig), [format!("run #3: release o1{certainty}")]);
    }
    for nothing in [Rig::be_busy, |rig: &mut Rig| rig.fail(ErrorKind::Unreachable, Effect::None)] {
        let mut rig = parted(told_in_order());
        rig.release(Ok(Released::NotHeld));
        assert_eq!(nothing(&mut rig), none());
    }
}

#[test]
fn one_that_was_answered_or_is_wanted_again_is_not() {
    for wants in [Rig::be_busy, |rig: &mut Rig| rig.join(2)] {
        let mut rig = Rig::new(told_in_order());
        rig.join(1);
        rig.leave(1);
        wants(&mut rig);
        rig.pass(millis(100));
        assert_eq!(rig.feed(Input::Tick), none());
    }
}

#[test]
fn where_the_store_has_no_queue_the_next_claim_waits_for_the_release() {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    let mut rig = parted(policy);
    assert_eq!(rig.join(2), none());
    let claim = "run #3: acquire o2";
    assert_eq!(rig.release(Ok(Released::NotHeld)), [claim]);
}

/// The claim was for the front waiter, and the second one wants something else.
#[test]
fn whoever_wants_other_terms_asks_once_the_claim_is_parted_from() {
    let mut rig = Rig::new(told_in_order());
    rig.join(1);
    rig.read(2);
    assert_eq!(rig.leave(1), none());
    let outputs = rig.wake();
    assert_eq!(outputs[..1], parts(2));
    assert_eq!(outputs[1], "run #3: acquire o2, shared");
}

#[test]
fn each_abandoned_claim_for_permits_is_parted_from() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 2).unwrap());
    rig.join(1);
    rig.join(2);
    rig.leave(1);
    assert_eq!(rig.wake(), parts(3));
    assert_eq!(rig.about(2).grant_slots(7, [0])[1], "admit 2: token 7, valid for 29598ms");
}

/// The lease was handed over before the claim was answered. Nobody waits for it to be passed on.
#[test]
fn a_claim_whose_owner_holds_already_is_not_parted_from() {
    let mut rig = Rig::new(told_in_order());
    rig.join(1);
    rig.queue();
    rig.join_for_one_answer(2);
    rig.cancel(2);
    rig.feed(Input::Event(crate::StoreEvent::RecheckAll));
    assert_eq!(rig.hand_over(9, 9)[1], "admit 1: token 9, valid for 9898ms");
    rig.pass(millis(200));
    assert_eq!(rig.feed(Input::Tick), none());
}

/// At most four releases are owed: with four, nothing is asked, so nothing more can be abandoned.
#[test]
fn abandoned_claims_do_not_add_up() {
    let mut rig = Rig::new(told_in_order());
    for turn in 1..=4 {
        assert_eq!(rig.join(turn).len(), 1);
        rig.leave(turn);
        assert_eq!(rig.wake().len(), 1);
    }
    assert_eq!(rig.join(5), none());
    assert_eq!(rig.station.releases.0.iter().len(), 4);
    assert_eq!(rig.release(Ok(Released::NotHeld)).len(), 1);
    assert_eq!(rig.about(7).grant(7, 7), none(), "its release would be one too many beside the claim of the fifth");
}

#[test]
fn an_abandoned_adoption_is_released_another_way() {
    let mut rig = Rig::new(told_in_order());
    rig.adopt(join(1), 7);
    let adopts = rig.claimant();
    assert_eq!(rig.leave(1), none());
    assert_eq!(rig.wake(), parts(2));
    rig.pass(millis(100));
    let release = only_release(stalled(&mut rig, None));
    assert!(release.owner == adopts && release.owner != detached());
}

#[test]
fn both_leases_of_an_abandoned_downgrade_are_released_another_way() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let old = rig.claimant();
    rig.downgrade(1);
    let new = rig.claimant();
    rig.leave(1);
    rig.pass(millis(100));
    let (actions, _) = stalled(&mut rig, None);
    let owners = actions.iter().map(|action| match &action.request {
        Request::Release(release) => release.owner,
        Request::Acquire(_) => panic!("a claim is sent once"),
    });
    assert!(owners.eq([old, new]));
}
