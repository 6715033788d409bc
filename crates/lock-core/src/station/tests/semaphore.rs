//! A semaphore: each waiter asks for itself, and each turn has a lease of its own.

use std::num::NonZeroU32;
use std::time::Duration;

use super::super::{Input, Join, TurnId};
use super::rig::{Rig, all_modes, join, millis, none, somebody, tokens, ttl};
use crate::{
    Answer, Effect, ErrorKind, FencingToken, Lease, Limit, LossReason, Mode, Patience, Policy, Released, Renewed,
    RequestOrder, Slots, Terms,
};

const LIMIT: u32 = 40;

fn permits(turn: u8, count: u32) -> Input {
    let mode = Mode::permits(count, LIMIT).unwrap();
    Input::Join(Join { terms: Terms { mode, ..join(turn).terms }, ..join(turn) })
}

fn impatient(turn: u8) -> Input {
    Input::Join(Join { patience: Patience::Never, ..join(turn) })
}

fn semaphore_at(policy: Policy) -> Rig {
    Rig::with_mode(policy, Mode::permits(1, LIMIT).unwrap())
}

fn semaphore() -> Rig {
    semaphore_at(all_modes())
}

fn unordered() -> Policy {
    let mut policy = all_modes();
    policy.store.ordering = RequestOrder::Unordered;
    policy
}

/// This many hold, under the tokens and in the slots with their numbers.
fn holding(count: u8) -> Rig {
    let mut rig = semaphore();
    for turn in 1..=count {
        rig.join(turn);
        rig.grant_slots(u64::from(turn), [u32::from(turn)]);
    }
    rig
}

#[test]
fn each_waiter_asks_for_itself_and_holds_under_a_lease_of_its_own() {
    let mut rig = semaphore();
    let claim = "run #1: acquire o1, 1 of 40 permits";
    assert_eq!(rig.join(1), [claim]);
    let claim = "run #2: acquire o2, 3 of 40 permits, width 3";
    assert_eq!(rig.feed(permits(2, 3)), [claim]);
    let first = ["start renewal o1: 30000ms, asked 0ms ago", "admit 1: token 7, valid for 29698ms"];
    assert_eq!(rig.about(1).grant_slots(7, [0]), first);
    let second = ["start renewal o2: 30000ms, asked 0ms ago", "admit 2: token 8, valid for 29698ms"];
    assert_eq!(rig.about(2).grant_slots(8, [1, 2, 5]), second);
    let held = "Held by 1 as o1, token 7, slots 0, for 29698ms; Held by 2 as o2, token 8, slots 1,2,5, for 29698ms";
    assert_eq!(rig.state(), held);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released"]);
    assert_eq!(rig.leave(2), ["stop renewal o2", "run #4: release o2"]);
    rig.release(Ok(Released::Released));
    assert!(rig.station.is_idle());
}

#[test]
fn the_next_claim_is_above_all_tokens_that_were_handed_out() {
    let mut rig = semaphore();
    rig.feed(permits(1, 3));
    rig.grant_slots(7, [0, 1, 2]);
    let claim = "run #2: acquire o2, 1 of 40 permits, above 9";
    assert_eq!(rig.join(2), [claim]);
}

#[test]
fn a_lease_is_not_passed_on() {
    let mut rig = semaphore();
    rig.feed(permits(1, 2));
    rig.grant_slots(7, [0, 1]);
    rig.feed(permits(2, 2));
    rig.queue_after(8);
    assert_eq!(rig.leave(1), ["stop renewal o1", "run #3: release o1"]);
    assert_eq!(rig.hand_over(9, 10)[1], "admit 2: token 9, valid for 9898ms");
}

#[test]
fn others_keep_their_places_while_permits_are_given_back() {
    let mut rig = semaphore();
    rig.feed(permits(1, 2));
    rig.grant_slots(7, [0, 1]);
    rig.join(2);
    rig.queue_after(8);
    let terms = Terms { mode: Mode::permits(1, LIMIT).unwrap(), ttl: ttl("30s") };
    rig.feed(Input::Replace { turn: TurnId(1), terms });
    assert_eq!(rig.grant_slots(9, [0])[2..], ["replaced 1: token 9, valid for 29698ms"]);
    assert!(rig.state().contains("Waiting in the queue for 2 as o2"), "{}", rig.state());
}

/// Answers may overtake each other. Of those that want the same, the first comes first.
#[test]
fn a_grant_is_for_the_first_that_wants_the_same() {
    let mut rig = semaphore();
    for (turn, count) in [(1, 2), (2, 1), (3, 1), (4, 1)] {
        rig.feed(permits(turn, count));
    }
    assert_eq!(rig.about(4).grant_slots(9, [3])[1], "admit 2: token 9, valid for 29698ms");
    assert_eq!(rig.about(2).grant_slots(7, [1])[1], "admit 3: token 7, valid for 29698ms");
    assert_eq!(rig.about(3).grant_slots(8, [2])[1], "admit 4: token 8, valid for 29698ms");
    assert_eq!(rig.state().matches("Asking").count(), 1, "{}", rig.state());
}

#[test]
fn a_waiter_whose_claim_failed_gets_the_grant_of_one_behind_it_that_does_not_wait() {
    let mut rig = semaphore();
    rig.join(1);
    rig.fail(ErrorKind::Unreachable, Effect::None);
    assert_eq!(rig.feed(impatient(2)).len(), 2, "the first one asks again as well");
    rig.about(2).fail(ErrorKind::Unreachable, Effect::None);
    let granted = [
        "start renewal o2: 30000ms, asked 0ms ago",
        "admit 1: token 7, valid for 29698ms",
        "run #4: acquire o1, 1 of 40 permits, above 7, no place",
    ];
    assert_eq!(rig.about(3).grant_slots(7, [0]), granted, "the second one still gets an answer of its own");
    assert_eq!(rig.be_busy(), ["refuse 2: busy, held under token 8"]);
}

#[test]
fn sixteen_ask_at_a_time_and_the_others_stand_in_line() {
    let mut rig = semaphore();
    for turn in 1..=20 {
        assert_eq!(rig.join(turn).len(), usize::from(turn <= 16), "turn {turn}");
    }
    assert!(rig.about(1).grant_slots(7, [0]).iter().any(|output| output.starts_with("run #17: acquire o17")));
    for claim in 2..=17 {
        rig.about(claim).queue_after(7);
    }
    assert_eq!(rig.leave(5).len(), 2, "a place is given up, and the next waiter asks");
    assert_eq!(rig.state().matches("Waiting").count(), 15, "{}", rig.state());
}

/// While the first of them has no place at the store, a smaller request behind it might be served before it.
#[test]
fn a_large_request_is_not_passed_by_smaller_ones_behind_it() {
    let mut rig = semaphore_at(unordered());
    rig.feed(permits(1, 3));
    assert_eq!(rig.join(2), none(), "requests may overtake each other");
    let claim = "run #2: acquire o2, 1 of 40 permits";
    assert_eq!(rig.queue_after(7), [claim], "now the store has the first one in its queue");
    let mut rig = semaphore();
    rig.feed(permits(1, 3));
    rig.fail(ErrorKind::Unreachable, Effect::None);
    assert_eq!(rig.join(2), none());
    let in_order = ["run #2: acquire o1, 3 of 40 permits, width 3", "run #3: acquire o2, 1 of 40 permits"];
    assert_eq!(rig.wake(), in_order);
}

#[test]
fn a_claim_that_failed_is_not_repeated_before_those_that_came_earlier() {
    let mut rig = semaphore();
    rig.feed(permits(1, 3));
    rig.join(2);
    for claim in [1, 3, 4] {
        rig.about(claim).fail(ErrorKind::Unreachable, Effect::None);
        if claim < 4 {
            assert_eq!(rig.wake().len(), 1);
        }
    }
    // The first one tries again after a longer pause than the second one.
    rig.about(2).fail(ErrorKind::Unreachable, Effect::None);
    let repeated = rig.wake();
    assert!(repeated[0].contains("acquire o1"), "{repeated:?}");
}

#[test]
fn waiters_that_do_not_wait_get_an_answer_of_the_store_each() {
    let mut rig = semaphore();
    assert_eq!(rig.feed(impatient(1)).len() + rig.feed(impatient(2)).len(), 2, "two claims");
    assert_eq!(rig.about(1).be_busy(), ["refuse 1: busy, held under token 8"]);
    assert_eq!(rig.about(2).grant_slots(9, [0])[1], "admit 2: token 9, valid for 29698ms");
    rig.leave(2);
    rig.release(Ok(Released::Released));
    assert!(rig.station.is_idle());
}

#[test]
fn behind_sixteen_that_wait_it_is_busy() {
    let mut rig = semaphore();
    for turn in 1..=16 {
        rig.join(turn);
    }
    assert_eq!(rig.feed(impatient(17)), none(), "the store has said nothing yet");
    assert_eq!(rig.about(1).queue_after(7), ["refuse 17: busy, held under token 8"]);
    assert_eq!(rig.feed(impatient(18)), ["refuse 18: busy, held under token 8"]);
}

#[test]
fn if_the_store_fails_those_that_do_not_wait_learn_it_at_once() {
    let mut rig = semaphore();
    for turn in 1..=20 {
        rig.feed(impatient(turn));
    }
    let failed = rig.about(1).fail(ErrorKind::Unreachable, Effect::None);
    let refused: Vec<_> =
        [1, 17, 18, 19, 20].iter().map(|turn| format!("refuse {turn}: error Unreachable, effect None")).collect();
    assert_eq!(failed, refused, "those without a claim of their own need not try");
}

#[test]
fn a_waiter_that_leaves_gives_up_its_own_place() {
    let mut rig = semaphore();
    rig.join(1);
    rig.join(2);
    rig.about(1).queue_after(7);
    rig.about(2).queue_after(7);
    assert_eq!(rig.leave(1), ["run #3: release o1"]);
    assert_eq!(rig.about(2).hand_over(9, 9)[1], "admit 2: token 9, valid for 9898ms");
}

#[test]
fn a_grant_whose_waiter_has_left_is_released() {
    let mut rig = semaphore();
    rig.join(1);
    rig.join(2);
    assert_eq!(rig.leave(1), none());
    assert_eq!(rig.about(1).grant_slots(7, [0]), ["run #3: release o1"]);
}

/// Too few of them, more than there are, or a token too many: not what was asked for.
#[test]
fn a_grant_with_other_slots_than_were_asked_for_is_given_back() {
    let wrong: [(u64, &[u32]); 4] = [(7, &[0]), (7, &[0, LIMIT]), (7, &[0, 1, 2]), (7, &[])];
    for (low, slots) in wrong {
        let mut rig = semaphore();
        rig.feed(permits(1, 2));
        rig.join(2);
        rig.about(1);
        let lease = Lease { slots: Slots::new(slots.to_vec()), ..rig.lease(low, low + 1) };
        let granted = Answer::Granted { lease, valid_for: Duration::from_secs(30), wanted: false };
        let given_back = ["refuse 1: error Protocol, effect Unknown", "run #3: release o1, claim may be in flight"];
        assert_eq!(rig.answer(Ok(granted)), given_back, "slots {slots:?}");
    }
    let mut rig = semaphore();
    rig.feed(permits(1, 2));
    let lease = Lease { tokens: tokens(7, 7), ..rig.lease(7, 8) };
    let granted = Answer::Granted { lease, valid_for: Duration::from_secs(30), wanted: false };
    assert_eq!(rig.answer(Ok(granted))[0], "refuse 1: error Protocol, effect Unknown");
}

/// With several holders, the one that is named need not have come last.
#[test]
fn a_pushed_grant_counts_only_if_the_store_says_which_tokens_were_drawn() {
    for (drawn, believed) in [(Some(8), true), (Some(9), false), (None, false)] {
        let mut rig = semaphore();
        rig.join(1);
        let drawn = drawn.map(|drawn| FencingToken::new(drawn).unwrap());
        let (position, valid_for, holder) = (1, Duration::from_secs(10), somebody(8, 8));
        rig.answer(Ok(Answer::Queued { position, remaining: None, valid_for, holder, drawn }));
        rig.pass(millis(2));
        assert_eq!(rig.hand_over(9, 9).join(", ").contains("admit 1: token 9"), believed, "{drawn:?}");
    }
}

#[test]
fn a_claim_for_another_limit_fails_alone() {
    let mut rig = semaphore();
    rig.join(1);
    let other = Mode::permits(1, LIMIT + 1).unwrap();
    rig.feed(Input::Join(Join { terms: Terms { mode: other, ..join(2).terms }, ..join(2) }));
    assert_eq!(rig.fail(ErrorKind::OtherKind, Effect::None), ["refuse 2: error OtherKind, effect None"]);
    assert_eq!(rig.about(1).grant_slots(7, [0])[1], "admit 1: token 7, valid for 29698ms");
}

fn of_limit(turn: u8, limit: u32) -> Input {
    let mode = Mode::permits(1, limit).unwrap();
    Input::Join(Join { terms: Terms { mode, ..join(turn).terms }, ..join(turn) })
}

#[test]
fn a_claim_of_another_limit_waits_for_the_release() {
    let mut rig = semaphore();
    rig.feed(permits(1, 1));
    rig.grant_slots(7, [0]);
    assert_eq!(rig.leave(1)[1], "run #2: release o1");
    assert_eq!(rig.feed(of_limit(2, 41)), none());
    let claim = "run #3: acquire o2, 1 of 41 permits, above 7";
    assert_eq!(rig.release(Ok(Released::Released)), ["ended 1: released", claim]);
}

/// Its waiter has left, and the answer is nothing to the one that wants something else.
#[test]
fn a_claim_of_another_limit_waits_for_the_end_of_one_that_nobody_wants_any_more() {
    let mut rig = semaphore();
    rig.feed(permits(1, 1));
    rig.leave(1);
    assert_eq!(rig.feed(of_limit(2, 41)), none());
    assert_eq!(rig.grant_slots(7, [0]), ["run #2: release o1"]);
    assert_eq!(rig.release(Ok(Released::Released)).len(), 1);
    let mut rig = semaphore();
    rig.join(1);
    rig.leave(1);
    assert_eq!(rig.feed(of_limit(2, 41)), none());
    let claim = "run #2: acquire o2, 1 of 41 permits";
    assert_eq!(rig.fail(ErrorKind::Denied, Effect::None), [claim]);
}

#[test]
fn one_turn_ends_and_the_others_go_on() {
    let mut rig = holding(2);
    rig.about(1);
    let (owner, asked_at) = (rig.claimant(), rig.now);
    let lost = ["lose 1: not held", "stop renewal o1", "run #3: release o1"];
    assert_eq!(rig.feed(Input::Renewal { owner, asked_at, answer: Ok(Renewed::NotHeld) }), lost);
    assert!(rig.state().starts_with("Held by 2 as o2"), "{}", rig.state());
    rig.feed(Input::Join(Join { max_hold: Some(millis(50)), ..join(3) }));
    rig.grant_slots(9, [3]);
    assert_eq!(rig.wake()[0], "lose 3: max_hold");
    assert!(matches!(rig.hold().check(rig.now), Ok(())));
    let hold = rig.hold();
    assert_eq!(rig.feed(Input::Close)[..2], ["lose 2: closed", "stop renewal o2"]);
    assert!(matches!(hold.check(rig.now).unwrap_err().reason, LossReason::Closed));
}

#[test]
fn attempts_count_the_answers_to_the_waiters_own_claims() {
    let mut rig = semaphore();
    rig.join(1);
    rig.feed(Input::Join(Join { max_requests: NonZeroU32::new(2), ..join(2) }));
    rig.about(1).queue_after(7);
    rig.about(1).fail(ErrorKind::Unreachable, Effect::None);
    assert_eq!(rig.about(2).queue_after(7), none());
    while !rig.state().contains("Asking in the queue for 2") {
        rig.wake();
    }
    let refused = rig.queue_after(7);
    assert!(refused[0].starts_with("refuse 2: timed out"), "{refused:?}");
    assert!(refused[1].contains("release o2"), "it leaves the queue: {refused:?}");
}

#[test]
fn a_wait_that_ends_tells_what_its_own_claim_was_answered() {
    let mut rig = semaphore();
    let wait =
        |turn, time, rig: &Rig| Input::Join(Join { patience: Patience::within(rig.now, millis(time)), ..join(turn) });
    for (turn, time) in [(1, 100), (2, 101), (3, 102)] {
        let input = wait(turn, time, &rig);
        rig.feed(input);
    }
    rig.about(1).queue_after(7);
    rig.about(2).fail(ErrorKind::Unavailable, Effect::None);
    let mut refused = Vec::new();
    while refused.len() < 3 {
        refused.extend(rig.wake().into_iter().filter(|output| output.starts_with("refuse")));
    }
    let expected = [
        "refuse 1: timed out after 100ms, held under token 8",
        "refuse 2: error Unavailable, effect None",
        "refuse 3: error Timeout, effect Unknown",
    ];
    assert_eq!(refused, expected);
}

/// One release for each claim that was given up, and three more of turns that have ended; then nothing new is asked.
#[test]
fn with_nineteen_unanswered_releases_and_claims_nothing_new_is_asked() {
    let mut rig = semaphore();
    for turn in 1..=19 {
        assert_eq!(rig.feed(impatient(turn)).len(), 1, "turn {turn}");
        rig.fail(ErrorKind::Timeout, Effect::Unknown);
    }
    assert_eq!(rig.join(20), none());
    assert_eq!(rig.station.releases.0.iter().len(), 19);
    let asked = rig.release(Ok(Released::NotHeld));
    assert_eq!(asked.len(), 1, "one release was answered, so one claim goes out: {asked:?}");
    assert_eq!(rig.join(21), none(), "it may end in a release");
}

#[test]
fn each_turn_that_ends_is_released_however_many_there_are() {
    let mut rig = holding(30);
    for turn in 1..=30 {
        assert_eq!(rig.leave(turn).len(), 2, "turn {turn}");
    }
    assert_eq!(rig.join(31), none(), "too many releases are in flight");
    assert_eq!(rig.station.releases.0.iter().len(), 30);
    while rig.station.releases.0.iter().len() > 18 {
        rig.station.releases.0.take(|_| true);
    }
    assert_eq!(rig.feed(Input::Tick).len(), 1, "now it asks");
}

#[test]
fn permits_are_given_back_and_the_first_slots_stay() {
    let mut rig = semaphore();
    rig.feed(permits(1, 3));
    rig.grant_slots(7, [2, 4, 9]);
    let fewer = |count| Input::Replace {
        turn: TurnId(1),
        terms: Terms { mode: Mode::permits(count, LIMIT).unwrap(), ttl: ttl("30s") },
    };
    let claim = "run #2: acquire o2 in place of o1, 2 of 40 permits, width 2, above 9, no place";
    assert_eq!(rig.feed(fewer(2)), [claim]);
    assert_eq!(rig.grant_slots(10, [0, 1]), none(), "those are other slots");
    rig.wake();
    assert_eq!(rig.grant_slots(10, [2, 4])[2], "replaced 1: token 10, valid for 29698ms");
    let refused = rig.feed(fewer(3));
    assert!(refused[0].contains("number of permits \"3\" is not valid: 2 of 40 are held"), "{refused:?}");
}

/// A claim went unanswered, and the next one met the lease that was handed over meanwhile, under the limit that was set after that.
#[test]
fn a_hold_is_not_lost_if_the_limit_is_set_between_its_hand_over_and_the_answer() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 4).unwrap());
    rig.join(1);
    rig.fail(ErrorKind::Timeout, Effect::Unknown);
    rig.wake();
    assert!(rig.hand_over(9, 9)[1].starts_with("admit 1: token 9"));
    let mut lease = rig.lease(9, 9);
    lease.terms.mode = lease.terms.mode.under(Limit::new(8).unwrap());
    let valid_for = lease.terms.ttl.get();
    assert_eq!(rig.answer(Ok(Answer::Granted { lease, valid_for, wanted: false })), none());
}

#[test]
fn a_release_under_another_limit_in_force_holds_nobody_back() {
    let mut rig = Rig::with_mode(all_modes(), Mode::permits(1, 4).unwrap());
    rig.join(1);
    let mut lease = rig.lease(9, 9);
    lease.terms.mode = lease.terms.mode.under(Limit::new(8).unwrap());
    let valid_for = lease.terms.ttl.get();
    rig.answer(Ok(Answer::Granted { lease, valid_for, wanted: false }));
    rig.leave(1);
    assert_eq!(rig.join(2).len(), 1);
}
