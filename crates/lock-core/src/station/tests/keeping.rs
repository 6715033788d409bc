//! A lock that is kept for a while after its last turn.

use std::time::Duration;

use super::super::{Input, Join, Leaving, TurnId};
use super::rig::{Rig, error, holding, join, keep, millis, none, told_in_order};
use crate::{Effect, ErrorKind, Patience, Released, StoreEvent};

fn lost() -> crate::BackendError {
    error(ErrorKind::Timeout, Effect::Unknown)
}

#[test]
fn a_kept_lock_is_not_passed_on_to_local_waiters() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    let asked = ["stop renewal o1", "run #2: release o1, keep for 60000ms", "run #3: acquire o2, above 7"];
    assert_eq!(rig.leave_and_keep(1), asked);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
}

#[test]
fn a_repeated_release_keeps_the_lock_for_the_remaining_time() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.feed(Input::Leave(Leaving { turn: TurnId(1), keep: keep(millis(1_500)) }));
    let end = rig.now + millis(1_500);
    rig.pass(millis(1_000));
    assert_eq!(rig.release(Err(lost())), ["ended 1: error Timeout, effect Unknown"]);
    let [again] = &rig.wake()[..] else { panic!("it is asked again") };
    let remaining = end.since(rig.now).as_millis();
    assert!(again.contains(&format!("release o1, keep for {remaining}ms")), "{again}");
    rig.pass(millis(1_000));
    rig.release(Err(lost()));
    assert_eq!(rig.wake(), ["run #4: release o1"]);
}

#[test]
fn keeping_a_lock_for_no_time_is_a_plain_release() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    let leaving = Leaving { turn: TurnId(1), keep: keep(Duration::ZERO) };
    assert_eq!(rig.feed(Input::Leave(leaving)), ["ended 1: released", "admit 2: token 8, valid for 29698ms"]);
}

#[test]
fn a_waiter_that_leaves_keeps_nothing() {
    let mut rig = Rig::new(told_in_order());
    rig.join(1);
    rig.queue();
    assert_eq!(rig.leave_and_keep(1), ["run #2: release o1"]);
}

#[test]
fn the_end_of_a_lost_hold_keeps_nothing() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.pass(Duration::from_secs(30));
    let lost = ["lose 1: expired", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.leave_and_keep(1), lost);
}

/// The next waiter gets a hint, asks, learns how long the lock is kept, and asks again at the end of that time.
#[test]
fn the_head_of_the_queue_asks_once_the_lock_is_no_longer_kept() {
    let mut rig = Rig::new(told_in_order());
    rig.feed(Input::Join(Join { patience: Patience::Forever, ..join(1) }));
    rig.queue();
    let claim = ["run #2: acquire o1"];
    assert_eq!(rig.feed(Input::Event(StoreEvent::Freed { name: "a".parse().unwrap() })), claim);
    assert_eq!(rig.queue_for(millis(700)), none());
    assert_eq!(rig.station.next_wake().unwrap().since(rig.now), millis(710));
}

/// Has the lock of the turn kept for this time, however the turn ends.
fn keep_at_least(rig: &mut Rig, turn: u64, time: Duration) {
    rig.station.keep_at_least(rig.now, TurnId(turn), keep(time).unwrap());
}

#[test]
fn a_lock_is_kept_at_least_so_long_however_its_turn_ends() {
    for input in [Input::Leave(Leaving::now(TurnId(1))), Input::Close] {
        let mut rig = holding(told_in_order(), 7, 8, 1);
        keep_at_least(&mut rig, 1, millis(5_000));
        rig.pass(millis(1_000));
        let told = rig.feed(input);
        assert!(told.iter().any(|told| told.contains("release o1, keep for 4000ms")), "{told:?}");
    }
}

#[test]
fn a_hold_that_is_lost_is_kept_at_least_so_long() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    keep_at_least(&mut rig, 1, Duration::from_secs(60));
    rig.pass(Duration::from_secs(30));
    let told = rig.feed(Input::Tick);
    assert!(told.iter().any(|told| told.contains("keep for 30000ms")), "{told:?}");
}

#[test]
fn a_turn_that_was_long_enough_is_passed_on_and_the_next_one_keeps_nothing() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    keep_at_least(&mut rig, 1, millis(500));
    rig.pass(millis(500));
    assert_eq!(rig.leave(1), ["ended 1: released", "admit 2: token 8, valid for 29198ms"]);
    assert_eq!(rig.leave(2), ["stop renewal o1", "run #2: release o1"]);
}

#[test]
fn the_last_call_on_keeping_counts() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    keep_at_least(&mut rig, 1, millis(5_000));
    keep_at_least(&mut rig, 1, Duration::ZERO);
    assert_eq!(rig.leave(1), ["ended 1: released", "admit 2: token 8, valid for 29698ms"]);
}
