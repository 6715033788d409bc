//! Leases that change hands: handed over by the store, or passed on from one local waiter to the next.

use std::time::Duration;

use super::super::{Input, Join};
use super::rig::{Rig, holding, join, millis, none, rig, somebody, told_in_order, ttl};
use crate::{Answer, FencingToken, Holder, Renewed, StoreEvent, Terms};

#[test]
fn a_waiter_queues_and_the_lock_is_handed_to_it() {
    let mut rig = rig();
    rig.join(1);
    assert_eq!(rig.queue(), none());
    assert_eq!(rig.state(), "Waiting in the queue as o1, again in 3333ms; queue: 1");
    rig.pass(millis(1_000));
    assert_eq!(
        rig.hand_over(9, 9),
        ["start renewal o1: 10000ms, asked 1000ms ago", "admit 1: token 9, valid for 8898ms"]
    );
    assert_eq!(rig.hand_over(9, 9), none(), "news that come twice change nothing");
}

#[test]
fn an_event_may_overtake_the_answer() {
    let mut rig = rig();
    rig.join(1);
    rig.pass(millis(2));
    assert_eq!(rig.hand_over(9, 9), ["start renewal o1: 10000ms, asked 2ms ago", "admit 1: token 9, valid for 9896ms"]);
    assert_eq!(rig.state(), "Held by 1 as o1, token 9, for 9896ms; Asking outside as o1, claim #1");
    assert_eq!(rig.queue(), none());
    assert_eq!(rig.state(), "Held by 1 as o1, token 9, for 9896ms");
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1"]);
}

#[test]
fn a_release_says_that_a_claim_is_still_in_flight() {
    let mut rig = rig();
    rig.join(1);
    rig.hand_over(9, 9);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #2: release o1, claim may be in flight"]);
}

#[test]
fn an_overtaken_grant_extends_the_hold() {
    let mut rig = rig();
    rig.join(1);
    rig.pass(millis(2));
    rig.hand_over(9, 9);
    assert_eq!(rig.grant(9, 9), none());
    assert_eq!(rig.state(), "Held by 1 as o1, token 9, for 29696ms");
}

#[test]
fn a_transfer_counts_from_the_latest_answered_request() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    rig.queue();
    rig.pass(millis(500));
    let admission = ["start renewal o1: 10000ms, asked 500ms ago", "admit 1: token 9, valid for 9398ms"];
    assert_eq!(rig.hand_over(9, 9), admission, "the second request was answered");
}

#[test]
fn a_transfer_does_not_count_from_an_unanswered_request() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.wake();
    rig.pass(millis(500));
    assert_eq!(
        rig.hand_over(9, 9),
        ["start renewal o1: 10000ms, asked 3833ms ago", "admit 1: token 9, valid for 6064ms"]
    );
}

#[test]
fn a_transfer_with_little_left_is_asked_for_again_before_anybody_is_admitted() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.pass(millis(6_600));
    rig.feed(Input::Tick);
    assert_eq!(rig.hand_over(9, 9), none());
    assert_eq!(rig.state(), "Asking in the queue as o1, claim #2, granted meanwhile or before; queue: 1");
    assert_eq!(rig.grant(9, 9), ["start renewal o1: 30000ms, asked 0ms ago", "admit 1: token 9, valid for 29698ms"]);
}

#[test]
fn a_claim_is_as_wide_as_the_queue_and_the_lease_passes_along_it_with_rising_tokens() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.join(2);
    rig.join(3);
    assert_eq!(rig.wake(), ["run #2: acquire o1, width 3"]);
    rig.grant(10, 12);
    assert_eq!(rig.leave(1), ["ended 1: released", "admit 2: token 11, valid for 29698ms"]);
    assert_eq!(rig.leave(2), ["ended 2: released", "admit 3: token 12, valid for 29698ms"]);
    assert_eq!(rig.join(4), none());
    let handed_back = ["stop renewal o1", "run #3: release o1", "run #4: acquire o2, above 12"];
    assert_eq!(rig.leave(3), handed_back, "the tokens are used up");
}

#[test]
fn a_lease_handed_over_for_a_place_is_passed_on_while_half_of_that_is_left() {
    for (held_for, passed_on) in [(4_000, true), (5_000, false)] {
        let mut rig = rig();
        rig.join(1);
        rig.join(2);
        rig.queue();
        rig.hand_over(9, 10);
        rig.pass(millis(held_for));
        let after = rig.leave(1).join(", ");
        assert_eq!(after.contains("admit 2: token 10"), passed_on, "{after}");
    }
}

#[test]
fn the_width_is_bounded_by_the_chain_and_by_the_widest_range() {
    let width = |chain: u32| {
        let mut policy = told_in_order();
        policy.chain = chain;
        let mut rig = Rig::new(policy);
        for turn in 1..=100 {
            rig.join(turn);
        }
        rig.queue();
        let [claim] = <[String; 1]>::try_from(rig.wake()).unwrap();
        claim.split(", ").find_map(|part| part.strip_prefix("width ").map(str::to_owned)).unwrap_or("1".to_owned())
    };
    assert_eq!([width(0), width(2), width(1_000)], ["1", "3", "64"]);
}

#[test]
fn the_local_chain_is_bounded() {
    let mut policy = told_in_order();
    policy.chain = 2;
    let mut rig = holding(policy, 10, 20, 4);
    assert_eq!(rig.leave(1)[1], "admit 2: token 11, valid for 29698ms");
    assert_eq!(rig.leave(2)[1], "admit 3: token 12, valid for 29698ms");
    assert_eq!(rig.leave(3)[0], "stop renewal o1", "two hand-overs, though tokens and waiters are left");
}

#[test]
fn the_lease_is_passed_on_with_half_of_its_ttl_left_and_not_with_less() {
    let left_after = |passed: u64| {
        let mut rig = holding(told_in_order(), 10, 12, 1);
        rig.pass(millis(passed));
        rig.leave(1).remove(0)
    };
    assert_eq!(left_after(14_698), "ended 1: released");
    assert_eq!(left_after(14_699), "stop renewal o1");
}

/// First come, first served: a waiter does not pass one with another ttl, and gets the next lease.
#[test]
fn a_waiter_with_another_ttl_ends_the_chain_and_is_not_passed() {
    let mut rig = holding(told_in_order(), 10, 12, 0);
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("10s")), ..join(2) }));
    rig.join(3);
    let next = ["stop renewal o1", "run #2: release o1", "run #3: acquire o2, ttl 10s, above 10"];
    assert_eq!(rig.leave(1), next);
    assert_eq!(rig.grant(13, 13)[1], "admit 2: token 13, valid for 9898ms");
    let last = ["stop renewal o2", "run #4: release o2", "run #5: acquire o3, above 13"];
    assert_eq!(rig.leave(2), last);
}

/// The attempt was for the waiter that left. Its grant is released, and the next waiter asks under its own terms.
#[test]
fn a_grant_with_other_terms_than_the_next_waiter_wants_is_released() {
    let mut rig = rig();
    rig.join(1);
    rig.feed(Input::Join(Join { terms: Terms::exclusive(ttl("10s")), ..join(2) }));
    rig.join(3);
    rig.leave(1);
    let next = ["run #2: release o1", "run #3: acquire o2, ttl 10s"];
    assert_eq!(rig.grant(7, 7), next, "the third waiter would fit, and is not the next one");
}

#[test]
fn after_an_event_older_than_the_latest_answer_the_station_asks() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    let claim = ["run #2: acquire o1"];
    assert_eq!(rig.hand_over(7, 7), claim, "the store said meanwhile that token 8 holds");
    assert_eq!(rig.hand_over(7, 7), none());
    rig.queue();
    assert_eq!(rig.hand_over(9, 9)[1], "admit 1: token 9, valid for 9898ms");
}

/// In the queue behind a foreign holder, so that no token says how old a pushed grant is. The station asks again. After that
/// request, another client takes the lock and passes it on to this one, and the event arrives before the answer.
#[test]
fn an_event_that_overtakes_the_answer_counts_if_the_answer_is_older() {
    let mut rig = rig();
    rig.join(1);
    queue_behind(&mut rig, Holder::Foreign);
    rig.wake();
    rig.pass(millis(2));
    assert_eq!(rig.hand_over(9, 9), none(), "it may be over already");
    rig.pass(millis(1));
    let admission = ["start renewal o1: 10000ms, asked 3ms ago", "admit 1: token 9, valid for 9895ms"];
    assert_eq!(queue_behind(&mut rig, somebody(8, 8)), admission);
}

#[test]
fn if_the_answer_may_be_newer_than_the_event_the_station_asks_at_once() {
    for holder in [Holder::Foreign, somebody(10, 10)] {
        let mut rig = rig();
        rig.join(1);
        queue_behind(&mut rig, Holder::Foreign);
        rig.wake();
        rig.hand_over(9, 9);
        let claim = ["run #3: acquire o1"];
        assert_eq!(queue_behind(&mut rig, holder), claim);
    }
}

#[test]
fn of_several_events_that_overtake_the_answer_the_newest_counts() {
    for order in [[7, 9], [9, 7]] {
        let mut rig = rig();
        rig.join(1);
        queue_behind(&mut rig, Holder::Foreign);
        rig.wake();
        for token in order {
            rig.hand_over(token, token);
        }
        rig.feed(Input::Event(StoreEvent::RecheckAll));
        assert_eq!(queue_behind(&mut rig, somebody(8, 8))[1], "admit 1: token 9, valid for 9898ms");
    }
}

#[test]
fn an_event_that_is_stale_by_the_last_answer_is_fresh_by_the_next_one() {
    let mut rig = rig();
    rig.join(1);
    rig.queue();
    rig.pass(millis(8_000));
    rig.feed(Input::Tick);
    assert_eq!(rig.hand_over(9, 9), none(), "counted from the last answer, little is left");
    assert_eq!(rig.queue(), ["start renewal o1: 10000ms, asked 0ms ago", "admit 1: token 9, valid for 9898ms"]);
}

/// If the store says which tokens were drawn, each answer tells whether a grant came before or after it.
#[test]
fn the_tokens_drawn_before_the_answer_tell_whether_an_event_is_newer() {
    for (drawn, believed) in [(8, true), (9, false)] {
        let mut rig = rig();
        rig.join(1);
        let (position, valid_for, drawn) = (1, Duration::from_secs(10), Some(FencingToken::new(drawn).unwrap()));
        rig.answer(Ok(Answer::Queued { position, remaining: None, valid_for, holder: Holder::Foreign, drawn }));
        rig.pass(millis(2));
        assert_eq!(rig.hand_over(9, 9).join(", ").contains("admit 1: token 9"), believed);
    }
}

/// The answer to a renewal counts from its request: it does not override an event that came later.
#[test]
fn a_station_knows_whether_others_wait_for_its_lock() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let renewed = |wanted| Ok(Renewed::Renewed { valid_for: Duration::from_secs(30), wanted });
    let told = |name: &str| Input::Event(StoreEvent::Wanted { name: name.parse().unwrap() });
    assert!(!rig.station.is_wanted());
    rig.feed(told("b"));
    assert!(!rig.station.is_wanted(), "that is another lock");
    let before = rig.now;
    rig.pass(millis(1));
    rig.feed(told("a"));
    assert!(rig.station.is_wanted());
    rig.renewal(before, renewed(false));
    assert!(rig.station.is_wanted(), "they came later");
    rig.renewal(rig.now, renewed(false));
    assert!(!rig.station.is_wanted(), "they are gone");
    rig.renewal(rig.now, renewed(true));
    assert!(rig.station.is_wanted());
    let between = rig.now;
    rig.pass(millis(1));
    rig.feed(told("a"));
    rig.renewal(between, renewed(false));
    assert!(rig.station.is_wanted(), "the latest answer counts");
    rig.leave(1);
    assert!(!rig.station.is_wanted(), "nothing is held");
    rig.feed(told("a"));
    assert!(!rig.station.is_wanted());
}

fn queue_behind(rig: &mut Rig, holder: Holder) -> Vec<String> {
    let (position, valid_for) = (1, Duration::from_secs(10));
    rig.answer(Ok(Answer::Queued { position, remaining: None, valid_for, holder, drawn: None }))
}

/// The renewal says whether it was this lease, and who did it.
#[test]
fn a_revocation_has_the_lease_of_its_lock_renewed_at_once() {
    let mut rig = holding(told_in_order(), 7, 7, 0);
    let told = |name: &str| Input::Event(StoreEvent::Revoked { name: name.parse().unwrap() });
    assert_eq!(rig.feed(told("b")), [""; 0], "that is another lock");
    assert_eq!(rig.feed(told("a")), ["renew o1"]);
    assert_eq!(rig.feed(Input::Event(StoreEvent::RecheckHolds)), ["renew o1"], "a message may have been missed");
    rig.leave(1);
    assert_eq!(rig.feed(told("a")), [""; 0], "nothing is held");
}
