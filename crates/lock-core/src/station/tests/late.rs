//! Answers and events that arrive late, at the wrong moment, or for another client.

use std::time::Duration;

use super::super::{Input, Join, Output, Reply};
use super::rig::{Rig, join, millis, none, rig, somebody, stranger, told_in_order, ttl};
use crate::{AcquireError, Answer, Effect, ErrorKind, Lease, Patience, Refusal, Released, StoreEvent, Terms, Waiting};

/// Grants the latest claim when most of the lease is over.
fn grant_late(rig: &mut Rig) -> Vec<String> {
    rig.pass(Duration::from_secs(21));
    rig.grant(7, 7)
}

#[test]
fn a_grant_to_another_client_of_the_same_store_is_left_alone() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    let lease = Lease { owner: stranger(), ..rig.lease(9, 9) };
    assert_eq!(
        rig.feed(Input::Event(StoreEvent::Granted { lease, valid_for: Duration::from_secs(10), wanted: false })),
        none()
    );
}

#[test]
fn a_release_also_frees_a_pushed_grant_that_crosses_it() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    assert_eq!(rig.leave(1), ["run #2: release o1"]);
    assert_eq!(rig.hand_over(9, 9), none());
    assert_eq!(rig.release(Ok(Released::Released)), none());
    assert!(rig.station.is_idle());
}

#[test]
fn a_pushed_grant_that_does_not_count_yet_is_asked_for() {
    let told = |rig: &mut Rig, token| {
        let lease = rig.lease(token, token);
        rig.feed(Input::Event(StoreEvent::Granted { lease, valid_for: Duration::ZERO, wanted: false }))
    };
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    assert_eq!(told(&mut rig, 9), ["run #2: acquire o1"]);
    // One that comes before the answer to a claim may be older or newer than that answer.
    assert_eq!(told(&mut rig, 9), none());
    assert_eq!(rig.queue(), ["run #3: acquire o1"]);
    assert_eq!(rig.grant(9, 9)[1], "admit 1: token 9, valid for 29698ms");
}

#[test]
fn a_pushed_grant_for_an_abandoned_claim_is_released() {
    let mut rig = rig();
    rig.join(1);
    rig.leave(1);
    assert_eq!(rig.hand_over(9, 9), ["run #2: release o1, claim may be in flight"]);
}

#[test]
fn a_store_that_is_too_slow_for_the_ttl_is_asked_three_times_and_then_after_a_pause() {
    let mut rig = rig();
    rig.join(1);
    for claim in ["#2", "#3"] {
        assert_eq!(grant_late(&mut rig), none());
        assert_eq!(rig.wake(), [format!("run {claim}: acquire o1")]);
    }
    assert_eq!(grant_late(&mut rig), ["run #4: release o1"]);
    rig.release(Ok(Released::Released));
    assert!(rig.station.next_wake().unwrap().since(rig.now) >= millis(25));
    assert_eq!(rig.wake(), ["run #5: acquire o2"]);
    assert_eq!(rig.grant(8, 8)[1], "admit 1: token 8, valid for 29698ms");
}

/// A store is too slow only after several stale grants in a row. Here a timely answer is between them.
#[test]
fn a_negative_answer_between_stale_grants_restarts_the_count() {
    let mut rig = rig();
    rig.join(1);
    assert_eq!(grant_late(&mut rig), none());
    rig.wake();
    assert_eq!(rig.queue(), none());
    for claim in ["#3", "#4"] {
        rig.wake();
        assert_eq!(grant_late(&mut rig), none(), "{claim} is asked again under the same owner");
    }
    rig.wake();
    assert_eq!(grant_late(&mut rig), ["run #6: release o1"], "the third in a row");
}

/// A quorum stores only the highest token. With a wider claim, the tokens of this lease would overlap an earlier one's.
#[test]
fn a_stale_lease_is_asked_for_with_the_width_it_has() {
    let mut rig = rig();
    rig.join(1);
    assert_eq!(grant_late(&mut rig), none());
    rig.join(2);
    assert_eq!(rig.wake(), ["run #2: acquire o1"]);
}

/// The store may keep a lease that no client uses. It is released, and the effect of the error is unknown.
#[test]
fn the_error_of_a_store_that_is_too_slow_has_unknown_effect_and_a_remedy() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::Never, ..join(1) }));
    grant_late(&mut rig);
    rig.wake();
    rig.pass(Duration::from_secs(21));
    let lease = rig.lease(7, 7);
    let reply = Reply::Acquire(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(30), wanted: false }));
    let outputs = rig.station.handle_input(rig.now, Input::Reply(rig.claim_id(), reply));
    let [Output::Refuse { refusal: Refusal::Error(AcquireError::Backend(error)), .. }, Output::Run(_)] = &outputs[..]
    else {
        panic!("{outputs:?}")
    };
    assert_eq!((error.kind(), error.effect()), (ErrorKind::Timeout, Effect::Unknown));
    assert_eq!(error.to_string(), "backend acquire: the store answers too slowly for a ttl of 30s; use a longer ttl");
}

#[test]
fn a_wait_for_a_store_that_is_too_slow_ends_with_that_error() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, Duration::from_secs(63)), ..join(1) }));
    for _ in 0..2 {
        grant_late(&mut rig);
        rig.wake();
    }
    rig.pass(millis(20_900));
    rig.grant(7, 7);
    rig.pass(millis(100));
    assert_eq!(rig.feed(Input::Tick), ["refuse 1: error Timeout, effect Unknown"]);
}

#[test]
fn a_waiter_that_does_not_wait_is_rejected_after_the_second_stale_grant() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::Never, ..join(1) }));
    assert_eq!(grant_late(&mut rig), none());
    rig.wake();
    let refused = ["refuse 1: error Timeout, effect Unknown", "run #3: release o1"];
    assert_eq!(grant_late(&mut rig), refused);
}

#[test]
fn a_hint_that_overtakes_a_negative_answer_is_not_lost() {
    for hint in [StoreEvent::RecheckAll, StoreEvent::Freed { name: "a".parse().unwrap() }] {
        let mut policy = told_in_order();
        for waiting in [Waiting::QueueWithPush, Waiting::Poll] {
            policy.store.waiting = waiting;
            let mut rig = Rig::new(policy);
            rig.join(1);
            rig.feed(Input::Event(hint.clone()));
            match waiting {
                Waiting::Poll => rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8), drawn: None })),
                Waiting::Queue | Waiting::QueueWithPush => rig.queue(),
            };
            assert!(rig.station.next_wake().unwrap().since(rig.now) <= millis(5));
            assert_eq!(rig.wake().len(), 1, "it is asked again");
            rig.queue();
            assert!(rig.station.next_wake().unwrap().since(rig.now) > millis(5), "once");
        }
    }
}

#[test]
fn a_grant_with_another_ttl_is_refused_and_not_asked_for_again() {
    let mut rig = rig();
    rig.join(1);
    let lease = Lease { terms: Terms::exclusive(ttl("20s")), ..rig.lease(7, 7) };
    let refused = ["refuse 1: error Protocol, effect Unknown", "run #2: release o1, claim may be in flight"];
    assert_eq!(rig.answer(Ok(Answer::Granted { lease, valid_for: Duration::from_secs(20), wanted: false })), refused);
}

/// After the store said busy, an unanswered claim arrives and takes a place. The place is handed the lock before the next
/// claim.
#[test]
fn a_transfer_to_a_late_claim_does_not_count_from_the_claim_after_it() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.wake();
    let answered = rig.now;
    rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8), drawn: None }));
    rig.pass(millis(1_000));
    rig.wake();
    rig.hand_over(9, 9);
    assert!(rig.hold().valid_until() <= answered + Duration::from_secs(10));
}

#[test]
fn the_longest_possible_durations_are_accepted() {
    let mut rig = rig();
    rig.join(1);
    assert_eq!(
        rig.answer(Ok(Answer::Busy { remaining: Some(Duration::MAX), holder: somebody(8, 8), drawn: None })),
        none()
    );
}

#[test]
fn a_hold_whose_guard_has_seen_its_end_is_not_renewed() {
    let mut rig = rig();
    rig.join(1);
    rig.grant(7, 7);
    let hold = rig.hold();
    assert!(hold.check(hold.valid_until()).is_err());
    let lost = ["lose 1: expired", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.feed(Input::Tick), none(), "the station's clock says that it still holds");
    rig.pass(millis(1));
    assert_eq!(rig.renewed(false), lost);
}

#[test]
fn the_end_of_an_unanswered_wait_names_the_store_and_the_lock() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, Duration::from_secs(1)), ..join(1) }));
    rig.pass(Duration::from_secs(1));
    let outputs = rig.station.handle_input(rig.now, Input::Tick);
    let [Output::Refuse { refusal: Refusal::Error(error), .. }, Output::Run(_)] = &outputs[..] else {
        panic!("nobody is refused, or nothing is released")
    };
    let name = rig.station.name().to_string();
    let expected = format!(
        "test acquire: the store did not answer the request for the lock \"{name}\" within 1s; check that the store is \
         running and reachable, or wait for longer"
    );
    assert_eq!(error.to_string(), expected);
}
