//! Scenarios of one station: acquiring, waiting, holding, losing, giving up.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, error, holding, join, millis, none, rig, somebody, stranger, told_in_order, ttl};
use crate::{
    Answer, Effect, ErrorKind, LossReason, Mode, ModeKind, Note, Patience, Released, Renewed, RequestOrder, Terms,
    Waiting,
};

#[test]
fn a_lock_is_acquired_and_released() {
    let mut rig = rig();
    assert_eq!(rig.join(1), ["run #1: acquire o1"]);
    rig.pass(millis(5));
    // 30 s from the request, minus 1 % and 2 ms.
    let admission = ["start renewal o1: 30000ms, asked 5ms ago", "admit 1: token 7, valid for 29693ms"];
    assert_eq!(rig.grant(7, 7), admission);
    assert!(!rig.station.is_idle());
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1"]);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
    assert!(rig.station.is_idle());
    assert_eq!(rig.station.next_wake(), None);
}

#[test]
fn a_release_answered_not_held_reports_an_earlier_loss() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    assert_eq!(rig.release(Ok(Released::NotHeld)), ["ended 1: lost before, not held"]);
}

/// The others of several servers may still keep others out, which the end of the holder's work needs.
#[test]
fn a_lease_that_a_majority_denies_is_not_released() {
    let mut several = told_in_order();
    several.store = several.store.with_several_copies();
    for (policy, released) in [(several, None), (told_in_order(), Some("run #2: release o1"))] {
        let mut rig = holding(policy, 7, 7, 0);
        let lost: Vec<_> = ["lose 1: not held", "stop renewal o1"].into_iter().chain(released).collect();
        assert_eq!(rig.renewal(rig.now, Ok(Renewed::NotHeld)), lost);
        assert_eq!(rig.leave(1), none());
        // One that was held to its end is released: its work had to end before.
        let mut rig = holding(policy, 7, 7, 0);
        rig.pass(rig.station.next_wake().unwrap().since(rig.now));
        assert_eq!(rig.wake(), ["lose 1: expired", "stop renewal o1", "run #2: release o1"]);
    }
}

#[test]
fn a_stale_grant_is_asked_for_again_under_the_same_owner() {
    let mut rig = rig();
    rig.join(1);
    rig.pass(Duration::from_secs(20));
    assert_eq!(rig.grant(7, 7), none());
    assert_eq!(rig.wake(), ["run #2: acquire o1"]);
    assert_eq!(rig.grant(7, 7), ["start renewal o1: 30000ms, asked 0ms ago", "admit 1: token 7, valid for 29698ms"]);
}

#[test]
fn a_grant_that_arrives_after_its_end_admits_nobody() {
    let mut rig = rig();
    rig.join(1);
    rig.pass(Duration::from_secs(31));
    assert_eq!(rig.grant(7, 7), none());
}

#[test]
fn the_end_of_the_lease_comes_before_a_renewal_at_the_same_instant() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let end = rig.station.next_wake().unwrap();
    rig.pass(end.since(rig.now));
    let lost = ["lose 1: expired", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false })), lost);
}

#[test]
fn a_renewal_counts_from_its_request_and_never_shortens() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let start = rig.now;
    rig.pass(millis(10_000));
    assert_eq!(
        rig.renewal(start + millis(9_000), Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false })),
        none()
    );
    assert_eq!(rig.state(), "Held by 1 as o1, token 7, for 28698ms");
    rig.renewal(start, Ok(Renewed::Renewed { valid_for: Duration::from_secs(1), wanted: false }));
    assert_eq!(rig.state(), "Held by 1 as o1, token 7, for 28698ms");
    rig.renewal(start, Err(error(ErrorKind::Unreachable, Effect::None)));
    assert_eq!(rig.wake()[0], "lose 1: expired, renewal failed");
}

#[test]
fn a_lease_of_which_the_store_cannot_tell_is_lost_with_the_reason() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.pass(millis(10_000));
    let unsure = Renewed::Unsure(error(ErrorKind::Unreachable, Effect::None));
    assert_eq!(rig.renewal(rig.now, Ok(unsure)), none());
    assert_eq!(rig.wake()[0], "lose 1: expired, renewal failed");
}

#[test]
fn without_a_queue_a_claim_of_unknown_outcome_is_released_and_the_next_one_has_another_owner() {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    let mut rig = Rig::new(policy);
    rig.join(1);
    let gone = ["run #2: release o1, claim may be in flight"];
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), gone);
    rig.release(Ok(Released::NotHeld));
    assert_eq!(rig.wake(), ["run #3: acquire o2"]);
    assert_eq!(rig.fail(ErrorKind::Unreachable, Effect::None), none(), "nothing happened: nothing to clear");
    assert_eq!(rig.wake(), ["run #4: acquire o3"]);
}

#[test]
fn a_place_is_kept_when_its_refresh_fails() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    assert_eq!(rig.fail(ErrorKind::Timeout, Effect::Unknown), none());
    assert_eq!(rig.wake(), ["run #3: acquire o1"]);
}

#[test]
fn a_waiter_that_gives_up_leaves_the_queue() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    assert_eq!(rig.leave(1), ["run #2: release o1"]);
    assert_eq!(rig.release(Ok(Released::Left)), none());
    assert!(rig.station.is_idle());
}

#[test]
fn a_grant_without_waiters_is_released() {
    let mut rig = rig();
    rig.join(1);
    assert_eq!(rig.leave(1), none());
    assert_eq!(rig.grant(7, 7), ["run #2: release o1"]);
}

#[test]
fn the_release_of_an_owner_also_frees_a_later_grant_to_it() {
    let mut rig = rig();
    rig.join(1);
    let lease = rig.lease(7, 7);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.leave(1);
    let valid_for = Duration::from_secs(10);
    let event = || Input::Event(crate::StoreEvent::Granted { lease: lease.clone(), valid_for, wanted: false });
    assert_eq!(rig.feed(event()), none(), "the release frees it");
    rig.release(Ok(Released::Released));
    assert_eq!(rig.feed(event()), none(), "the release has freed it");
}

#[test]
fn the_end_of_a_wait_comes_before_a_grant_at_the_same_instant() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, millis(100)), ..join(1) }));
    rig.pass(millis(100));
    let late = ["refuse 1: error Timeout, effect Unknown", "run #2: release o1"];
    assert_eq!(rig.grant(7, 7), late);
}

#[test]
fn a_wait_ends_on_time_and_names_the_holder() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { patience: Patience::within(rig.now, millis(100)), ..join(1) }));
    rig.queue();
    let late = ["refuse 1: timed out after 100ms, held under token 8", "run #2: release o1"];
    assert_eq!(rig.wake(), late);
}

#[test]
fn a_waiter_that_does_not_wait_gets_the_first_answer() {
    let mut rig = rig();
    let claim = ["run #1: acquire o1, no place"];
    assert_eq!(rig.feed(Input::Join(Join { patience: Patience::Never, ..join(1) })), claim);
    let busy = Answer::Busy { remaining: Some(millis(500)), holder: somebody(8, 8), drawn: None };
    assert_eq!(rig.answer(Ok(busy)), ["refuse 1: busy, held under token 8"]);
    assert!(rig.station.is_idle());
}

#[test]
fn a_hold_says_who_ended_it() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let hold = rig.hold();
    let by = Note::new("web-3", 4711, "hung").unwrap();
    let lost = ["lose 1: revoked", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.renewal(rig.now, Ok(Renewed::Revoked { by })), lost);
    let said = hold.check(rig.now).unwrap_err().to_string();
    assert!(said.ends_with("an operator ended its lease early: pid 4711 on web-3 (hung)"), "{said}");
    rig.join(2);
    rig.grant(8, 8);
    let hold = rig.hold();
    rig.feed(Input::Close);
    assert!(matches!(hold.check(rig.now).unwrap_err().reason, LossReason::Closed));
}

#[test]
fn a_hold_ends_after_max_hold_despite_renewals() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { max_hold: Some(millis(4_000)), ..join(1) }));
    assert_eq!(rig.grant(7, 7)[1], "admit 1: token 7, valid for 4000ms");
    rig.pass(millis(3_000));
    rig.renewal(rig.now, Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted: false }));
    assert_eq!(rig.state(), "Held by 1 as o1, token 7, for 1000ms");
    let lost = ["lose 1: max_hold", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.wake(), lost);
}

#[test]
fn a_store_that_forgot_its_tokens_admits_nobody() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    rig.leave(1);
    rig.join(2);
    let forgotten = ["refuse 2: the store forgot, token 7 after 7", "run #4: release o2"];
    assert_eq!(rig.grant(7, 8), forgotten);
    assert_eq!(rig.join(3), ["run #5: acquire o3, above 7"]);
    assert_eq!(rig.grant(8, 8)[1], "admit 3: token 8, valid for 29698ms");
}

#[test]
fn a_release_is_repeated_until_the_end_of_the_lease() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let left_at = rig.now;
    rig.leave(1);
    assert_eq!(
        rig.release(Err(error(ErrorKind::Unreachable, Effect::None))),
        ["ended 1: error Unreachable, effect None"]
    );
    let mut tries = 0;
    while rig.station.next_wake().is_some() && tries < 100 {
        if !rig.wake().is_empty() {
            tries += 1;
            assert_eq!(rig.release(Err(error(ErrorKind::Timeout, Effect::Unknown))), none(), "it was told once");
        }
    }
    assert!(rig.station.is_idle());
    assert!((10..=20).contains(&tries), "{tries} tries, up to five seconds apart");
    let gone_on_for = rig.now.since(left_at);
    assert!(gone_on_for > Duration::from_secs(29) && gone_on_for < Duration::from_secs(32), "{gone_on_for:?}");
}

#[test]
fn at_an_unordered_store_the_next_claim_waits_for_the_answer_to_the_release() {
    let mut policy = told_in_order();
    policy.store.ordering = RequestOrder::Unordered;
    let mut rig = holding(policy, 7, 7, 0);
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("10s")), ..join(2) }));
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1"]);
    let next = ["ended 1: released", "run #3: acquire o2, ttl 10s, above 7"];
    assert_eq!(rig.release(Ok(Released::Released)), next);
}

#[test]
fn a_foreign_holder_is_polled_often_if_its_end_is_unknown() {
    let mut policy = told_in_order();
    policy.store.waiting = Waiting::Poll;
    let mut rig = Rig::new(policy);
    rig.join(1);
    for _ in 0..20 {
        assert_eq!(
            rig.answer(Ok(Answer::Busy { remaining: None, holder: crate::Holder::Foreign, drawn: None })),
            none()
        );
        let pause = rig.station.next_wake().unwrap().since(rig.now);
        assert!(pause >= millis(5) && pause <= millis(250), "{pause:?}");
        assert_eq!(rig.wake().len(), 1);
    }
}

#[test]
fn closing_rejects_waiters_and_ends_the_hold() {
    let mut rig = holding(told_in_order(), 7, 8, 1);
    let closed = ["refuse 2: closed", "lose 1: closed", "stop renewal o1", "run #2: release o1"];
    assert_eq!(rig.feed(Input::Close), closed);
    assert_eq!(rig.join(3), ["refuse 3: closed"]);
    assert!(!rig.station.is_idle(), "the release is still in flight");
    assert_eq!(rig.release(Ok(Released::Released)), none());
    assert!(rig.station.is_idle());
}

#[test]
fn closing_releases_a_claim_that_is_in_flight() {
    let mut rig = rig();
    rig.join(1);
    let closed = ["refuse 1: closed", "run #2: release o1, claim may be in flight"];
    assert_eq!(rig.feed(Input::Close), closed);
    assert_eq!(rig.grant(7, 7), none());
}

#[test]
fn a_release_reports_an_unanswered_refresh() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.wake();
    rig.grant(9, 9);
    let gone = ["stop renewal o1", "run #4: release o1, claim may be in flight"];
    assert_eq!(rig.leave(1), gone, "the second claim may still arrive");
}

#[test]
fn a_waiter_that_gives_up_after_an_unanswered_refresh_says_so_in_its_release() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.wake();
    rig.answer(Ok(Answer::Busy { remaining: None, holder: somebody(8, 8), drawn: None }));
    assert_eq!(rig.leave(1), ["run #4: release o1, claim may be in flight"]);
}

/// The claim of one waiter also answers another one that does not wait, and does not affect the first one's place.
#[test]
fn if_the_answer_is_a_place_only_the_waiter_that_does_not_wait_is_rejected() {
    let mut rig = rig();
    rig.join(1);
    rig.feed(Input::Join(Join { patience: Patience::Never, ..join(2) }));
    assert_eq!(rig.queue(), ["refuse 2: busy, held under token 8"]);
    assert_eq!(rig.state(), "Waiting in the queue as o1, again in 3333ms; queue: 1");
    // In the queue already: the station asks again at once, for a place as before.
    let again = ["run #2: acquire o1, width 2"];
    assert_eq!(rig.feed(Input::Join(Join { patience: Patience::Never, ..join(3) })), again);
    assert_eq!(rig.queue(), ["refuse 3: busy, held under token 8"]);
    assert_eq!(rig.hand_over(9, 9)[1], "admit 1: token 9, valid for 9898ms");
}

/// A lease with a long ttl does not fit a waiter with a short one: it is released, and that waiter asks for its own.
#[test]
fn a_waiter_with_a_short_ttl_behind_one_with_a_long_one_has_its_own_turn() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("10m")), ..join(1) }));
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("2s")), ..join(2) }));
    rig.queue();
    // The place belongs to the long ttl, and is refreshed accordingly.
    assert_eq!(rig.state(), "Waiting in the queue as o1, again in 3333ms; queue: 1, 2");
    assert_eq!(rig.wake(), ["run #2: acquire o1, ttl 10m"]);
    rig.grant(9, 9);
    let handed_back = ["stop renewal o1", "run #3: release o1", "run #4: acquire o2, ttl 2s, above 9, within 333ms"];
    assert_eq!(rig.leave(1), handed_back);
    assert_eq!(rig.grant(10, 10)[1], "admit 2: token 10, valid for 1978ms");
}

#[test]
fn if_the_first_waiter_gives_up_its_place_is_released_and_the_next_one_asks_for_another() {
    let mut rig = rig();
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("10m")), ..join(1) }));
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("2s")), ..join(2) }));
    rig.queue();
    let left = ["run #2: release o1", "run #3: acquire o2, ttl 2s, within 333ms"];
    assert_eq!(rig.leave(1), left);
}

#[test]
fn a_mode_that_the_store_cannot_grant_is_rejected_without_a_request() {
    let mut policy = told_in_order();
    policy.store.modes = &[ModeKind::Exclusive];
    let permits = Mode::Permits { count: NonZeroU32::MIN, limit: NonZeroU32::MIN };
    for (turn, mode) in [(1, Mode::Shared), (2, permits)] {
        let mut rig = Rig::with_mode(policy, mode);
        let terms = Terms { mode, ..join(turn).terms };
        let [refusal] = &rig.feed(Input::Join(Join { terms, ..join(turn) }))[..] else { panic!("only a refusal") };
        assert!(refusal.contains("Unsupported"), "{refusal}");
        assert!(rig.station.is_idle());
    }
}

/// Grants for unknown owners are released elsewhere.
#[test]
fn a_station_knows_the_owners_that_ask_hold_or_are_being_released() {
    let mut rig = rig();
    rig.join(1);
    let first = rig.claimant();
    assert!(rig.station.knows(first) && !rig.station.knows(stranger()));
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    assert!(rig.station.knows(first), "it will ask again");
    rig.wake();
    rig.grant(7, 7);
    assert!(rig.station.knows(first));
    rig.leave(1);
    rig.join(2);
    assert!(rig.station.knows(first) && rig.station.knows(rig.claimant()), "that release was not answered");
    rig.release(Err(error(ErrorKind::Unreachable, Effect::Unknown)));
    assert!(rig.station.knows(first));
    rig.wake();
    rig.release(Ok(Released::Released));
    assert!(!rig.station.knows(first));
}
