//! Edge cases: a waiter's last moment, an answer with no time left, a count that is off by one.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::few::Few;
use super::super::{Event, Input, Join};
use super::rig::{Rig, error, holding, join, millis, none, rig, somebody, told_in_order};
use crate::{
    Answer, Effect, ErrorKind, Lease, LossReason, Patience, Policy, Released, RequestOrder, StoreEvent, Waiting,
};

fn unordered() -> Policy {
    let mut policy = told_in_order();
    policy.store.ordering = RequestOrder::Unordered;
    policy
}

fn polled() -> Policy {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    policy
}

/// A waiter that waits for this long.
fn join_for(rig: &mut Rig, turn: u8, wait: Duration) -> Vec<String> {
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, wait), ..join(turn) }))
}

fn busy(rig: &mut Rig) -> Vec<String> {
    rig.answer(Ok(Answer::Busy { remaining: Some(Duration::from_secs(20)), holder: somebody(8, 8), drawn: None }))
}

#[test]
fn a_place_without_time_left_is_not_asked_about_at_once() {
    let mut rig = rig();
    rig.join(1);
    let (position, remaining) = (1, Some(Duration::ZERO));
    let answer = Answer::Queued { position, remaining, valid_for: Duration::ZERO, holder: somebody(8, 8), drawn: None };
    assert_eq!(rig.answer(Ok(answer)), none());
    assert_eq!(rig.station.next_wake().unwrap().since(rig.now), millis(5));
}

#[test]
fn events_about_another_lock_are_ignored() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    let wake = rig.station.next_wake();
    let lease = Lease { name: "b".parse().unwrap(), ..rig.lease(9, 9) };
    assert_eq!(
        rig.feed(Input::Event(StoreEvent::Granted { lease, valid_for: Duration::from_secs(10), wanted: false })),
        none()
    );
    assert_eq!(rig.feed(Input::Event(StoreEvent::Freed { name: "b".parse().unwrap() })), none());
    assert_eq!(rig.station.next_wake(), wake);
}

/// The release of the last holder fails, and the store does not answer the next claim at all.
#[test]
fn a_wait_that_times_out_reports_the_failed_release() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
    join_for(&mut rig, 2, millis(10));
    rig.pass(millis(10));
    assert_eq!(rig.feed(Input::Tick)[0], "refuse 2: error Unreachable, effect None");
}

/// The same, but the store answers the claim.
#[test]
fn a_wait_that_times_out_reports_the_holder_rather_than_a_failed_release() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
    join_for(&mut rig, 2, millis(10));
    rig.queue();
    rig.pass(millis(10));
    assert_eq!(rig.feed(Input::Tick)[0], "refuse 2: timed out after 10ms, held under token 8");
}

/// Without a queue, each attempt has another owner. What the store said about the holder is kept.
#[test]
fn the_holder_is_remembered_over_an_error() {
    let mut rig = Rig::new(polled());
    join_for(&mut rig, 1, Duration::from_secs(40));
    busy(&mut rig);
    rig.wake();
    rig.fail(ErrorKind::Unreachable, Effect::None);
    rig.wake();
    rig.pass(Duration::from_secs(21));
    assert_eq!(rig.grant(9, 9), none(), "too late to rely on");
    rig.pass(Duration::from_secs(40));
    let refused = rig.feed(Input::Tick).swap_remove(0);
    assert!(refused.starts_with("refuse 1: timed out after") && refused.ends_with("held under token 8"), "{refused}");
}

#[test]
fn a_release_is_not_repeated_after_the_end_of_the_lease() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    // One second for the claim in flight, then the ttl and its drift.
    let over = rig.now + millis(1_000 + 30_000 + 302);
    while rig.now < over {
        rig.release(Err(error(ErrorKind::Unreachable, Effect::None)));
        rig.wake();
    }
    assert_eq!(rig.now, over);
    assert!(rig.station.is_idle());
}

/// The next claim has to wait for a release, so waiters that do not wait are in the queue, too.
fn claim_after(joins: &[Join], leaving: &[u8]) -> String {
    let mut rig = holding(unordered(), 7, 7, 0);
    rig.leave(1);
    for join in joins {
        assert_eq!(rig.feed(Input::Join(join.clone())), none());
    }
    for turn in leaving {
        assert_eq!(rig.leave(*turn), none());
    }
    rig.release(Ok(Released::Released)).pop().unwrap()
}

#[test]
fn a_place_is_requested_only_for_a_waiter() {
    let impatient = |turn| Join { patience: Patience::Never, ..join(turn) };
    let mixed = [join(2), impatient(3), impatient(4), impatient(5), join(6)];
    for (leaving, wanted) in [(&[2][..], true), (&[6], true), (&[4], true), (&[2, 6], false), (&[6, 4, 2], false)] {
        let claim = claim_after(&mixed, leaving);
        assert_eq!(claim.contains("no place"), !wanted, "{leaving:?} left: {claim}");
    }
}

/// A waiter that waits for this many answers of the store.
fn join_for_answers(rig: &mut Rig, turn: u8, max_requests: u32) -> Vec<String> {
    rig.feed(Input::Join(Join { max_requests: NonZeroU32::new(max_requests), ..join(turn) }))
}

#[test]
fn the_last_attempt_ends_like_a_wait_and_other_waiters_stay() {
    let mut rig = rig();
    join_for_answers(&mut rig, 1, 2);
    assert_eq!(rig.queue(), none());
    rig.join(2);
    rig.wake();
    let first = rig.queue();
    assert!(
        first[0].starts_with("refuse 1: timed out after ") && first[0].ends_with(", held under token 8"),
        "{first:?}"
    );
    assert_eq!(first.len(), 1, "the other one needs the place");
    join_for_answers(&mut rig, 3, 1);
    rig.wake();
    assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), ["refuse 3: error Unreachable, effect None"]);
    assert_eq!(rig.leave(2), ["run #4: release o1"]);
}

#[test]
fn neither_a_local_turn_nor_a_stale_grant_counts_as_an_attempt() {
    let mut rig = holding(told_in_order(), 7, 9, 0);
    join_for_answers(&mut rig, 2, 1);
    join_for_answers(&mut rig, 3, 1);
    assert_eq!(rig.leave(1)[1], "admit 2: token 8, valid for 29698ms");
    assert_eq!(rig.leave(2)[1], "admit 3: token 9, valid for 29698ms");
    let mut rig = self::rig();
    join_for_answers(&mut rig, 1, 1);
    rig.pass(Duration::from_secs(25));
    assert_eq!(rig.grant(7, 7), none());
    rig.wake();
    assert_eq!(rig.grant(7, 7)[1], "admit 1: token 7, valid for 29698ms");
}

/// Whatever a panic has left of the station.
#[test]
fn the_hold_of_a_turn_that_the_station_drops_is_lost_unless_it_has_ended() {
    let kept = |drive: fn(&mut Rig)| {
        let mut rig = holding(told_in_order(), 7, 8, 0);
        let hold = rig.hold();
        drive(&mut rig);
        rig.station.break_off();
        (hold.lost().map(|lost| lost.reason), hold.latest().lost().is_some())
    };
    assert_eq!(kept(|_| {}), (Some(LossReason::Closed), true));
    assert_eq!(kept(|rig| _ = rig.leave(1)), (None, false));
    let replace = |rig: &mut Rig| {
        rig.replace(1, "60s");
        rig.grant(9, 9);
    };
    assert_eq!(kept(replace), (None, true), "it went on under another one, which is lost");
}

/// A panic may have come while the lease was taken out of the station.
#[test]
fn a_hold_whose_lease_is_not_there_any_more_is_reported_as_lost() {
    let mut rig = rig();
    rig.station.observed = Some(Box::default());
    rig.join(1);
    rig.grant(7, 7);
    rig.station.take_events();
    rig.station.leases = Few::default();
    rig.station.break_off();
    let events = rig.station.take_events();
    assert!(matches!(events.as_slice(), [(None, Event::Lost { reason: LossReason::Closed, .. })]), "{events:?}");
}
