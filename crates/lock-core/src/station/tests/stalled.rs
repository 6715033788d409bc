//! Releases that have no answer because nobody polls what sends them.

use super::super::{Action, Input, Leaving, Request, TurnId};
use super::rig::{Rig, holding, keep, millis, told_in_order};
use crate::{Evidence, Moment, ReleaseRequest, Released};

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
